# A program that does nothing but what is refused is counted exactly, and only holds up itself.
need jq python3
"$PX" --json exec --timeout 120s -c 'python3 -c "
import ctypes
c = ctypes.CDLL(None)
for i in range(20000): c.syscall(272, 0)
for n in range(150, 500): c.syscall(n, -1, -1, -1, -1, -1, -1) if n in (155, 161, 165, 166, 167, 168, 169, 170, 171, 172, 173, 175, 176, 246, 250, 248, 249, 298, 303, 304, 308, 310, 311, 313, 320, 321, 323, 425, 428, 429, 430, 431, 432, 433, 438, 442) else 0
"' | jq -c '.status, (.denials[] | select(.target == "unshare") | .count), (.denials | length <= 24)'
