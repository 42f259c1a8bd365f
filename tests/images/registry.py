"""Debian's registry, as it comes: plain, with passwords, with TLS, with tokens."""

import base64
import crypt
import http.server
import json
import os
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request
import warnings

from formats import merged, skopeo
from world import INDEX, LIMIT_S, MANIFEST, check, dump, need, sha, test, until

warnings.simplefilter("ignore")


class Registry:
    """A process of docker-registry over a directory of the test's own; settings are JSON, which is YAML."""

    def __init__(self, world, **more):
        need("docker-registry")
        self.top = world.fresh("registry")
        self.top.mkdir()
        http_settings = {"addr": "127.0.0.1:0", "secret": "s", **more.pop("http", {})}
        config = {"version": 0.1, "storage": {"filesystem": {"rootdirectory": str(self.top / "data")}}, "http": http_settings,
                  "log": {"level": "info"}, **more}
        (self.top / "config.yml").write_bytes(dump(config))
        self.log = open(self.top / "log", "w+b")    # noqa: SIM115 - closed by close
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.top / "config.yml")], stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL, cwd=self.top, env={"PATH": os.environ["PATH"], "HOME": str(self.top)})
        world.on_close(self.close)
        self.port = int(until(self.find_port, "the registry does not start"))
        self.name = f"localhost:{self.port}"

    def said(self):
        return (self.top / "log").read_text(errors="replace")

    def find_port(self):
        check(self.process.poll() is None, f"the registry ended: {self.said()[-300:]}")
        found = re.search(r"listening on [^ \"]*:(\d+)", self.said())
        return found and found.group(1)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def openssl(world, *words):
    need("openssl")
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, timeout=LIMIT_S, check=False, cwd=world.top, stdin=subprocess.DEVNULL)
    check(done.returncode == 0, f"openssl {words[0]}: {done.stderr.decode()[-300:]}")
    return done.stdout


def certificate(world, names):
    """An authority and a certificate of its own for these names."""
    openssl(world, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test authority",
            "-keyout", "ca.key", "-out", "ca.pem")
    openssl(world, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test", "-keyout", "tls.key",
            "-out", "tls.csr")
    (world.top / "ext").write_text("subjectAltName=" + names + "\n")
    openssl(world, "x509", "-req", "-in", "tls.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext",
            "-out", "tls.pem")
    return {"certificate": str(world.top / "tls.pem"), "key": str(world.top / "tls.key")}


@test
def registry_push_and_pull(world):
    """Out and in again under the same digest; twice sends nothing; another store gets the same files."""
    registry = Registry(world)
    made = world.image()
    world.tool("push", made, f"{registry.name}/team/app:1")
    got = world.tool("pull", f"{registry.name}/team/app:1", home="other")
    check(got["manifest"] == made, f"{got['manifest']} and {made}")
    check(merged(world, made, "other") == merged(world, made), "other files")
    check(world.tool("pull", f"{registry.name}/team/app@sha256:{made}", home="third")["manifest"] == made, "not by its digest")
    uploads = registry.said().count("PATCH /v2/")
    world.tool("push", made, f"{registry.name}/team/app:2")
    check(uploads > 0 and registry.said().count("PATCH /v2/") == uploads, "what is there was sent again")
    world.refused(816, "manifest unknown", "pull", f"{registry.name}/team/app:none")
    world.refused(816, "", "pull", f"{registry.name}/team/none:1")
    world.refused(816, "127.0.0.1", "pull", "127.0.0.1:1/team/none:1")


@test
def registry_mounts_from_base(world):
    """Layers of a base that lies at the same registry are not sent again."""
    registry = Registry(world)
    one, two = world.two_layers()
    base = world.tool("make", "gzip", one)["manifest"]
    world.tool("push", base, f"{registry.name}/base:1")
    app = world.tool("make", "gzip", f"@org.opencontainers.image.base.name={registry.name}/base:1", one, two)["manifest"]
    world.tool("push", app, f"{registry.name}/app:1")
    check("mount=sha256" in registry.said(), "no mount was asked for")
    check(world.tool("pull", f"{registry.name}/app:1", home="other")["manifest"] == app, "another image")


@test
def registry_large_blob(world):
    """A layer of several pieces."""
    registry = Registry(world)
    place = world.top / "large"
    place.mkdir()
    with open(place / "random", "wb") as out:
        for _ in range(70):
            out.write(os.urandom(1 << 20))
    made = world.tool("make", "none", place)["manifest"]
    world.tool("push", made, f"{registry.name}/large:1")
    check(registry.said().count("PATCH /v2/large") >= 3, "it was not sent in pieces")
    check(world.tool("pull", f"{registry.name}/large:1", home="other")["manifest"] == made, "another image")


@test
def registry_with_skopeo(world):
    """What px pushed skopeo copies, what skopeo pushed px pulls; docker's own types too."""
    registry = Registry(world)
    made = world.tool("make", "gzip", *world.two_layers())
    world.tool("push", made["manifest"], f"{registry.name}/px:1")
    source = f"docker://{registry.name}/px:1"
    seen = json.loads(skopeo(world, "inspect", "--tls-verify=false", source))
    check(seen["Digest"] == "sha256:" + made["manifest"], f"{seen}")
    for number, form in enumerate(("oci", "v2s2")):
        skopeo(world, "copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--format", form, source, f"docker://{registry.name}/copy:{form}")
        got = world.tool("pull", f"{registry.name}/copy:{form}", home=f"s{number}")
        check([x["diff_id"] for x in got["layers"]] == [x["diff_id"] for x in made["layers"]], f"{form}: other layers")
        check(merged(world, got["manifest"], f"s{number}") == merged(world, made["manifest"]), f"{form}: other files")
        world.tool("push", got["manifest"], f"{registry.name}/again:{form}", home=f"s{number}")
        again = json.loads(skopeo(world, "inspect", "--tls-verify=false", f"docker://{registry.name}/again:{form}"))
        check(again["Digest"] == "sha256:" + got["manifest"], f"{form}: pushed as another image")


@test
def registry_index(world):
    """A list of platforms, as most images in public are."""
    registry = Registry(world)
    made = world.tool("make", "gzip", *world.two_layers())
    world.tool("push", made["manifest"], f"{registry.name}/multi:one")
    size = (world.top / "home/store/blobs/sha256" / made["manifest"]).stat().st_size
    one = {"mediaType": MANIFEST, "digest": "sha256:" + made["manifest"], "size": size}
    index = dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [{**one, "platform": {"os": "linux", "architecture": made["architecture"]}}]})
    request = urllib.request.Request(f"http://{registry.name}/v2/multi/manifests/all", data=index, method="PUT", headers={"Content-Type": INDEX})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
        check(answer.status == 201, f"{answer.status}")
    check(world.tool("pull", f"{registry.name}/multi:all", home="other")["manifest"] == made["manifest"], "another image")
    pinned = f"{registry.name}/multi@sha256:{sha(index)}"
    check(world.tool("pull", pinned, home="third")["manifest"] == made["manifest"], "not by the index's digest")


@test
def registry_passwords(world):
    """Basic: none, wrong, half, from the environment, from the files of others."""
    line = "alice:" + crypt.crypt("secret word", crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)) + "\n"
    (world.top / "htpasswd").write_text(line)
    registry = Registry(world, auth={"htpasswd": {"realm": "test", "path": str(world.top / "htpasswd")}})
    made, ref = world.image(), f"{registry.name}/private/app:1"
    good = {"PX_REGISTRY_USERNAME": "alice", "PX_REGISTRY_PASSWORD": "secret word"}
    for words in (("push", made, ref), ("pull", ref)):
        world.refused(816, "no credentials", *words, home="home")
        text = world.refused(816, "refused", *words, home="home", env={**good, "PX_REGISTRY_PASSWORD": "wrong word"})
        check("wrong word" not in text, "the password is shown")
        world.refused(816, "only one of", *words, home="home", env={"PX_REGISTRY_USERNAME": "alice"})
        world.refused(816, "only one of", *words, home="home", env={"PX_REGISTRY_PASSWORD": "x"})
    world.tool("push", made, ref, env=good)
    check(world.tool("pull", ref, home="other", env=good)["manifest"] == made, "another image")
    for name in ("registry.example", f"{registry.name}0", "127.0.0.1"):
        world.refused(816, "no credentials", "pull", ref, home="home", env={**good, "PX_REGISTRY": name})
    check(world.tool("pull", ref, home="bound", env={**good, "PX_REGISTRY": registry.name})["manifest"] == made, "PX_REGISTRY")
    auth = {"auths": {"elsewhere.example": {"auth": "eDp5"}, registry.name: {"auth": base64.b64encode(b"alice:secret word").decode()}}}
    for name, variable in ((".config/containers/auth.json", None), (".docker/config.json", None), ("mine.json", "REGISTRY_AUTH_FILE"),
                           ("docker/config.json", "DOCKER_CONFIG"), ("run/containers/auth.json", "XDG_RUNTIME_DIR")):
        path = world.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dump(auth))
        value = {"REGISTRY_AUTH_FILE": path, "DOCKER_CONFIG": path.parent, "XDG_RUNTIME_DIR": world.top / "run"}.get(variable)
        env = {variable: str(value)} if variable else None
        check(world.tool("pull", ref, home=world.fresh("home").name, env=env)["manifest"] == made, f"not with {name}")
        path.unlink()
    path = world.top / ".docker/config.json"
    path.write_bytes(dump({"auths": {registry.name: {"auth": "!!"}}}))
    world.refused(816, "not a name and a password", "pull", ref)
    path.write_bytes(b"{")
    world.refused(816, "config.json", "pull", ref)


@test
def registry_tls(world):
    """A certificate of an authority that is known, of one that is not, and for another name."""
    registry = Registry(world, http={"tls": certificate(world, "DNS:localhost,IP:127.0.0.1")})
    made = world.image()
    known = {"SSL_CERT_FILE": str(world.top / "ca.pem")}
    for host in (f"localhost:{registry.port}", f"127.0.0.1:{registry.port}"):
        world.refused(816, "certificate", "push", made, f"{host}/app:1", home="home")
        world.tool("push", made, f"{host}/app:1", env=known)
        check(world.tool("pull", f"{host}/app:1", home=world.fresh("home").name, env=known)["manifest"] == made, "another image")
    hashed = world.top / "certs"
    hashed.mkdir()
    name = openssl(world, "x509", "-hash", "-noout", "-in", "ca.pem").decode().strip()
    (hashed / f"{name}.0").write_bytes((world.top / "ca.pem").read_bytes())
    check(world.tool("pull", f"localhost:{registry.port}/app:1", home="dir", env={"SSL_CERT_DIR": str(hashed)})["manifest"] == made, "not by SSL_CERT_DIR")


@test
def registry_tls_other_name(world):
    registry = Registry(world, http={"tls": certificate(world, "DNS:elsewhere.example")})
    world.refused(816, "", "pull", f"localhost:{registry.port}/app:1", env={"SSL_CERT_FILE": str(world.top / "ca.pem")})
    check("GET /v2/app" not in registry.said(), "something was asked of a server that is not the right one")


class Tokens:
    """A server that gives tokens to alice, and to nobody a token to push."""

    def __init__(self, world, key, cert):
        self.world, self.key, self.cert = world, key, cert
        self.seen = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):   # noqa: N802 - the library's name
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        world.on_close(self.close)
        self.port = self.server.server_address[1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def token(self, access):
        def part(data):
            return base64.urlsafe_b64encode(data).rstrip(b"=")

        der = openssl(self.world, "x509", "-in", self.cert, "-outform", "DER")
        now = int(time.time())
        header = {"typ": "JWT", "alg": "RS256", "x5c": [base64.b64encode(der).decode()]}
        claims = {"iss": "test issuer", "sub": "alice", "aud": "test service", "exp": now + 3600, "nbf": now - 60, "iat": now, "jti": "1",
                  "access": access}
        signed = part(dump(header)) + b"." + part(dump(claims))
        (self.world.top / "signed").write_bytes(signed)
        signature = openssl(self.world, "dgst", "-sha256", "-sign", self.key, "signed")
        return (signed + b"." + part(signature)).decode()

    def answer(self, request):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(request.path).query)
        login = request.headers.get("Authorization", "")
        self.seen.append((request.path, login))
        known = login == "Basic " + base64.b64encode(b"alice:pw").decode()
        kind, name, actions = query["scope"][0].split(":")
        actions = actions.split(",") if known else ["pull"] if name.startswith("public/") else []
        body = dump({"errors": [{"code": "DENIED", "message": "who are you"}]})
        if actions:
            body = dump({"token": self.token([{"type": kind, "name": name, "actions": actions}])})
        request.send_response(200 if actions else 401)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@test
def registry_tokens(world):
    """Bearer: a token server beside the registry, credentials for it, a repository that everybody may read."""
    openssl(world, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tokens", "-keyout", "token.key", "-out", "token.pem")
    tokens = Tokens(world, "token.key", "token.pem")
    settings = {"realm": f"http://localhost:{tokens.port}/token?account=x", "service": "test service", "issuer": "test issuer"}
    registry = Registry(world, auth={"token": {**settings, "rootcertbundle": str(world.top / "token.pem")}})
    made = world.image()
    good = {"PX_REGISTRY_USERNAME": "alice", "PX_REGISTRY_PASSWORD": "pw"}
    for name in ("public/app", "private/app"):
        world.refused(816, "", "push", made, f"{registry.name}/{name}:1", home="home")
        world.tool("push", made, f"{registry.name}/{name}:1", env=good)
        check(world.tool("pull", f"{registry.name}/{name}:1", home=world.fresh("home").name, env=good)["manifest"] == made, "another image")
    check(world.tool("pull", f"{registry.name}/public/app:1", home="anon")["manifest"] == made, "not without a name")
    world.refused(816, "who are you", "pull", f"{registry.name}/private/app:1")
    check(any("account=x&service=test%20service&scope=repository%3Aprivate%2Fapp%3Apull%2Cpush" in path for path, _ in tokens.seen), f"{tokens.seen[:3]}")
    # The same server under another name is another host: it gets no credentials.
    tokens.seen.clear()
    world.refused(816, "", "pull", f"127.0.0.1:{registry.port}/private/app:1", env=good)
    check(tokens.seen and all(login == "" for _, login in tokens.seen), f"credentials went to another host: {tokens.seen}")
