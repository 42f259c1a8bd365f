"""What the tests of images share: the tool, stores of their own, images made by hand."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

from cases import Problem, Skip, check, test  # noqa: F401  those who use this module take them from here

LIMIT_S = 180
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def until(condition, why):
    end = time.monotonic() + LIMIT_S
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, why)
        time.sleep(0.02)


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def sha(data):
    return hashlib.sha256(data).hexdigest()


def dump(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


class World:
    """A directory, stores in it, and the tool that works on them."""

    def __init__(self, tool, top):
        self.program, self.top = str(tool), Path(top)
        self.count = 0
        self.closers = []

    def fresh(self, name="d"):
        self.count += 1
        return self.top / f"{name}{self.count}"

    def environment(self, home, more):
        base = {"PATH": os.environ["PATH"], "HOME": str(self.top), "TMPDIR": str(self.top), "LANG": "C.UTF-8"}
        return {**base, "PX_HOME": str(self.top / home), **(more or {})}

    def raw(self, *words, home="home", env=None):
        return subprocess.run([self.program, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False,
                              cwd=self.top, env=self.environment(home, env))

    def tool(self, *words, home="home", env=None):
        done = self.raw(*words, home=home, env=env)
        check(done.returncode == 0, f"{words}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}")
        return json.loads(done.stdout)

    def refused(self, code, says, *words, home=None, env=None):
        """It says so, once, in words that no terminal obeys; and nothing came of it."""
        done = self.raw(*words, home=home or self.fresh("home").name, env=env)
        text = done.stderr.decode("utf-8", errors="strict")
        check(done.returncode == 1, f"{words[:3]}: exit {done.returncode}, not refused: {done.stdout[:200]!r} {text[-200:]}")
        check(text.startswith(f"PX{code:03d} "), f"{words[:3]}: not PX{code:03d}: {text[:300]}")
        check(says.lower() in text.lower(), f"{words[:3]}: does not say '{says}': {text[:500]}")
        check(all(c >= " " or c == "\n" for c in text), f"{words[:3]}: control bytes in {text[:300]!r}")
        return text

    def tree(self, image, home="home"):
        return Path(self.tool("tree", image, home=home)["path"])

    def two_layers(self):
        """Directories of two layers, the second over the first."""
        one, two = self.fresh("one"), self.fresh("two")
        (one / "usr/bin").mkdir(parents=True)
        (one / "etc").mkdir()
        (one / "etc/motd").write_text("one\n")
        (one / "usr/bin/tool").write_text("#!/bin/sh\necho tool\n")
        (one / "usr/bin/tool").chmod(0o755)
        (one / "bin").symlink_to("usr/bin")
        (one / "usr/large").write_bytes(os.urandom(1000) * 3000)
        (two / "app").mkdir(parents=True)
        (two / "etc").mkdir()
        (two / "etc/motd").write_text("two\n")
        (two / "app/data").write_bytes(bytes(range(256)) * 50)
        return one, two

    def image(self, home="home", compression="gzip", words=()):
        one, two = self.two_layers()
        return self.tool("make", compression, *words, one, two, home=home)["manifest"]

    def on_close(self, function):
        self.closers.append(function)

    def close(self):
        for function in reversed(self.closers):
            function()


# ---- images made by hand -------------------------------------------------------------------------------------------


def layer_tar(files):
    """files: {name: bytes, or None for a directory}"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            info.mode = 0o755 if data is None else 0o644
            info.size = len(data or b"")
            tar.addfile(info, io.BytesIO(data or b""))
    return out.getvalue()


ROOT = {"usr": None, "usr/bin": None, "etc": None, "etc/motd": b"by hand\n"}


class Layout:
    """An OCI layout, written by another hand than px's."""

    def __init__(self, path):
        self.path = Path(path)
        (self.path / "blobs/sha256").mkdir(parents=True)
        self.write("oci-layout", dump({"imageLayoutVersion": "1.0.0"}))

    def write(self, name, data):
        (self.path / name).write_bytes(data)

    def blob_path(self, digest):
        return self.path / "blobs/sha256" / digest.removeprefix("sha256:")

    def blob(self, data, media, **more):
        digest = "sha256:" + sha(data)
        self.blob_path(digest).write_bytes(data)
        return {"mediaType": media, "digest": digest, "size": len(data), **more}

    def index(self, *entries, **more):
        self.write("index.json", dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": list(entries), **more}))
        return self

    def parts(self, config=None, layers=None, settings=None, layer_count=1, **manifest):
        """A whole image; what is given takes the place of what is usual. Returns the manifest's descriptor."""
        tar = layer_tar(ROOT)
        if layers is None:
            layers = [self.blob(gzip.compress(tar, mtime=0), LAYER + "+gzip")] * layer_count
        usual = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(tar)] * len(layers)},
                 "config": settings if settings is not None else {"Env": ["A=b"], "User": "7", "WorkingDir": "/etc", "Volumes": {"/v": {}}}}
        config = config if isinstance(config, bytes) else dump({**usual, **(config or {})})
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": self.blob(config, CONFIG), "layers": layers, **manifest}
        return self.blob(dump({k: v for k, v in document.items() if v is not None}), MANIFEST)


def pack_tar(directory, target, mode="w"):
    with tarfile.open(target, mode) as tar:
        for path in sorted(Path(directory).rglob("*")):
            tar.add(path, str(path.relative_to(directory)), recursive=False)
