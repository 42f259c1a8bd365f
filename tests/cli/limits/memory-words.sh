as_root
need python3
try "$PX" exec -m 32m -- python3 -c 'a = bytearray(200 << 20)'
