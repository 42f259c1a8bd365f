# A port of the host that is free: which one is told, while the box runs and where the box is shown.
trap '"$PX" box stop --all' EXIT
need python3
server='import socket; s = socket.create_server(("127.0.0.1", 8080)); print("ready", flush=True); s.accept()[0].sendall(b"hello\n")'
"$PX" exec -p 0:8080 --timeout 120 -- python3 -c "$server" >out 2>err &
until_filled out
sed 's/127.0.0.1:[1-9][0-9]*/HOST/' err
python3 -c 'import re, socket
port = int(re.search(r":(\d+) is", open("err").read())[1])
print(socket.create_connection(("127.0.0.1", port), 60).makefile().read(), end="")'
wait $!
name=$("$PX" box start -p 0:8080 -p 0:9090/udp)
"$PX" --json box show "$name" | python3 -c 'import json, re, sys
for text in json.load(sys.stdin)["policy"]["publish"]:
    print(re.sub(r"^127.0.0.1:[1-9]\d*", "HOST", text))'
"$PX" box stop "$name" >/dev/null
