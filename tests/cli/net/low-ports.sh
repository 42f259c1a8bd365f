# The ports below 1024 of a box's own network are free for every program in it.
need python3
"$PX" exec --net loopback -- python3 -c 'import socket
for port in (22, 80, 443):
    s = socket.create_server(("127.0.0.1", port))
    print(socket.create_connection(("127.0.0.1", port)).getpeername()[1])'
