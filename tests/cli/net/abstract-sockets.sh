# Not even with the host's network does a box reach the abstract sockets of the host.
need python3
python3 -c 'import os, socket, subprocess, sys
name = "\0px-test-%d" % os.getpid()
s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen()
text = "import socket; s = socket.socket(socket.AF_UNIX)\ntry: s.connect(%r); print(\"reached\")\nexcept OSError as e: print(\"not reached\")" % name
for net in ("none", "host"): subprocess.run([sys.argv[1], "exec", "--net", net, "--", "python3", "-c", text])' "$PX"
