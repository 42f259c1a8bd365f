"""What px writes, others read; what others write, px reads; the same input gives the same bytes."""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

from world import DOCKER_CONFIG, DOCKER_LAYER, DOCKER_MANIFEST, INDEX, LIMIT_S, Layout, ROOT, Skip, check, dump, layer_tar, need, \
    pack_tar, sha, test

NAME = "px.local/demo:1.2.3"


def run(world, *words, **more):
    environment = {**world.environment("other", None), "XDG_RUNTIME_DIR": str(world.top)}
    done = subprocess.run([*map(str, words)], capture_output=True, timeout=LIMIT_S, check=False, cwd=world.top, env=environment,
                          stdin=subprocess.DEVNULL, **more)
    check(done.returncode == 0, f"{' '.join(map(str, words))[:120]}: {done.stderr.decode(errors='replace')[-400:]}")
    return done.stdout


def skopeo(world, *words):
    need("skopeo")
    policy = world.top / "policy.json"
    policy.write_bytes(dump({"default": [{"type": "insecureAcceptAnything"}]}))
    return run(world, "skopeo", "--policy", policy, "--tmpdir", world.top, *words)


def listing(root):
    """What is in a tree: types, modes, contents."""
    found = {}
    for path in sorted(Path(root).rglob("*")):
        name, mode = str(path.relative_to(root)), path.lstat().st_mode
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("dir", oct(mode & 0o1777))
        else:
            found[name] = ("file", oct(mode & 0o1777), sha(path.read_bytes()))
    return found


def merged(world, image, home="home"):
    return listing(world.tree(image, home=home))


@test
def image_documents(world):
    """The documents as the specification has them, member by member."""
    made = world.tool("make", "gzip", *world.two_layers())
    world.tool("write", made["manifest"], "oci", world.top / "out", NAME)
    index = json.loads((world.top / "out/index.json").read_bytes())
    entry = index["manifests"][0]
    manifest = json.loads((world.top / "out/blobs/sha256" / made["manifest"]).read_bytes())
    config = json.loads((world.top / "out/blobs/sha256" / made["config"]).read_bytes())
    check(index["schemaVersion"] == 2 and index["mediaType"].endswith("image.index.v1+json"), f"index: {index}")
    check(entry["annotations"]["org.opencontainers.image.ref.name"] == NAME, f"entry: {entry}")
    check(entry["platform"] == {"architecture": config["architecture"], "os": "linux"}, f"platform: {entry}")
    check(manifest["schemaVersion"] == 2 and manifest["mediaType"] == entry["mediaType"], "mediaType is missing")
    check(manifest["annotations"] == {"org.opencontainers.image.title": "test"}, f"annotations: {manifest}")
    for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        data = (world.top / "out/blobs" / layer["digest"].replace(":", "/")).read_bytes()
        check(len(data) == layer["size"] and "sha256:" + sha(gzip.decompress(data)) == diff_id, f"layer {layer}")
    check(config["created"] == "1970-01-01T00:00:00Z" and len(config["history"]) == 2, f"config: {config}")
    settings = config["config"]
    check(settings["User"] == "1000:1000" and settings["Env"] == ["PATH=/usr/bin:/bin"] and settings["WorkingDir"] == "/app", f"{settings}")
    check(settings["Entrypoint"] == ["/bin/sh"] and settings["Cmd"] == ["-c"], f"{settings}")
    check(settings["Labels"] == {"org.example.a": "\u00e4 \"quoted\"", "org.example.b": "2"}, f"{settings}")
    for name in ("index.json", f"blobs/sha256/{made['manifest']}", f"blobs/sha256/{made['config']}"):
        data = (world.top / "out" / name).read_bytes()
        canonical = json.dumps(json.loads(data), separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()
        check(data == canonical, f"{name} is not canonical: {data[:200]}")


@test
def image_same_bytes(world):
    """Other times, owners and stores, the same image; another SOURCE_DATE_EPOCH, another one."""
    one, two = world.two_layers()
    copy = world.top / "copy"
    shutil.copytree(one, copy, symlinks=True)
    for path in copy.rglob("*"):
        os.utime(path, (12345, 67890), follow_symlinks=False)
    first = world.tool("make", "gzip", one, two, home="a")
    second = world.tool("make", "gzip", copy, two, home="b", env={"TZ": "Asia/Tokyo", "LC_ALL": "C"})
    check(first == second, f"{first} and {second}")
    for form in ("oci-archive", "docker-archive"):
        world.tool("write", first["manifest"], form, world.top / "a.tar", NAME, home="a")
        world.tool("write", first["manifest"], form, world.top / "b.tar", NAME, home="b")
        check((world.top / "a.tar").read_bytes() == (world.top / "b.tar").read_bytes(), f"{form} differs")
        (world.top / "a.tar").unlink()
        (world.top / "b.tar").unlink()
    later = world.tool("make", "gzip", one, two, home="a", env={"SOURCE_DATE_EPOCH": "1700000000"})
    check(later["created"] == "2023-11-14T22:13:20Z" and later["manifest"] != first["manifest"], f"{later}")
    check([layer["digest"] for layer in later["layers"]] == [layer["digest"] for layer in first["layers"]], "layers have a clock")
    world.refused(2, "SOURCE_DATE_EPOCH", "make", "gzip", one, env={"SOURCE_DATE_EPOCH": "soon"})


@test
def image_written_and_read(world):
    """Every format and compression, out and in again: the same image, the same files."""
    one, two = world.two_layers()
    for compression in ("gzip", "zstd", "none"):
        home = f"home-{compression}"
        made = world.tool("make", compression, one, two, home=home)
        files = merged(world, made["manifest"], home)
        check(files["etc/motd"][2] == sha(b"two\n") and files["bin"] == ("link", "usr/bin"), f"the tree is wrong: {files}")
        for form in ("oci", "oci-archive", "docker-archive"):
            out = world.fresh("out")
            if (compression, form) == ("zstd", "docker-archive"):
                world.refused(815, "zstd", "write", made["manifest"], form, out, NAME, home=home)
                check(not out.exists() and not list(world.top.glob(".px-image-*")), "something was left")
                continue
            world.tool("write", made["manifest"], form, out, NAME, home=home)
            other = world.fresh("home").name
            got = world.tool("read", out, home=other)
            check(got["manifest"] == made["manifest"] and got["layers"] == made["layers"], f"{form}: {got}")
            check(merged(world, got["manifest"], other) == files, f"{form}: other files")
            check(world.tool("read", out, NAME, home=other)["manifest"] == made["manifest"], f"{form}: not found by its name")
            world.refused(815, "no image", "read", out, "px.local/other:1")


@test
def image_compressed_archive(world):
    """An archive of an image may itself be compressed."""
    made = world.image()
    world.tool("write", made, "oci-archive", world.top / "a.tar", NAME)
    (world.top / "a.tar.gz").write_bytes(gzip.compress((world.top / "a.tar").read_bytes()))
    check(world.tool("read", world.top / "a.tar.gz", home="other")["manifest"] == made, "another image")


@test
def image_out_is_whole_or_not(world):
    """What is there stays; a layout takes one more image; nothing is left of what failed."""
    first, second = world.image(), world.image()
    out = world.top / "out"
    world.tool("write", first, "oci", out, "px.local/a:1")
    world.tool("write", second, "oci", out, "px.local/b:1")
    check(world.tool("read", out, "px.local/a:1", home="o")["manifest"] == first, "the first is gone")
    check(world.tool("read", out, "px.local/b:1", home="o")["manifest"] == second, "the second is not there")
    world.refused(815, "several", "read", out)
    world.tool("write", second, "oci", out, "px.local/a:1")
    check(world.tool("read", out, "px.local/a:1", home="o")["manifest"] == second, "the name did not move")
    (world.top / "file").write_text("mine")
    (world.top / "dir").mkdir()
    (world.top / "dir/mine").write_text("mine")
    for form, name in (("oci", "file"), ("oci", "dir"), ("oci-archive", "file"), ("docker-archive", "dir")):
        world.refused(7, "already", "write", first, form, world.top / name, home="home")
    check((world.top / "file").read_text() == "mine" and (world.top / "dir/mine").read_text() == "mine", "what was there has changed")
    blob = world.top / "home/store/blobs/sha256" / world.tool("load", first)["layers"][0]["digest"]
    blob.chmod(0o644)
    blob.write_bytes(b"x" + blob.read_bytes()[1:])
    for form in ("oci", "oci-archive"):
        world.refused(800, blob.name, "write", first, form, world.top / f"new-{form}", home="home")
    left = sorted(p.name for p in world.top.iterdir() if p.name.startswith((".px-image", "new-")))
    check(left == [], f"left: {left}")


@test
def image_read_by_skopeo(world):
    made = world.tool("make", "gzip", *world.two_layers())
    for form in ("oci", "oci-archive", "docker-archive"):
        out = world.top / form
        world.tool("write", made["manifest"], form, out, NAME)
        seen = json.loads(skopeo(world, "inspect", f"{form}:{out}" + (f":{NAME}" if form == "oci" else "")))
        check(seen["Labels"]["org.example.b"] == "2" and len(seen["Layers"]) == 2, f"{form}: {seen}")
        if form != "docker-archive":
            check(seen["Digest"] == "sha256:" + made["manifest"], f"{form}: {seen}")
        skopeo(world, "copy", f"{form}:{out}", f"oci:{world.top}/copy-{form}:x")     # reads every blob, checks every digest
        got = world.tool("read", world.top / f"copy-{form}", home=f"c-{form}")
        check([x["diff_id"] for x in got["layers"]] == [x["diff_id"] for x in made["layers"]], f"{form}: layers differ")


@test
def image_read_by_umoci(world):
    need("umoci")
    made = world.image()
    world.tool("write", made, "oci", world.top / "out", "one")
    run(world, "umoci", "unpack", "--rootless", "--image", "out:one", "bundle")
    check(listing(world.top / "bundle/rootfs") == merged(world, made), "umoci unpacks other files")
    config = json.loads((world.top / "bundle/config.json").read_bytes())
    check(config["process"]["args"] == ["/bin/sh", "-c"] and config["process"]["cwd"] == "/app", f"{config['process']}")


@test
def image_run_by_runtimes(world):
    """What px packed runs as a container of another engine."""
    for program in ("umoci", "busybox"):
        need(program)
    if os.getuid() != 0:
        raise Skip("a runtime needs a cgroup of its own, which an ordinary user has not")
    root = world.top / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("proc", "dev", "sys", "tmp", "etc", "app"):
        (root / name).mkdir()
    world.tool("write", world.tool("make", "gzip", root)["manifest"], "oci", world.top / "out", "one")
    run(world, "umoci", "unpack", "--image", "out:one", "bundle")
    path = world.top / "bundle/config.json"
    config = json.loads(path.read_bytes())
    config["process"].update({"args": ["/bin/busybox", "echo", "it runs"], "terminal": False})
    config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] in ("mount", "pid", "ipc", "uts")]
    config["linux"].pop("resources", None)
    path.write_bytes(dump(config))
    why = []
    for runtime in ("crun", "runc"):
        if not shutil.which(runtime):
            why.append(f"{runtime} is not installed")
            continue
        done = subprocess.run([runtime, "--root", str(world.top / runtime), "run", "--bundle", str(world.top / "bundle"), f"px-images-{os.getpid()}"],
                              capture_output=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            check(done.stdout == b"it runs\n", f"it said {done.stdout!r}")
            return
        why.append(done.stderr.decode(errors="replace").strip()[-120:])
    raise Skip("no runtime can run here: " + "; ".join(why))


@test
def image_pulled_by_buildah(world):
    need("buildah")
    storage = ["--root", world.top / "storage", "--runroot", world.top / "runroot", "--storage-driver", "vfs"]
    empty = Layout(world.top / "probe")
    empty.index({**empty.parts(), "annotations": {"org.opencontainers.image.ref.name": "px.local/probe:1"}})
    pack_tar(empty.path, world.top / "probe.tar")
    policy = world.top / "policy.json"
    policy.write_bytes(dump({"default": [{"type": "insecureAcceptAnything"}]}))
    words = ["buildah", *storage, "pull", "--signature-policy", policy]
    probe = subprocess.run([*map(str, words), f"oci-archive:{world.top}/probe.tar"], capture_output=True, check=False, timeout=LIMIT_S, cwd=world.top,
                           env={**world.environment("other", None), "BUILDAH_ISOLATION": "chroot", "XDG_RUNTIME_DIR": str(world.top)})
    if probe.returncode != 0:
        raise Skip(f"buildah cannot pull here: {probe.stderr.decode(errors='replace').strip()[-160:]}")
    made = world.tool("make", "gzip", *world.two_layers())
    world.tool("write", made["manifest"], "docker-archive", world.top / "a.tar", NAME)
    world.tool("write", made["manifest"], "oci-archive", world.top / "b.tar", NAME)
    for source in (f"docker-archive:{world.top}/a.tar", f"oci-archive:{world.top}/b.tar"):
        out = run(world, *words, source)
        check(made["config"] in out.decode(), f"{source}: another image: {out}")


@test
def image_of_skopeo(world):
    """Formats and compressions as skopeo writes them."""
    made = world.tool("make", "none", *world.two_layers())
    world.tool("write", made["manifest"], "oci", world.top / "in", "x")
    files = merged(world, made["manifest"])
    source = f"oci:{world.top}/in:x"
    for number, words in enumerate((["--dest-compress-format", "gzip", source, "oci:OUT:y"], ["--dest-compress-format", "zstd", source, "oci:OUT:y"],
                                    [source, "oci-archive:OUT"], [source, f"docker-archive:OUT:{NAME}"])):
        out = world.fresh("out")
        skopeo(world, "copy", *[word.replace("OUT", str(out)) for word in words])
        home = f"h{number}"
        got = world.tool("read", out, home=home)
        check([x["diff_id"] for x in got["layers"]] == [x["diff_id"] for x in made["layers"]], f"{words}: other layers")
        check(merged(world, got["manifest"], home) == files and got["env"] == made["env"], f"{words}: other files")


@test
def image_of_umoci(world):
    """An image that umoci made, with a whiteout of its own."""
    need("umoci")
    run(world, "umoci", "init", "--layout", "lay")
    run(world, "umoci", "new", "--image", "lay:a")
    run(world, "umoci", "unpack", "--rootless", "--image", "lay:a", "bundle")
    root = world.top / "bundle/rootfs"
    (root / "etc").mkdir()
    (root / "etc/keep").write_text("keep")
    (root / "etc/lose").write_text("lose")
    run(world, "umoci", "repack", "--image", "lay:a", "bundle")
    shutil.rmtree(world.top / "bundle")
    run(world, "umoci", "unpack", "--rootless", "--image", "lay:a", "bundle")
    (root / "etc/lose").unlink()
    run(world, "umoci", "repack", "--image", "lay:b", "bundle")
    run(world, "umoci", "config", "--image", "lay:b", "--config.user", "7:8", "--config.env", "A=b", "--config.workingdir", "/etc")
    got = world.tool("read", world.top / "lay", "b")
    check(len(got["layers"]) == 2 and got["user"] == "7:8" and got["env"] == ["A=b"] and got["workdir"] == "/etc", f"{got}")
    check(sorted(merged(world, got["manifest"])) == ["etc", "etc/keep"], "the whiteout does not hide")


def docker_directory(world, links=False):
    """What docker save has written for years: HEX.json, HEX/layer.tar, manifest.json, repositories."""
    place = world.fresh("save")
    place.mkdir()
    tars = [layer_tar(ROOT), layer_tar({"app": None, "app/x": b"x"})]
    names = [sha(b"history of " + tar) for tar in tars]
    for name, tar in zip(names, tars, strict=True):
        (place / name).mkdir()
        (place / name / "VERSION").write_text("1.0")
        (place / name / "json").write_bytes(dump({"id": name}))
        (place / name / "layer.tar").write_bytes(tar)
    if links:
        names.append(sha(b"the same once more"))
        (place / names[2]).mkdir()
        (place / names[2] / "layer.tar").symlink_to(f"../{names[1]}/layer.tar")
        tars.append(tars[1])
    config = dump({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["sh"], "Env": None}, "created": "2020-01-01T00:00:00.5Z",
                   "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(tar) for tar in tars]}})
    (place / (sha(config) + ".json")).write_bytes(config)
    item = {"Config": sha(config) + ".json", "RepoTags": ["demo:1"], "Layers": [f"{name}/layer.tar" for name in names]}
    (place / "manifest.json").write_bytes(dump([item]))
    (place / "repositories").write_bytes(dump({"demo": {"1": names[-1]}}))
    return place, sha(config)


@test
def image_of_docker_save(world):
    """The old form with and without links, as a directory and an archive; the image's id stays docker's."""
    for links in (False, True):
        place, config = docker_directory(world, links)
        archive = world.fresh("a.tar")
        pack_tar(place, archive)
        for source in (place, archive):
            home = world.fresh("home").name
            got = world.tool("read", source, home=home)
            check(got["config"] == config and got["cmd"] == ["sh"] and len(got["layers"]) == (3 if links else 2), f"{source}: {got}")
            files = merged(world, got["manifest"], home)
            check(files["app/x"][2] == sha(b"x") and files["etc/motd"][2] == sha(b"by hand\n"), f"{source}: {files}")
        check(world.tool("read", archive, "demo:1", home=home)["config"] == config, "not found by its name")
        world.refused(815, "no image", "read", archive, "demo:2")


@test
def image_of_new_docker_save(world):
    """The new form is a layout with manifest.json beside it, and docker's own media types."""
    layout = Layout(world.top / "lay")
    tar = layer_tar(ROOT)
    layer = layout.blob(gzip.compress(tar), DOCKER_LAYER)
    config = layout.blob(dump({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(tar)]}}),
                         DOCKER_CONFIG)
    entry = layout.blob(dump({"schemaVersion": 2, "mediaType": DOCKER_MANIFEST, "config": config, "layers": [layer]}), DOCKER_MANIFEST)
    layout.index({**entry, "annotations": {"io.containerd.image.name": "host.example/demo:1", "org.opencontainers.image.ref.name": "1"}})
    layout.write("manifest.json", dump([{"Config": "blobs/" + config["digest"].replace(":", "/"), "RepoTags": ["demo:1"],
                                         "Layers": ["blobs/" + layer["digest"].replace(":", "/")]}]))
    pack_tar(layout.path, world.top / "a.tar")
    for source in (layout.path, world.top / "a.tar"):
        for name in ([], ["1"], ["host.example/demo:1"]):
            got = world.tool("read", source, *name)
            check("sha256:" + got["manifest"] == entry["digest"] and "sha256:" + got["config"] == config["digest"], f"{got}")
    world.tool("write", got["manifest"], "oci", world.top / "again", "x")
    seen = json.loads((world.top / "again/index.json").read_bytes())["manifests"][0]
    check(seen["mediaType"] == DOCKER_MANIFEST and seen["digest"] == entry["digest"], f"docker's manifest became another: {seen}")


@test
def image_platform(world):
    """Of several platforms this machine's; indexes may lead to indexes."""
    layout = Layout(world.top / "lay")
    mine = layout.parts()
    machine = {"os": "linux", "architecture": "amd64"}
    if os.uname().machine != "x86_64":
        raise Skip("the images made by hand are for amd64")
    other = layout.parts(config={"architecture": "s390x"})
    inner = layout.blob(dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {**other, "platform": {"os": "linux", "architecture": "s390x"}}, {**mine, "platform": machine},
        {**other, "mediaType": "application/vnd.example.other+json"}]}), INDEX)
    layout.index(inner)
    check("sha256:" + world.tool("read", layout.path)["manifest"] == mine["digest"], "another platform")
    layout.index({**other, "platform": {"os": "linux", "architecture": "s390x"}})
    world.refused(815, "s390x", "read", layout.path)
