says "$PX" exec -v "$TMP/nosuch:/x" -- echo RAN
says "$PX" exec -v /etc/passwd/below:/x -- echo RAN
