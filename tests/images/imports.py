"""px sandbox base import: the same files, wherever they come from, are the same base."""

import gzip
import io
import json
import os
import shutil
import socketserver
import subprocess
import tarfile
import threading
from pathlib import Path

from formats import docker_directory
from registry import Registry
from world import LAYER, LIMIT_S, Layout, check, layer_tar, need, pack_tar, test


def px(world, *words, home, status=0, env=None):
    done = subprocess.run([str(Path(world.program).parent / "px"), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S,
                          check=False, cwd=world.top, env=world.environment(home, env))
    check(done.returncode == status, f"px {words[:5]}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}")
    return done


def imported(world, source, home=None):
    return json.loads(px(world, "--json", "sandbox", "base", "import", "demo", source, home=home or world.fresh("home").name).stdout)


@test
def import_from_everywhere(world):
    """A directory, archives of every compression, a layout, archives of an image, a registry."""
    root, _ = world.two_layers()
    image = world.tool("make", "zstd", root)["manifest"]
    sources = [root]
    for mode, name in (("w", "a.tar"), ("w:gz", "a.tar.gz"), ("w:xz", "a.tar.xz"), ("w:bz2", "a.tar.bz2")):
        pack_tar(root, world.top / name, mode)
        sources.append(name)
    for form in ("oci", "oci-archive"):
        world.tool("write", image, form, world.top / form, "x.example/y:1")
        sources += [form, f"{form}:{form}:x.example/y:1"]
    plain = world.tool("make", "none", root)["manifest"]
    world.tool("write", plain, "docker-archive", world.top / "docker.tar", "x.example/y:1")
    sources += ["docker.tar", "docker-archive:docker.tar:x.example/y:1"]
    if shutil.which("docker-registry"):
        registry = Registry(world)
        world.tool("push", image, f"{registry.name}/a/b:1")
        sources += [f"docker://{registry.name}/a/b:1", f"docker://{registry.name}/a/b@sha256:{image}"]
    first = imported(world, sources[0])
    check(first["variant"] == "imported" and first["source"] == str(root), f"{first}")
    for source in sources[1:]:
        base = imported(world, source)
        check(base["base_os_oid"] == first["base_os_oid"], f"{source}: another base than the directory")
        check(base["layer"]["digest"] == first["layer"]["digest"], f"{source}: another layer than the directory")


@test
def import_runs(world):
    """What was imported is a root that boxes run in."""
    need("busybox")
    root, layer = world.top / "root", world.top / "layer"
    (root / "bin").mkdir(parents=True)
    (root / "etc").mkdir()
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    (root / "etc/gone").write_text("gone")
    (layer / "etc").mkdir(parents=True)
    (layer / "etc/said").write_text("from a layer\n")
    world.tool("write", world.tool("make", "gzip", root, layer)["manifest"], "oci", world.top / "out", "x")
    imported(world, "out", home="home")
    done = px(world, "exec", "--base", "demo", "--", "/bin/busybox", "cat", "/etc/said", home="home")
    check(done.stdout == b"from a layer\n", f"it said {done.stdout!r}")
    names = px(world, "sandbox", "base", "list", home="home").stdout.decode()
    check("demo" in names and "imported" in names, f"{names}")


@test
def import_build_and_push(world):
    """An image on a base that was imported: written out and pushed in one go, under one digest; its base comes back from it."""
    root, _ = world.two_layers()
    base = imported(world, root, home="home")
    registry = Registry(world)
    words = ("--json", "sandbox", "build", "--base", "demo", "--tag", f"{registry.name}/team/app:1", "--push", "--out")
    px(world, *words, world.top / "app.tar", home="home")
    pulled = world.tool("pull", f"{registry.name}/team/app:1", home="other")
    check(world.tool("read", world.top / "app.tar", home="third")["manifest"] == pulled["manifest"], "written and pushed images differ")
    check(pulled["layers"][0]["diff_id"] == base["layer"]["diff_id"], "the base's layer is another one")
    check(pulled["created"] == "1970-01-01T00:00:00Z" and pulled["architecture"], f"{pulled}")
    again = imported(world, f"docker://{registry.name}/team/app:1")
    if len(pulled["layers"]) == 1:
        check(again["base_os_oid"] == base["base_os_oid"], "another base came back")


@test
def import_refuses(world):
    """What is not a root, names that are none, images for other machines: refused, and the store is as it was."""
    (world.top / "empty").mkdir()
    (world.top / "text").write_text("not an archive\n" * 1000)
    other = Layout(world.top / "other")
    tar = layer_tar({"usr": None})
    other.index(other.parts(config={"architecture": "s390x"}, layers=[other.blob(gzip.compress(tar), LAYER + "+gzip")]))
    evil = io.BytesIO()
    with tarfile.open(fileobj=evil, mode="w") as archive:
        for name in ("usr", "../../escaped"):
            archive.addfile(tarfile.TarInfo(name))
    (world.top / "evil.tar").write_bytes(evil.getvalue())
    os.mkfifo(world.top / "pipe")
    for source, code in (("empty", "PX900"), ("text", "PX814"), ("other", "PX900"), ("evil.tar", "PX814"), ("pipe", "PX900"), ("nowhere", "PX007"),
                         ("docker://Short", "PX002"), ("docker://x.example/A", "PX002"), ("alpine:3.20", "PX007"), ("oci:other:none", "PX815"), ("docker://127.0.0.1:1/a", "PX816")):
        done = px(world, "sandbox", "base", "import", "demo", source, home="home", status=1)
        check(done.stderr.decode().startswith(code + " "), f"{source}: {done.stderr.decode()[:200]}")
    place, _ = docker_directory(world)
    for name in ("", "../x", "A", "a/b", ".x", "-x", "x" * 65, "0" * 64):
        done = px(world, "sandbox", "base", "import", "--", name, place, home="home", status=1)
        check(b"PX002" in done.stderr, f"{name}: {done.stderr[:200]}")
    store = world.top / "home/store"
    check(not (world.top / "escaped").exists(), "it escaped")
    check(not list((store / "tmp").iterdir()) and not list((store / "names").iterdir()), "something was left")
    check(not list((world.top / "home/sandbox/bases").iterdir()), "a base was left")


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy on loopback that writes down whom it is asked for, and connects to nobody."""

    allow_reuse_address, daemon_threads = True, True

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.server.asked.append(self.rfile.readline(1000).decode().split(" ")[1])
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    def __init__(self):
        self.asked = []
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@test
def import_from_docker_hub(world):
    """Which machine is asked for a name of Docker Hub; nobody is, here. What a SOURCE is stands in the errors."""
    with Proxy() as proxy:
        env = {"https_proxy": f"http://127.0.0.1:{proxy.server_address[1]}"}
        for source in ("docker://ubuntu:24.04", "docker://docker.io/library/ubuntu:24.04", "docker://docker.io/alpine:3.20"):
            proxy.asked.clear()
            done = px(world, "sandbox", "base", "import", "u", source, home="home", status=1, env=env)
            check(done.stderr.startswith(b"PX816 ") and set(proxy.asked) == {"registry-1.docker.io:443"}, f"{source}: {proxy.asked} {done.stderr[:300]}")
        proxy.shutdown()
    for words in (("sandbox", "base", "import", "u", "alpine:3.20"), ("exec", "--base", "ubuntu:24.04", "--", "true"),
                  ("sandbox", "base", "build", "ubuntu:24.04")):
        done = px(world, *words, home="home", status=125 if words[0] == "exec" else 1)
        check(b"docker://" in done.stderr and b"SOURCE is" in done.stderr, f"{words}: {done.stderr.decode()}")


@test
def import_ended_by_a_signal(world):
    """Killed in the middle: the next one finds everything as it was, and does it."""
    big = world.top / "big"
    (big / "usr").mkdir(parents=True)
    for i in range(40):
        (big / "usr" / str(i)).write_bytes(os.urandom(1 << 20))
    program = str(Path(world.program).parent / "px")
    for delay in (0.02, 0.1, 0.3):
        process = subprocess.Popen([program, "sandbox", "base", "import", "demo", "big"], cwd=world.top, env=world.environment("home", None),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    base = imported(world, "big", home="home")
    check(base["base_os_oid"] == imported(world, "big")["base_os_oid"], "another base than without the signals")
