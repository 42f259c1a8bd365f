# The bound of the whole falls on each process then.
as_user
need python3
try "$PX" exec --limits try --memory 100m -- python3 -c 'a = bytearray(200 << 20); print("too much")' 2>/dev/null
"$PX" exec --limits try --memory 300m -- python3 -c 'a = bytearray(20 << 20); print("fits")'
