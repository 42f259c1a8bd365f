#!/usr/bin/python3
"""network/servers.py DIR - the outside of the tests of the network: name servers and others, in a network namespace of their own.

Reads a line from standard input when its end of the link is there, then prints `ready`. Names that were asked for are added to
DIR/asked, a line each. Ends with its standard input.
"""

import socket
import ssl
import struct
import subprocess
import sys
import threading
from pathlib import Path

FOUR, OTHER, NAMES, SIX = "203.0.113.10", "203.0.113.11", "203.0.113.53", "2001:db8:1::10"
# Addresses that carry OTHER's (NAT64, 6to4), and the near side's own.
CARRIED = ("64:ff9b::cb00:710b", "2002:cb00:710b::1", "64:ff9b::cb00:7101")
ZONE = {
    "good.test": (FOUR, SIX), "other.test": (FOUR, None), "third.test": (OTHER, None), "four.test": (FOUR, None), "six.test": (None, SIX),
    "a.good.test": (FOUR, None), "private.test": ("10.9.9.9", None), "meta.test": ("169.254.169.254", None), "loop.test": ("127.0.0.1", "::1"),
    "own.test": ("203.0.113.1", None), "mapped.test": (None, "::ffff:127.0.0.1"), "gone.test": ("203.0.113.99", None),
}
ALIASES = {"alias.test": "good.test"}
FLIPS = []                      # flip.test, once for each time it was asked for: another address after the first


def encode(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def records(name, kind):
    found, count = b"", 0
    if name in ALIASES:
        target = encode(ALIASES[name])
        found += encode(name) + struct.pack(">HHIH", 5, 1, 60, len(target)) + target
        name, count = ALIASES[name], 1
    four, six = (FOUR, None) if name.endswith(".many.test") else ZONE.get(name, (None, None))
    if name == "flip.test" and kind == 1:
        FLIPS.append(name)
        four = FOUR if len(FLIPS) == 1 else "127.0.0.1"
    address = four and socket.inet_aton(four) if kind == 1 else six and socket.inet_pton(socket.AF_INET6, six) if kind == 28 else None
    if name == "huge.test" and kind == 1:      # as much as fits into one datagram
        return (encode(name) + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(FOUR)) * 2400, 2400
    if address:
        found += encode(name) + struct.pack(">HHIH", kind, 1, 0 if name == "flip.test" else 60, len(address)) + address
        count += 1
    return found, count


def answer(query, log):
    at, parts = 12, []
    while query[at]:
        parts.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    name, kind = ".".join(parts).lower(), struct.unpack(">H", query[at + 1:at + 3])[0]
    with log.open("a", encoding="latin-1") as file:
        file.write(f"{name} {kind}\n")
    found, count = records(name, kind)
    known = name in ZONE or name in ALIASES or name in ("flip.test", "huge.test") or name.endswith(".many.test")
    return query[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, count, 0, 0) + query[12:at + 5] + found


def names(log):
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((NAMES, 53))
    while True:
        query, who = listener.recvfrom(4096)
        try:
            listener.sendto(answer(query, log), who)
        except (IndexError, struct.error):
            continue


def echo_datagrams(address):
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((address, 7004))
    while True:
        data, who = listener.recvfrom(65536)
        listener.sendto(data, who)


def web(connection):
    """One request after the other; says who was asked for what."""
    stream = connection.makefile("rwb")
    while True:
        head = []
        while (line := stream.readline()) not in (b"\r\n", b"\n", b""):
            head.append(line.strip().decode("latin-1"))
        if not head:
            return
        host = next((line.split(":", 1)[1].strip() for line in head if line.lower().startswith("host:")), "-")
        size = int(head[0].split()[1].removeprefix("/bytes/")) if "/bytes/" in head[0] else None
        body = b"x" * size if size is not None else f"host={host} {head[0].split()[1]}\n".encode()
        stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        stream.flush()


def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def greet(connection):
    connection.sendall(b"hello first\n")
    echo(connection)


def swallow(connection, log):
    """What a connection brought, whole, as one line."""
    data = b""
    while part := connection.recv(65536):
        data += part
    with log.with_name("swallowed").open("a", encoding="ascii") as file:
        file.write(f"{len(data)}\n")


def secure(context):
    def serve(connection):
        with context.wrap_socket(connection, server_side=True) as wrapped:
            web(wrapped)
    return serve


def listen(address, port, serve):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family, backlog=512)

    def one(connection):
        try:
            with connection:
                serve(connection)
        except (OSError, ValueError, IndexError):
            pass

    def loop():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def certificate(folder):
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=good.test", "-addext",
                           "subjectAltName=DNS:good.test,DNS:other.test,DNS:a.good.test", "-keyout", str(folder / "key.pem"), "-out",
                           str(folder / "cert.pem")], capture_output=True, check=False).returncode
    if made != 0:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def main():
    folder = Path(sys.argv[1])
    log = folder / "asked"
    log.touch()
    sys.stdin.readline()
    for words in ("link set lo up", "link set far up", *(f"addr add {a}/24 dev far" for a in (FOUR, OTHER, NAMES)),
                  f"addr add {SIX}/64 dev far nodad", *(f"addr add {a}/128 dev far nodad" for a in CARRIED)):
        subprocess.run(["ip", *words.split()], check=True)
    context = certificate(folder)
    for address in (FOUR, OTHER, SIX):
        for port in (80, 8080):
            listen(address, port, web)
        listen(address, 7000, echo)
        listen(address, 7002, greet)
        listen(address, 7003, lambda connection: swallow(connection, log))
        threading.Thread(target=echo_datagrams, args=(address,), daemon=True).start()
        if context:
            listen(address, 443, secure(context))
    for address in CARRIED:
        listen(address, 80, web)
    threading.Thread(target=names, args=(log,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"network/servers.py: {error}")
