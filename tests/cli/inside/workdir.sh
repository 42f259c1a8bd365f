"$PX" exec -w /usr/bin -- pwd
"$PX" exec -w / -- pwd
"$PX" exec -w //tmp/./ -- pwd
says "$PX" exec -w /no/such/place -- pwd
says "$PX" exec -w /etc/passwd -- pwd
says "$PX" exec -w /root -- pwd
