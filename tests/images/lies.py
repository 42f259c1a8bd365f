"""A server that lies: other bytes, no end, half of it, elsewhere, nothing at all. px ends with PX816 or PX815, in bounded time and memory, and
what it knows goes nowhere else."""

import array
import base64
import gzip
import http.server
import os
import resource
import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path

from registry import certificate
from world import CONFIG, LAYER, LIMIT_S, MANIFEST, ROOT, check, dump, layer_tar, sha, test, until

LOGIN = {"PX_REGISTRY_USERNAME": "alice", "PX_REGISTRY_PASSWORD": "pw"}
BASIC = "Basic " + base64.b64encode(b"alice:pw").decode()


class Server:
    """Calls what the test gives it with each request; whatever that returns (status, headers, body) is the answer, None is none."""

    def __init__(self, world, answer, tls=None):
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                outer.requests.append((self.command, self.path, dict(self.headers)))
                try:
                    said = answer(self)
                    if said is not None:
                        status, headers, body = said
                        self.send_response(status)
                        for name, value in {"Content-Length": str(len(body)), **headers}.items():
                            self.send_header(name, value)
                        self.end_headers()
                        self.wfile.write(b"" if self.command == "HEAD" else body)
                except OSError:
                    pass            # px went away, as it should

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = handle_one

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls["certificate"], tls["key"])
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
            self.server.handle_error = lambda *_: None      # the question in plain http that comes first
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        world.on_close(self.close)
        self.port = self.server.server_address[1]
        self.name = f"127.0.0.1:{self.port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Image:
    """A good image, as a server has it."""

    def __init__(self, size=0):
        tar = layer_tar({**ROOT, "data": os.urandom(size)})
        self.layer = gzip.compress(tar, mtime=0) if size == 0 else tar
        self.config = dump({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(tar)]}})
        self.manifest = dump({"schemaVersion": 2, "mediaType": MANIFEST, "config": self.about(self.config, CONFIG),
                              "layers": [self.about(self.layer, LAYER + ("+gzip" if size == 0 else ""))]})
        self.layer_path = "/v2/app/blobs/sha256:" + sha(self.layer)

    @staticmethod
    def about(data, media):
        return {"mediaType": media, "digest": "sha256:" + sha(data), "size": len(data)}

    def answer(self, request):
        if request.path == "/v2/":
            return 200, {}, b"{}"
        if request.path.startswith("/v2/app/manifests/"):
            return 200, {"Content-Type": MANIFEST}, self.manifest
        for data in (self.config, self.layer):
            if request.path == "/v2/app/blobs/sha256:" + sha(data):
                return 200, {}, data
        return 404, {}, b'{"errors":[{"code":"NOT_HERE","message":"there is no such thing"}]}'


def serve(world, image, change):
    """The good image's server but for what `change` says; it returns NotImplemented for what it leaves as it is."""
    def answer(request):
        said = change(request)
        return image.answer(request) if said is NotImplemented else said

    return Server(world, answer)


def forever(request, status=200, headers=None, size=None):
    request.send_response(status)
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    if size is None:
        request.send_header("Connection", "close")
    else:
        request.send_header("Content-Length", str(size))
    request.end_headers()
    sent = 0
    while sent < (4 << 30):
        request.wfile.write(b"x" * 65536)
        sent += 65536


@test
def lies_not_at_all(world):
    """The twin of all others: the same server, telling the truth."""
    image = Image()
    server = serve(world, image, lambda _: NotImplemented)
    got = world.tool("pull", f"{server.name}/app:1")
    check(got["manifest"] == sha(image.manifest), "another image")
    world.tree(got["manifest"])


@test
def lies_other_bytes(world):
    image = Image()
    other = bytes(len(image.layer))
    server = serve(world, image, lambda r: (200, {}, other) if r.path == image.layer_path else NotImplemented)
    world.refused(816, sha(image.layer), "pull", f"{server.name}/app:1")
    for data in (image.layer[:-1], image.layer + b"x", b""):
        server = serve(world, image, lambda r, data=data: (200, {}, data) if r.path == image.layer_path else NotImplemented)
        world.refused(816, "", "pull", f"{server.name}/app:1")
    server = serve(world, image, lambda _: NotImplemented)
    world.refused(816, "0" * 64, "pull", f"{server.name}/app@sha256:{'0' * 64}")
    for kind, code in (("text/html", 815), ("", 815), ("application/vnd.oci.image.index.v1+json", 815),
                       ("application/vnd.docker.distribution.manifest.v1+prettyjws", 815)):
        server = serve(world, image, lambda r, kind=kind: (200, {"Content-Type": kind}, image.manifest) if "/manifests/" in r.path else NotImplemented)
        world.refused(code, "", "pull", f"{server.name}/app:1")
    check(not any((world.top / "home").glob("store/blobs/sha256/*")), "something was kept")


def children_memory():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


@test
def lies_without_end(world):
    """A manifest, a blob, an error, headers and a token that never end: each has its bound, in memory too."""
    image = Image()
    before = children_memory()
    server = serve(world, image, lambda r: forever(r, headers={"Content-Type": MANIFEST}) if "/manifests/" in r.path else NotImplemented)
    world.refused(816, "longer", "pull", f"{server.name}/app:1")
    server = serve(world, image, lambda r: forever(r) if r.path == image.layer_path else NotImplemented)
    world.refused(816, "longer", "pull", f"{server.name}/app:1")
    server = serve(world, image, lambda r: forever(r, size=1 << 50) if r.path == image.layer_path else NotImplemented)
    world.refused(816, "longer", "pull", f"{server.name}/app:1")
    server = serve(world, image, lambda r: forever(r, status=500) if "/manifests/" in r.path else NotImplemented)
    world.refused(816, "500", "pull", f"{server.name}/app:1")

    def headers(request):
        if "/manifests/" not in request.path:
            return NotImplemented
        request.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for i in range(1 << 22):
            request.wfile.write(b"X-%d: %s\r\n" % (i, b"y" * 1000))
        return None

    server = serve(world, image, headers)
    world.refused(816, "", "pull", f"{server.name}/app:1")

    def one_header(request):
        if "/manifests/" not in request.path:
            return NotImplemented
        request.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(1 << 16):
            request.wfile.write(b"y" * 65536)
        return None

    server = serve(world, image, one_header)
    world.refused(816, "", "pull", f"{server.name}/app:1")
    check(children_memory() - before < 300 << 10, f"it took {children_memory()} KiB")


def cut(request, data, at, status=200, headers=None):
    """Promises all of it and sends a part."""
    request.send_response(status)
    for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(data[:at])
    request.wfile.flush()
    request.connection.shutdown(socket.SHUT_RDWR)
    request.close_connection = True


@test
def lies_cut_off(world):
    """A connection that ends early is taken up where it ended; one that brings nothing any more is given up."""
    image = Image(1 << 20)
    asked = []

    def in_pieces(request):
        if request.path != image.layer_path:
            return NotImplemented
        asked.append(request.headers.get("Range"))
        start = int(asked[-1].removeprefix("bytes=").rstrip("-")) if asked[-1] else 0
        cut(request, image.layer[start:], 300000, 206 if asked[-1] else 200)
        return None

    server = serve(world, image, in_pieces)
    check(world.tool("pull", f"{server.name}/app:1")["manifest"] == sha(image.manifest), "another image")
    check(asked == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"], f"{asked}")

    def from_the_start(request):                        # does not know Range
        if request.path != image.layer_path:
            return NotImplemented
        asked.append(request.headers.get("Range"))
        if len(asked) > 2:
            return NotImplemented
        cut(request, image.layer, 200000)
        return None

    asked.clear()
    server = serve(world, image, from_the_start)
    check(world.tool("pull", f"{server.name}/app:1", home="two")["manifest"] == sha(image.manifest), "another image")
    check(asked == [None, "bytes=200000-", "bytes=200000-"], f"{asked}")
    server = serve(world, image, lambda r: cut(r, image.layer, 1000) if r.path == image.layer_path else NotImplemented)
    world.refused(816, "cut", "pull", f"{server.name}/app:1")
    check(len(server.requests) < 40, f"{len(server.requests)} requests")
    server = serve(world, image, lambda r: cut(r, image.manifest, 100, headers={"Content-Type": MANIFEST}) if "/manifests/" in r.path else NotImplemented)
    world.refused(816, "cut", "pull", f"{server.name}/app:1")


@test
def lies_elsewhere(world):
    """A blob may lie elsewhere; the credentials do not go there, nor anything to a place that px does not go to."""
    image = Image()
    elsewhere = Server(world, image.answer)

    def guarded(target):
        def answer(request):
            if request.headers.get("Authorization") != BASIC:
                return 401, {"WWW-Authenticate": 'Basic realm="x"'}, b""
            if "/blobs/" in request.path and target:
                return 307, {"Location": target + request.path}, b""
            return image.answer(request)
        return Server(world, answer)

    server = guarded(f"http://{elsewhere.name}")
    check(world.tool("pull", f"{server.name}/app:1", env=LOGIN)["manifest"] == sha(image.manifest), "another image")
    check(len(elsewhere.requests) == 2 and all("Authorization" not in headers for _, _, headers in elsewhere.requests), f"{elsewhere.requests}")
    check(all(headers.get("Authorization") in (None, BASIC) for _, _, headers in server.requests), "other credentials")
    elsewhere.requests.clear()
    relative = guarded("")
    check(world.tool("pull", f"{relative.name}/app:1", home="rel", env=LOGIN)["manifest"] == sha(image.manifest), "another image")
    for target in ("http://192.0.2.1", "http://registry.example", "ftp://127.0.0.1", "file:///etc/passwd#", f"http://alice@{elsewhere.name}",
                   "http://127.0.0.1.registry.example", "http://[::ffff:192.0.2.1]", "//192.0.2.1", "http://3221225985"):
        server = guarded(target)
        world.refused(816, "sends px to", "pull", f"{server.name}/app:1", env=LOGIN)
    check(elsewhere.requests == [], f"{elsewhere.requests}")
    loop = serve(world, image, lambda r: (302, {"Location": r.path + "x"}, b"") if "/blobs/" in r.path else NotImplemented)
    world.refused(816, "too many", "pull", f"{loop.name}/app:1")
    check(len(loop.requests) < 12, f"{len(loop.requests)} requests")
    nowhere = serve(world, image, lambda r: (302, {}, b"") if "/blobs/" in r.path else NotImplemented)
    world.refused(816, "", "pull", f"{nowhere.name}/app:1")


@test
def lies_to_have_it_in_the_open(world):
    """A registry with TLS that sends px to a place without, for a blob, a token or an upload: px does not go."""
    tls = certificate(world, "DNS:localhost,IP:127.0.0.1")
    known = {"SSL_CERT_FILE": str(world.top / "ca.pem"), **LOGIN}
    image = Image()
    plain = Server(world, lambda r: (200, {}, b'{"token":"t"}') if "/t?" in r.path else image.answer(r))
    good = Server(world, image.answer, tls)
    check(world.tool("pull", f"localhost:{good.port}/app:1", env=known)["manifest"] == sha(image.manifest), "not even the good one")
    moved = Server(world, lambda r: (307, {"Location": f"http://{plain.name}{r.path}"}, b"") if "/blobs/" in r.path else image.answer(r), tls)
    world.refused(816, "sends px to", "pull", f"localhost:{moved.port}/app:1", env=known)
    asking = Server(world, lambda _: (401, {"WWW-Authenticate": f'Bearer realm="http://localhost:{plain.port}/t"'}, b""), tls)
    world.refused(816, "token server", "pull", f"localhost:{asking.port}/app:1", env=known)

    def upload(request):
        if request.command == "HEAD":
            return 404, {}, b""
        return (202, {"Location": f"http://{plain.name}/up", "Range": "0-0"}, b"") if request.command == "POST" else (200, {}, b"{}")

    sending = Server(world, upload, tls)
    world.refused(816, "does not go", "push", world.image(), f"localhost:{sending.port}/app:1", home="home", env=known)
    check(plain.requests == [], f"it went there: {plain.requests}")


@test
def lies_about_who_is_asked(world):
    """Challenges: a realm where px does not go, one on another host, none that px knows, and texts that are no challenge."""
    image = Image()
    tokens = Server(world, lambda _: (200, {}, b'{"token":"t"}'))

    def challenging(text):
        def answer(request):
            if request.headers.get("Authorization") != "Bearer t":
                return 401, {"WWW-Authenticate": text}, b""
            return image.answer(request)
        return Server(world, answer)

    server = challenging(f'Negotiate, Basic realm="a, b", Bearer realm="http://{tokens.name}/t",service="s\\"x",scope="repository:other:*"')
    check(world.tool("pull", f"{server.name}/app:1", env=LOGIN)["manifest"] == sha(image.manifest), "another image")
    path, headers = tokens.requests[0][1:]
    check("scope=repository%3Aapp%3Apull" in path and "other" not in path and headers.get("Authorization") == BASIC, f"{path} {headers}")
    tokens.requests.clear()
    server = challenging(f'Bearer realm="http://localhost:{tokens.port}/t"')
    world.tool("pull", f"{server.name}/app:1", home="two", env=LOGIN)
    check(tokens.requests and all("Authorization" not in h for _, _, h in tokens.requests), "credentials went to another host")
    for realm in ("http://192.0.2.1/t", "http://registry.example/t", "file:///etc/passwd", "", f"http://x@{tokens.name}/t", "/t"):
        server = challenging(f'Bearer realm="{realm}"')
        world.refused(816, "token server", "pull", f"{server.name}/app:1", env=LOGIN)
    for text in ("Digest realm=x", "Bearer realm=\"x", "Bearer realm=a, realm=b", "=", ",,,", "Bearer", "Basic" * 800, "\xff\xfe",
                 "Bearer realm=" + "x" * 3000):
        server = challenging(text)
        world.refused(816, "", "pull", f"{server.name}/app:1")
    for body in (b"", b"{", b"[]", b"{}", b'{"token":7}', b'{"token":"a b"}', b'{"token":"a\\r\\nX: y"}', b'{"token":"' + b"x" * 20000 + b'"}'):
        bad = Server(world, lambda _, body=body: (200, {}, body))
        server = challenging(f'Bearer realm="http://{bad.name}/t"')
        world.refused(816, "", "pull", f"{server.name}/app:1")
    again = Server(world, lambda _: (401, {"WWW-Authenticate": f'Bearer realm="http://{tokens.name}/t"'}, b""))
    world.refused(816, "401", "pull", f"{again.name}/app:1")
    check(len(again.requests) < 8, f"{len(again.requests)} requests")


@test
def lies_in_words(world):
    """What the server says is shown, cut short, and without anything that a terminal obeys."""
    image = Image()
    for body in (b'{"errors":[{"code":"DENIED","message":"\\u001b[31mred ' + b"x" * 5000 + b'"}]}', b"\x1b[31mred\x07\x00\xff" + b"x" * 5000,
                 b'{"errors":7}', b'{"errors":[7]}', b"[" * 5000, b""):
        server = serve(world, image, lambda r, body=body: (403, {}, body) if "/manifests/" in r.path else NotImplemented)
        text = world.refused(816, "403", "pull", f"{server.name}/app:1")
        check(len(text) < 2000, f"{len(text)} bytes of words")
        check(b"red" not in body or "red" in text, f"it does not say what the server said: {text}")


@test
def lies_in_silence(world):
    """A server that says nothing any more, and one that says a byte now and then: both are given up."""
    image = Image()
    over = threading.Event()
    world.on_close(over.set)

    def silence(request):
        if "/manifests/" not in request.path:
            return NotImplemented
        request.send_response(200)
        request.send_header("Content-Type", MANIFEST)
        request.send_header("Content-Length", "100000")
        request.end_headers()
        while not over.wait(1):
            request.wfile.write(b"x")
        return None

    server = serve(world, image, silence)
    world.refused(816, "", "pull", f"{server.name}/app:1")


@test
def lies_while_pushing(world):
    """An upload that is cut off goes on where the registry says; one whose answers make no sense ends."""
    def fake(first_piece, location=None, status=None):
        state = {"blobs": {}, "part": b"", "cuts": 0, "manifest": None, "wrong": False}

        def answer(request):
            length = int(request.headers.get("Content-Length", 0))
            where = {"Location": location or "/v2/app/blobs/uploads/1?s=a", "Range": f"0-{max(len(state['part']) - 1, 0)}"}
            if request.command == "HEAD":
                return 404, {}, b""
            if request.command == "POST":
                state["part"] = b""
                return status or 202, {**where, "Range": "0-0"}, b""
            if request.command == "PATCH":
                if state["cuts"] == 0 and length > first_piece:
                    state["cuts"] += 1
                    state["part"] += request.rfile.read(first_piece)
                    request.connection.shutdown(socket.SHUT_RDWR)
                    request.close_connection = True
                    return None
                state["wrong"] |= not request.headers["Content-Range"].startswith(f"{len(state['part'])}-")
                state["part"] += request.rfile.read(length)
                return 202, {**where, "Range": f"0-{len(state['part']) - 1}"}, b""
            if request.command == "GET" and "uploads" in request.path:
                return 204, where, b""
            if request.command == "PUT" and "uploads" in request.path:
                digest = request.path.rpartition("digest=")[2]
                state["blobs"][digest] = state["part"]
                return 201 if digest == "sha256:" + sha(state["part"]) else 400, {}, b""
            if request.command == "PUT":
                state["manifest"] = request.rfile.read(length)
                return 201, {}, b""
            return 200, {}, b"{}"

        return Server(world, answer), state

    made = world.tool("make", "none", *world.two_layers())
    for first_piece in (0, 1, 100000):
        server, state = fake(first_piece)
        world.tool("push", made["manifest"], f"{server.name}/app:1")
        check(not state["wrong"], f"{first_piece}: it goes on elsewhere")
        check(state["cuts"] == 1 and sha(state["manifest"]) == made["manifest"] and len(state["blobs"]) == 3, f"{first_piece}: {state['cuts']}")
    for location in ("http://192.0.2.1/x", "file:///etc/passwd", "http://registry.example/"):
        server, state = fake(1 << 30, location=location)
        world.refused(816, "does not go", "push", made["manifest"], f"{server.name}/app:1", home="home")
    for status in (200, 500, 403):
        server, state = fake(1 << 30, status=status)
        world.refused(816, str(status), "push", made["manifest"], f"{server.name}/app:1", home="home")


# ---- the helper itself ---------------------------------------------------------------------------------------------


class Helper:
    """px-fetch, spoken to as px does."""

    def __init__(self, world, program):
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket = ours
        ours.settimeout(LIMIT_S)
        self.process = subprocess.Popen(["/bin/bash", "-c", f'exec "$0" 3<&{its.fileno()}', program], pass_fds=[its.fileno()], env={})
        its.close()
        world.on_close(self.close)

    def close(self):
        self.socket.close()
        self.process.kill()
        self.process.wait()

    def set_up(self):
        self.socket.send(bytes(4 * 4096))
        check(self.socket.recv(1) == b"\0", "it is not ready")

    def ask(self, url, role=0, descriptor=None, outward=0):
        order = struct.pack("=IIQQQQ", 0, role, 0, 0, 4096, outward) + url.ljust(8192, b"\0") + bytes(24 << 10)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))] if descriptor is not None else []
        self.socket.sendmsg([order], rights)
        while True:
            answer = self.socket.recv(65536)
            if len(answer) > 24 or not answer:
                return answer


@test
def helper_is_confined(world):
    """No privilege, no new program, a filter; no scheme but the two, and http to this machine only. What is not an order ends it."""
    program = str(Path(world.program).parent / "px-fetch")
    helper = Helper(world, program)
    helper.set_up()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{helper.process.pid}/status").read_text().splitlines())
    for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapEff", "0" * 16), ("CapPrm", "0" * 16), ("CapInh", "0" * 16)):
        check(status[name].strip() == value, f"{name} is {status[name].strip()}")
    if os.getuid() == 0:
        check(status["CapBnd"].strip() == "0" * 16, f"CapBnd is {status['CapBnd']}")
    for url in (b"file:///etc/passwd", b"ftp://127.0.0.1/", b"http://192.0.2.1/", b"gopher://127.0.0.1:1/", b"", b"x" * 8191, b"http://"):
        answer = helper.ask(url)
        check(struct.unpack("=I", answer[:4])[0] == 2, f"{url[:40]} did not fail")
        check(b"root:" not in answer, "it reads files")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for host in (b"127.0.0.1", b"localhost", b"[::ffff:127.0.0.1]", b"0.0.0.0"):
            for scheme in (b"http", b"https"):
                answer = helper.ask(b"%s://%s:%d/" % (scheme, host, port), outward=1)
                check(struct.unpack("=I", answer[:4])[0] == 2, f"{scheme} {host} did not fail")
                check(b"private or local address" in answer or b"plain http" in answer, f"{scheme} {host}: {answer[:400]}")
        listener.settimeout(0)
        try:
            listener.accept()
            check(False, "an outward request came to this machine")
        except BlockingIOError:
            pass
    for junk in (b"x", bytes(40000)):
        other = Helper(world, program)
        other.set_up()
        other.socket.send(junk)
        check(other.process.wait(LIMIT_S) != 0, "it goes on")
    late = Helper(world, program)
    late.socket.send(b"x" * 10)
    check(late.process.wait(LIMIT_S) != 0, "it starts without its setup")
    until(lambda: helper.process.poll() is None, "the first one is gone")
    helper.socket.close()
    check(helper.process.wait(LIMIT_S) == 0, "it does not end with its socket")
