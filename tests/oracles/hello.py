#!/usr/bin/python3
"""hello.py ASK - which server the first request of a connection asks for: helpers/net/hello.c against real servers on loopback.

Random requests from a fixed seed, most of them broken. Where a server answers a request for a name other than the one that is
allowed, our reader must not have let it pass: neither as a request for the allowed name, nor as one without a name, nor as another
protocol. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import http.server
import random
import re
import shutil
import socket
import subprocess
import sys

ASK = sys.argv[1]
GOOD, EVIL = "good.test", "evil.test"
PASSES = ("other -", "nameless -", f"named {GOOD}")
BLANKS = [bytes([n]) for n in (*range(0x21), 0x7F, 0x85, 0xA0, 0xAD)] + [b"", b"  ", b"\xc2\xa0", b"\xe2\x80\x83", b"\xe2\x80\xa8", b"\xe3\x80\x80"]
PYTHON_COUNT, NODE_COUNT = 8000, 1500


# ---- requests ----

def blank(rng, usual=b" "):
    return rng.choice(BLANKS) if rng.random() < 0.08 else usual


def end_line(rng):
    return rng.choice([b"\n", b"\r", b"\r\r\n", b"\v\n", b"\0\r\n", b"\x85", b"\x1c\n", b" \r\n"]) if rng.random() < 0.05 else b"\r\n"


def first_line(rng):
    method = rng.choice([b"GET", b"GET", b"POST", b"HEAD", b"get", b"PURGE", b"x", b"CONNECT", b"<x", b"G\xc3\x89T"] + [b"GET"] * 6)
    target = rng.choice([b"/", b"/a?b", b"*", b"//evil.test/", b"http://evil.test/", b"http://good.test/", b"HTTP://good.test@evil.test/", b"evil.test:80", b"/\xc3\xa0", b""] + [b"/"] * 6)
    version = rng.choice([b"HTTP/1.1"] * 12 + [b"HTTP/1.0", b"http/1.1", b"HTTP/1.1\x1c", b"HTTP/ 1.1", b"HTTP/01.1", b"HTTP/2.0", b"HTTP/0.9", b""])
    return method + blank(rng) + target + blank(rng) + version


def header(rng):
    name = rng.choice([b"Host"] * 8 + [b"host", b"HOST", b"X", b"Hostess", b"Host\t", b" Host", b"\x1cHost", b"Ho\rst", b"From"])
    value = rng.choice([b"evil.test", b"evil.test", b"good.test", b"Good.test:80", b"evil.test:80", b"good.test@evil.test", b"evil.test.", b"127.0.0.1", b"good.test\0evil", b""])
    return name + blank(rng, b"") + rng.choice([b":"] * 19 + [b""]) + blank(rng) + value


def request(rng):
    before = rng.choice([b""] * 16 + [b"\r\n", b"\n\n", b" ", b"\x1c", b"\x85", b"\xa0", b"\0", b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", b"x\r\n"])
    lines = [first_line(rng)] + [header(rng) for _ in range(rng.choice([1, 1, 2, 3]))] + [b"", b""]
    text = bytearray(before + b"".join(line + end_line(rng) for line in lines))
    for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
        at = rng.randrange(len(text))
        text[at:at + rng.randrange(2)] = rng.choice([b"", bytes([rng.randrange(256)]), rng.choice(BLANKS)])
    return bytes(text)


# ---- servers: the Host of each request, None where it was refused ----

class Handler(http.server.BaseHTTPRequestHandler):
    """As the handlers of development servers are: every method is one. But not a word with control characters, as other protocols
    begin with: that is known as another protocol by this byte, because most of them wait for an answer then and have no lines."""
    protocol_version = "HTTP/1.0"

    def __getattr__(self, name):
        if not name.startswith("do_") or re.search("[\0-\x1b\x7f]", name):
            raise AttributeError(name)
        return self.serve

    def serve(self):
        self.server.said = self.headers.get("Host")
        self.send_response(200)
        self.end_headers()
        self.close_connection = True

    def log_message(self, *_words):
        pass


def ask_python(requests):
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_words: None
        for text in requests:
            server.said = None
            with socket.create_connection(server.server_address) as client:
                client.sendall(text)
                client.shutdown(socket.SHUT_WR)
                server.handle_request()
            yield server.said


NODE = """
const http = require("http"), net = require("net"), lines = require("fs").readFileSync(0, "latin1").split("\\n").filter(line => line);
const hosts = new Map(), lenient = process.argv[1] === "lenient";
const server = http.createServer({insecureHTTPParser: lenient, requireHostHeader: false}, (request, response) => {
    if (!hosts.has(request.socket.remotePort)) hosts.set(request.socket.remotePort, request.headers.host || "");
    response.end();
    request.socket.end();
});
server.on("clientError", (error, socket) => socket.destroy());
server.on("connect", (request, socket) => { hosts.set(socket.remotePort, request.headers.host || ""); socket.destroy(); });
async function one(line) {
    const client = net.connect(server.address().port, "127.0.0.1");
    let port;
    client.on("error", () => {});
    client.on("connect", () => { port = client.localPort; client.end(Buffer.from(line, "hex")); });
    client.resume();
    await new Promise(done => client.on("close", done));
    const said = hosts.get(port);
    hosts.delete(port);
    return said === undefined ? "null" : JSON.stringify(said);
}
server.listen(0, "127.0.0.1", async () => {
    for (const line of lines) console.log(await one(line));
    server.close();
    process.exit(0);
});
"""


def ask_node(*words):
    def run(requests):
        done = subprocess.run(["node", "-e", NODE, *words], input="\n".join(text.hex() for text in requests), capture_output=True, text=True, timeout=300, check=True)
        return [None if line == "null" else line.strip('"') for line in done.stdout.removesuffix("\n").split("\n")]
    return run


# ---- comparing ----

def means_another(host):
    """Whether a server that was asked for this would serve a name that is not the allowed one."""
    return host is not None and EVIL in host.lower()


def compare(name, count, seed, serve):
    rng = random.Random(seed)
    requests = [request(rng) for _ in range(count)]
    done = subprocess.run([ASK, "hello"], input="".join(text.hex() + "\n" for text in requests), capture_output=True, text=True, timeout=300, check=True)
    verdicts, hosts = done.stdout.splitlines(), list(serve(requests))
    wrong = [(text, host, verdict) for text, host, verdict in zip(requests, hosts, verdicts) if means_another(host) and verdict in PASSES]
    if len(verdicts) != count or len(hosts) != count:
        return "not ok", name, f"{len(verdicts)} verdicts and {len(hosts)} answers for {count} requests"
    if sum(map(means_another, hosts)) < count // 50:
        return "not ok", name, f"the server has taken {sum(map(means_another, hosts))} requests only: the test says nothing"
    if wrong:
        return "not ok", name, f"{len(wrong)} of {count} pass, such as {wrong[0]!r}"
    return "ok", f"{name} ({count} requests, {sum(map(means_another, hosts))} of them for another name)", ""


def main():
    results = [compare("Python's http.server", PYTHON_COUNT, 1, ask_python)]
    if shutil.which("node"):
        results += [compare("node", NODE_COUNT, 2, ask_node("strict")), compare("node, lenient", NODE_COUNT, 3, ask_node("lenient"))]
    else:
        results.append(("skip", "node", "it is not installed"))
    for verdict, name, why in results:
        print(f"{verdict} {name}{': ' + why if why else ''}")
    print(*(f"{sum(r[0] == v for r in results)} {w}" for v, w in (("ok", "passed"), ("not ok", "failed"), ("skip", "skipped"))), sep=", ")
    return any(result[0] == "not ok" for result in results)


if __name__ == "__main__":
    sys.exit(main())
