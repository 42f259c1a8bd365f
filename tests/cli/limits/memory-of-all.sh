# The bound holds for all processes together, and for files in the box's own directories.
as_root
need python3
try "$PX" exec --memory 64m -c 'for i in 1 2 3 4 5; do python3 -c "import time; a = bytearray(30 << 20); time.sleep(60)" & done; wait' 2>/dev/null
try "$PX" exec --memory 32m -c 'head -c 60m /dev/zero >/tmp/f; echo RAN' 2>/dev/null
