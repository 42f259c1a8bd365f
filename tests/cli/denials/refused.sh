# What the filter refuses is in the result, with the program none the wiser; what it does not is not.
need jq python3
"$PX" --json exec -c 'unshare -U true 2>/dev/null; unshare -U true 2>/dev/null; python3 -c "
import socket
try: socket.socket(40, 1)
except OSError as e: print(e.errno)"' | jq -c '.stdout, .status, (.denials[] | [.op, .target, .rule, .count])'
"$PX" --json exec -c 'python3 -c "import multiprocessing, asyncio, ssl"; ls /; cat /etc/passwd >/tmp/x; exit 3' | jq -c '.denials' || true
# The words for a person come only when the command failed.
"$PX" exec -c 'unshare -U true 2>/dev/null; true'
try "$PX" exec -c 'unshare -U true 2>/dev/null; exit 4' 2>&1
