"""pack_place.py - what the tests of px pack image share: repositories, images as anybody reads them."""

import hashlib
import io
import json
import subprocess
import tarfile

from cases import TESTS, check
from projects import ALPHA, LIMIT_S, equal

TESTS.clear()           # those of projects.py are a part of their own
CLEAN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": "/usr/bin:/bin", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
         "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000",
         "LC_ALL": "C.UTF-8"}
MAIN = b"import sys\nimport alpha\nprint('the demo runs', *sys.argv[1:])\nalpha.main()\n"


def git(directory, *words):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-c", "protocol.file.allow=always", *map(str, words)], cwd=directory, env=CLEAN,
                          capture_output=True, timeout=LIMIT_S, check=False)
    check(done.returncode == 0, f"git {words[0]}: {done.stderr.decode(errors='replace')[-300:]}")
    return done.stdout.decode(errors="surrogateescape")


def commit(directory):
    if not (directory / ".git").exists():
        git(directory, "init", "-q", "-b", "main")
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", "x")


def make(world, files=None, **more):
    """A committed, synced project with a main.py that uses its environment."""
    project = world.project(ALPHA, **more)
    for name, data in {"main.py": MAIN, **(files or {})}.items():
        path = project.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    project.synced()
    commit(project.dir)
    return project


def pack(project, *words, **more):
    return project.ask("pack", "image", *words, **more)["details"]


class Archive:
    """An OCI archive as anybody reads it."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))

    def blob(self, descriptor):
        data = self.files["blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")]
        equal((hashlib.sha256(data).hexdigest(), len(data)), (descriptor["digest"].removeprefix("sha256:"), descriptor["size"]), "a blob")
        return data

    def app(self):
        """{name: (member, bytes)} of the last layer."""
        with tarfile.open(fileobj=io.BytesIO(self.blob(self.manifest["layers"][-1]))) as tar:
            return {m.name: (m, tar.extractfile(m).read() if m.isfile() else None) for m in tar}


def packed_files(project, *words):
    """The names below app/ of what was packed, without the directories."""
    out = project.dir.parent / f"out{len(list(project.dir.parent.iterdir()))}.tar"
    pack(project, "--out", str(out), *words)
    return {name.removeprefix("app/"): value for name, value in Archive(out).app().items() if not value[0].isdir()}
