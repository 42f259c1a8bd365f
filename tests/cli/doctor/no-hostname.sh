# The filter of most containers refuses sethostname. A box starts without a name of its own; its result and the doctor say so.
need python3 jq
cat >filtered.py <<'PYTHON'
import ctypes
import os
import struct
import sys

CALL, ALLOW, EPERM = 170, 0x7FFF0000, 0x00050001  # sethostname
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, CALL), (0x06, 0, 0, EPERM), (0x06, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
PYTHON
"$PX" exec -- true || skip 'no box starts here'
filtered() { python3 filtered.py "$@"; }
filtered "$PX" --json exec -- echo runs | jq -r '.stdout, (.isolation.missing[] | select(startswith("hostname")))'
filtered "$PX" -v doctor >all || :
grep -A1 -E '^namespaces (user|uts) |^privileges no privileges' all | grep -v '^--'
"$PX" doctor -q >plain || :
filtered "$PX" doctor -q >within || :
diff plain within && echo 'the same tier'
filtered "$PX" -q box start --name nameless
filtered "$PX" box exec nameless -- echo stays
"$PX" -q box stop nameless
