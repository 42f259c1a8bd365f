# Without any network outside: what is refused, and what the result says of it.
need python3 jq
"$PX" --json exec --allow-net good.test --net outbound -- python3 -c 'import socket
for act in (lambda: socket.create_connection(("192.0.2.7", 80), timeout=30).recv(1), lambda: socket.getaddrinfo("evil.test", 80),
            lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.7", 443)),
            lambda: socket.create_connection(("10.0.2.2", 22), timeout=30).recv(1)):
    try: print("reached", act())
    except OSError as error: print(type(error).__name__)' >"$TMP/result"
jq -r '.stdout' "$TMP/result"
jq -r '.denials[] | [.op, .target, .rule, .grant, .count] | @tsv' "$TMP/result"
jq -c '.network, (.isolation.mechanisms[] | select(startswith("net=")))' "$TMP/result"
says "$PX" exec --net none --allow-net good.test -- true
says "$PX" exec --allow-net 'not a host' -- true
says "$PX" exec --publish 80 -- true
