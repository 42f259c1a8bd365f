# Sockets, pipes and devices are doors, not files.
need python3
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$TMP/socket"
mkfifo "$TMP/pipe"
says "$PX" exec -v "$TMP/socket:/x" -- echo RAN
says timeout 20 "$PX" exec -v "$TMP/pipe:/x" -- echo RAN
says "$PX" exec -v /dev/null:/x -- echo RAN
