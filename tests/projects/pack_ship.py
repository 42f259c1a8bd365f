"""Where an image goes, and who runs it: registries of this machine, other engines, without px."""

import json
import os
import re
import shutil
import subprocess

from cases import TESTS, Skip, check, test
from pack_place import MAIN, commit, make, pack
from projects import LIMIT_S, equal
from registry import Registry
import world as images

PRINTS = "the demo runs\nalpha /px/store/pkg-builds/"


class Place(images.World):
    """What registry.py calls a world."""

    def __init__(self, w):
        super().__init__(w.programs / "image-tool", w.top / f"registry{next(w.number)}")
        self.top.mkdir()


def uploads(registry):
    """The blobs that were sent so far."""
    return re.findall(r'"PUT /v2/[^ ]*/blobs/uploads/[^ ]*digest=sha256(?:%3A|:)([0-9a-f]{64})', registry.said())


@test
def p32_where_to(w):
    project = make(w)
    equal(project.refused("PX903", "pack", "image", "--push")["reason"], "missing_tag", "without a tag")
    for name in ("PX_REGISTRY_USERNAME", "PX_REGISTRY_PASSWORD"):
        details = project.refused("PX903", "pack", "image", "--push", "--tag", "localhost:1/a/b:1", **{name: "x"})
        equal(details["reason"], "registry_auth_missing", name)
    details = project.refused("PX903", "pack", "image", "--push", "--tag", "localhost:1/a/b:1")
    equal(details["reason"], "push_failed", "nobody is there")
    project.refused("PX002", "pack", "image", "--push", "--tag", "demo")


@test
def pushed_pulled_and_pushed_again(w):
    """The second time only the code goes out."""
    project, place = make(w), Place(w)
    try:
        registry = Registry(place)
        tag = f"{registry.name}/team/demo:1"
        first = pack(project, "--push", "--tag", tag)
        check(first["pushed"] and first["tag"] == tag, f"{first}")
        sent = uploads(registry)
        equal(len(sent), len(first["layers"]) + 1, f"what was sent first: {registry.said()[-1500:]}")
        pack(project, "--push", "--tag", tag)
        equal(uploads(registry), sent, "the same once more")
        got = place.tool("pull", tag)
        equal("sha256:" + got["manifest"], first["image_digest"], "what was pulled")
        (project.dir / "main.py").write_bytes(MAIN + b"print('more')\n")
        commit(project.dir)
        second = pack(project, "--push", "--tag", f"{registry.name}/team/demo:2")
        app, config = second["layers"][-1], got["config"]
        new = [digest for digest in uploads(registry) if digest not in sent]
        check(app["digest"].removeprefix("sha256:") in new and len(new) == 2 and config not in new, f"{new}")
        check(app["size"] < 10_000, f"{app}")
    finally:
        place.close()


@test
def a_registry_that_refuses(w):
    project, place = make(w), Place(w)
    images.need("openssl")
    try:
        import crypt
        (place.top / "passwords").write_text(f"alice:{crypt.crypt('pw', crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))}\n")
        registry = Registry(place, auth={"htpasswd": {"realm": "r", "path": str(place.top / "passwords")}})
        words = ("pack", "image", "--push", "--tag", f"{registry.name}/demo:1")
        equal(project.refused("PX903", *words)["reason"], "unauthorized", "without credentials")
        equal(project.refused("PX903", *words, PX_REGISTRY_USERNAME="alice", PX_REGISTRY_PASSWORD="no")["reason"], "unauthorized", "wrong ones")
        project.run(*words, PX_REGISTRY_USERNAME="alice", PX_REGISTRY_PASSWORD="pw")
    finally:
        place.close()


# ---- without px -------------------------------------------------------------------------------------------------------


def archive(w):
    if os.getuid() != 0:
        raise Skip("other engines need the administrator here")
    project = make(w)
    path = project.dir.parent / "image.tar"
    pack(project, "--out", str(path))
    return project, path


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL, **more)


HIDDEN = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")


def apart(*words, **more):
    """With a /run of its own: what podman keeps there has to have a short name, and goes with it."""
    return run("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh", *words, **more)


def alone(*words, **more):
    """Where the machine's cgroups are of a kind that an engine does not know, it is shown none."""
    return run(*HIDDEN, *words, **more)


def bundle(project, path):
    """Unpacked by others, as a container's bundle."""
    top = project.dir.parent
    done = run("skopeo", "copy", "-q", f"oci-archive:{path}", "oci:layout:x", cwd=top)
    check(done.returncode == 0, f"skopeo: {done.stderr[-300:]}")
    done = run("umoci", "unpack", "--image", "layout:x", "bundle", cwd=top)
    check(done.returncode == 0, f"umoci: {done.stderr[-300:]}")
    config = json.loads((top / "bundle/config.json").read_bytes())
    config["process"]["terminal"] = False
    config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] in ("mount", "pid", "ipc", "uts")]
    config["linux"].pop("resources", None)
    (top / "bundle/config.json").write_text(json.dumps(config))
    return top / "bundle"


@test
def run_by_crun_and_runc(w):
    for program in ("skopeo", "umoci"):
        images.need(program)
    project, path = archive(w)
    place, why = bundle(project, path), []
    equal(sorted(os.listdir(place / "rootfs/app")), ["main.py", "pyproject.toml", "requirements.txt"], "/app")
    for runtime, words in (("crun", ["--cgroup-manager=disabled"]), ("runc", [])):
        if not shutil.which(runtime):
            why.append(f"{runtime} is not installed")
            continue
        for start in (run, alone):
            done = start(runtime, *words, "--root", project.dir.parent / runtime, "run", "--bundle", place, f"px-pack-{os.getpid()}")
            if done.returncode == 0:
                break
        if done.returncode == 0:
            check(done.stdout.startswith(PRINTS), f"{runtime}: {done.stdout!r}")
        else:
            why.append(f"{runtime}: {(done.stderr or done.stdout).strip()[-120:]}")
    if len(why) == 2:
        raise Skip("no runtime can run here: " + "; ".join(why))


def podman_in(top):
    """The words that every call begins with, a policy file and an environment."""
    images.need("podman")
    policy = top / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    podman = ["podman", "--root", top / "storage", "--runroot", "/run/podman", "--tmpdir", "/run/podman-tmp", "--storage-driver", "vfs", "--cgroup-manager=cgroupfs", "--events-backend=none"]
    return podman, policy, {"PATH": os.environ["PATH"], "HOME": str(top), "XDG_RUNTIME_DIR": str(top), "TMPDIR": str(top)}


PODMAN_RUN = ("run", "--rm", "--cgroups=disabled", "--network=none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


@test
def run_by_podman(w):
    project, path = archive(w)
    podman, policy, env = podman_in(project.dir.parent)
    done = apart(*podman, "load", "-q", "--signature-policy", policy, "-i", path, env=env)
    if done.returncode != 0:
        raise Skip(f"podman cannot load here: {done.stderr.strip()[-160:]}")
    check("px.local/demo:1.2.3" in done.stdout, done.stdout)
    for before in ((), HIDDEN):
        done = apart(*before, *podman, *PODMAN_RUN, "px.local/demo:1.2.3", env=env)
        if done.returncode == 0:
            break
    apart(*podman, "rmi", "--all", "--force", env=env)
    if done.returncode != 0:
        raise Skip(f"podman cannot run here: {done.stderr.strip()[-160:]}")
    check(done.stdout.startswith(PRINTS), done.stdout)


INSIDE = """mkdir d && echo x >d/f
px exec -v /d:/x -- /bin/sh -c 'cat /x/f; echo y >/x/y' && stat -c %u /d/f /d/y
px exec -v /d:/x:ro -- /bin/cat /x/y
px --json exec -- /bin/true"""


@test
def px_in_podman(w):
    """px as root of a container: boxes start and have binds if /proc is not masked; else the error says what masks it."""
    images.need("busybox")
    top = w.top / f"podman{next(w.number)}"
    root = top / "root"
    (root / "bin").mkdir(parents=True)
    for name in ("usr/bin", "lib", "etc", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("sh", "cat", "mkdir", "stat", "true"):
        (root / "bin" / name).symlink_to("busybox")
    for name in ("px", "px-main"):
        shutil.copy(w.programs / name, root / "usr/bin")
    check(run("tar", "-C", root, "-cf", top / "root.tar", ".").returncode == 0, "tar")
    podman, policy, env = podman_in(top)
    done = apart(*podman, "import", "-q", "--signature-policy", policy, top / "root.tar", "localhost/px:1", env=env)
    if done.returncode != 0:
        raise Skip(f"podman cannot import here: {done.stderr.strip()[-160:]}")
    for before in ((), HIDDEN):
        done = apart(*before, *podman, *PODMAN_RUN, "localhost/px:1", "/bin/true", env=env)
        if done.returncode == 0:
            break
    else:
        raise Skip(f"podman cannot run here: {done.stderr.strip()[-160:]}")
    masked = apart(*before, *podman, *PODMAN_RUN, "localhost/px:1", "px", "exec", "--", "/bin/true", env=env)
    done = apart(*before, *podman, *PODMAN_RUN, "--security-opt", "unmask=ALL", "localhost/px:1", "/bin/sh", "-c", INSIDE, env=env)
    apart(*podman, "rmi", "--all", "--force", env=env)
    check(masked.returncode == 125 and "--security-opt unmask=ALL" in masked.stderr, f"masked: {masked.stderr}")
    lines = done.stdout.splitlines()
    equal(lines[:4], ["x", "0", "0", "y"], f"binds: {done.stderr}")
    equal(json.loads(lines[4])["isolation"]["tier"], "full", "its tier")


TESTS[:] = [function for function in TESTS if function.__module__ not in ("registry", "formats", "world")]   # of another part
