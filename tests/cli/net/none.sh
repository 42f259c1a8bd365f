# Nothing but its own loopback device, and that is down.
need python3
"$PX" exec -c 'tail -n +3 /proc/net/dev | sed "s/:.*//; s/ //g"; grep -vc Iface /proc/net/route'  || true
"$PX" exec --net none -- python3 -c 'import socket
s = socket.socket()
try: s.connect(("127.0.0.1", 1))
except OSError as e: print(e.strerror)'
