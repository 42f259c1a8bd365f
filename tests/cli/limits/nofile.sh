need python3
"$PX" exec --nofile 64 -- python3 -c 'import os
n = 0
try:
    while n < 1000: os.open("/dev/null", 0); n += 1
except OSError as e: print(n < 64, e.strerror)'
"$PX" exec --nofile 64 -c 'ulimit -n; ulimit -n 128 2>/dev/null && echo raised; ulimit -Hn'
