"$PX" exec -i -- wc -c <&-
"$PX" exec -c 'cat; echo ok' <&-
