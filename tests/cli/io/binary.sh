# Bytes of every value pass.
need python3
"$PX" exec -- python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)' | python3 -c 'import sys; print(sys.stdin.buffer.read() == bytes(range(256)) * 100)'
