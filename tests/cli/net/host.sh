# Shared as asked for, and the result says so.
need python3 jq
python3 -c 'import socket, subprocess, sys
s = socket.create_server(("127.0.0.1", 0))
port = s.getsockname()[1]
text = "import socket; socket.create_connection((\"127.0.0.1\", %d), timeout=5); print(\"host reached\")" % port
subprocess.run([sys.argv[1], "exec", "--net", "host", "--", "python3", "-c", text])' "$PX"
"$PX" --json exec --net host -- true | jq -r '.isolation.missing[] | select(startswith("net"))'
