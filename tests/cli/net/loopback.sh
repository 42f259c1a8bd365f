# Its own loopback works, and nobody else is on it.
need python3
"$PX" exec --net loopback -- python3 -c 'import socket, threading
s = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: s.accept()[0].sendall(b"through lo")).start()
print(socket.create_connection(s.getsockname()).recv(100).decode())
try: socket.create_connection(("192.0.2.1", 80), timeout=5)
except OSError as e: print(e.strerror)'
python3 -c 'import socket, subprocess, sys
s = socket.create_server(("127.0.0.1", 0))
port = s.getsockname()[1]
text = "import socket\ntry: socket.create_connection((\"127.0.0.1\", %d), timeout=5); print(\"host reached\")\nexcept OSError as e: print(e.strerror)" % port
subprocess.run([sys.argv[1], "exec", "--net", "loopback", "--", "python3", "-c", text])' "$PX"
