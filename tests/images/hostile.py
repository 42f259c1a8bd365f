"""Layouts and archives that lie: rows J12 to J21 of the security tables. Each is refused by name, next to a twin that is accepted."""

import gzip
import io
import json
import os
import tarfile

from formats import docker_directory
from world import CONFIG, INDEX, LAYER, MANIFEST, Layout, ROOT, check, dump, layer_tar, pack_tar, sha, test


def layout(world):
    return Layout(world.fresh("lay"))


def accept(world, made):
    return world.tool("read", made.path, home=world.fresh("home").name)


def refuse(world, made, says, code=815):
    return world.refused(code, says, "read", made.path)


# ---- J12: bytes that are not what they are called -------------------------------------------------------------------


@test
def hostile_flipped_byte(world):
    """In every blob, at its beginning, middle and end; the error names the blob."""
    made = layout(world)
    made.index(made.parts())
    accept(world, made)
    for path in sorted((made.path / "blobs/sha256").iterdir()):
        good = path.read_bytes()
        for at in (0, len(good) // 2, len(good) - 1):
            path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            refuse(world, made, path.name)
        path.write_bytes(good)
    accept(world, made)


@test
def hostile_sizes(world):
    """A size is a bound, not advice; a blob that is longer or shorter is refused."""
    for change in (-1, 1, 10**6):
        made = layout(world)
        entry = made.parts()
        made.index({**entry, "size": entry["size"] + change})
        refuse(world, made, entry["digest"].removeprefix("sha256:"))
    for wrong in (-1, 1.0, "7", None, True, 2**63):
        made = layout(world)
        made.write("index.json", json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [{**made.parts(), "size": wrong}]}).encode())
        refuse(world, made, "cannot be read" if wrong == 2**63 else "size")


@test
def hostile_changed_in_store(world):
    """What changed after it was stored is found when it is used, named, and put away; then it can be read anew."""
    made = layout(world)
    made.index(made.parts())
    got = world.tool("read", made.path)
    blob = world.top / "home/store/blobs/sha256" / got["layers"][0]["digest"]
    good = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(good[:50] + bytes([good[50] ^ 1]) + good[51:])
    world.refused(800, blob.name, "tree", got["manifest"], home="home")
    check(not blob.exists(), "it is still there")
    world.refused(800, blob.name, "load", got["manifest"], home="home")
    world.tool("read", made.path)
    world.tree(got["manifest"])
    blob.chmod(0o644)
    blob.write_bytes(good[:50] + bytes([good[50] ^ 1]) + good[51:])
    world.refused(800, blob.name, "verify", got["manifest"], home="home")


# ---- J13, J14: names and kinds of files ----------------------------------------------------------------------------


@test
def hostile_digests(world):
    made = layout(world)
    good = made.parts()["digest"].removeprefix("sha256:")
    for digest in ("sha256:../../../etc/passwd", "sha256:" + good.upper(), "sha256:" + good[:-1], "sha256:" + good + "0", good, "sha1:" + good,
                   "sha512:" + good * 2, "sha256:" + good[:-1] + "\n", "", "sha256:", "/" + good, "sha256:" + good[:-2] + "/.", 7, None, ["x"]):
        for where in ("entry", "config", "layer", "diff id"):
            made = layout(world)
            bad = {"mediaType": MANIFEST, "digest": digest, "size": 10}
            if where == "entry":
                made.index(bad)
            elif where == "config":
                made.index(made.blob(dump({"schemaVersion": 2, "mediaType": MANIFEST, "config": {**bad, "mediaType": CONFIG}, "layers": []}),
                                     MANIFEST))
            elif where == "layer":
                made.index(made.parts(layers=[{**bad, "mediaType": LAYER}]))
            else:
                made.index(made.parts(config={"rootfs": {"type": "layers", "diff_ids": [digest]}}))
            refuse(world, made, "64 digits")


@test
def hostile_kinds_of_files(world):
    """Links, pipes and directories in the place of files: refused, and nobody waits for them."""
    def link(path):
        os.rename(path, str(path) + ".real")
        os.symlink(os.path.basename(path) + ".real", path)

    def fifo(path):
        os.unlink(path)
        os.mkfifo(path)

    def directory(path):
        os.unlink(path)
        os.mkdir(path)

    for change in (link, fifo, directory):
        for name in ("oci-layout", "index.json", "blob"):
            made = layout(world)
            entry = made.parts()
            made.index(entry)
            change(made.blob_path(entry["digest"]) if name == "blob" else made.path / name)
            refuse(world, made, "blob" if name == "blob" else name)
    made = layout(world)
    made.index(made.parts())
    os.rename(made.path / "blobs", made.path / "real")
    os.symlink("real", made.path / "blobs")
    refuse(world, made, "blob")
    fifo_path = world.top / "pipe"
    os.mkfifo(fifo_path)
    world.refused(815, "neither a file nor a directory", "read", fifo_path)


# ---- J15: JSON -----------------------------------------------------------------------------------------------------


@test
def hostile_json(world):
    made = layout(world)
    entry = made.parts()
    plain = dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]})
    made.write("index.json", plain)
    accept(world, made)
    made.write("index.json", plain[:-1] + b',"x":' + b"[" * 60 + b"]" * 60 + b"}")
    accept(world, made)
    cases = {
        "deep": plain[:-1] + b',"x":' + b"[" * 64 + b"]" * 64 + b"}",
        "very deep": plain[:-1] + b',"x":' + b"[" * 100000 + b"]" * 100000 + b"}",
        "deep and open": b'{"x":' * 100000,
        "twice": plain[:-1] + b',"schemaVersion":2}',
        "behind": plain + b"{}",
        "NUL behind": plain + b"\0",
        "huge": plain[:-1] + b',"x":9223372036854775808}',
        "bytes": plain[:-1] + b',"x":"\xff"}',
        "surrogate": plain[:-1] + b',"x":"\\ud800"}',
        "NUL": plain[:-1] + b',"x":"\\u0000"}',
        "many": plain[:-1] + b',"x":[' + b"[]," * 400000 + b"0]}",
        "long": plain[:-1] + b',"x":"' + b"a" * (5 << 20) + b'"}',
        "empty": b"",
        "a list": b"[]",
        "a text": b'"x"',
    }
    for text in cases.values():
        made.write("index.json", text)
        refuse(world, made, "index")


# ---- J16: amounts --------------------------------------------------------------------------------------------------


@test
def hostile_amounts(world):
    made = layout(world)
    entry = made.parts()
    for _ in range(4):
        entry = made.blob(dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry, entry]}), INDEX)
    made.index(entry, entry)
    accept(world, made)
    made.index(made.blob(dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry, entry]}), INDEX))
    refuse(world, made, "more than 4")
    for _ in range(300):
        entry = made.blob(dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry, entry]}), INDEX)
    made.index(entry)
    refuse(world, made, "more than 4")
    made = layout(world)
    made.index(*[made.parts()] * 5000)
    refuse(world, made, "longer than 4096")
    made = layout(world)
    made.index(made.parts(layer_count=127))
    accept(world, made)
    for count in (128, 10000):
        made = layout(world)
        made.index(made.parts(layer_count=count))
        refuse(world, made, f"{count} layers")


# ---- J17: two things at once ---------------------------------------------------------------------------------------


@test
def hostile_two_things(world):
    made = layout(world)
    entry = made.parts()
    for more in ({"manifests": [entry]}, {"manifests": []}, {"manifests": None}, {"fsLayers": []}):
        made = layout(world)
        tar = gzip.compress(layer_tar(ROOT))
        layer = made.blob(tar, LAYER + "+gzip")
        config = made.blob(dump({"os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(layer_tar(ROOT))]}}), CONFIG)
        made.index(made.blob(dump({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer], **more}), MANIFEST))
        refuse(world, made, "two things")
    for more in ({"layers": []}, {"config": {}}, {"layers": None}):
        made = layout(world)
        made.index(made.parts(), **more)
        refuse(world, made, "two things")
    made = layout(world)
    made.index({**made.parts(), "mediaType": INDEX})
    refuse(world, made, "type")
    made = layout(world)
    made.index(made.parts(mediaType=INDEX))
    refuse(world, made, "type")
    made = layout(world)
    made.index(made.parts(mediaType=7))
    refuse(world, made, "type")
    made = layout(world)
    made.index(made.parts(mediaType=None))      # older writers leave it out: the descriptor says what it is
    accept(world, made)
    for version in (1, 3, "2", None):
        made = layout(world)
        made.index(made.parts(schemaVersion=version))
        refuse(world, made, "schemaVersion")


# ---- J18: configs --------------------------------------------------------------------------------------------------


@test
def hostile_configs(world):
    good = ({}, {"Env": None}, {"User": "app:staff"}, {"User": ""}, {"WorkingDir": ""}, {"WorkingDir": "/a/b"}, {"StopSignal": "SIGRTMIN+3"},
            {"Volumes": {"/../../etc": {}}}, {"Volumes": "x"}, {"Labels": {"a": "b"}}, {"Env": ["A=", "B=c=d"]}, {"ExposedPorts": {"80/tcp": {}}})
    bad = ({"Env": ["A"]}, {"Env": ["=b"]}, {"Env": "A=b"}, {"Env": [7]}, {"Env": ["A=b"] * 5000}, {"User": "../x"}, {"User": "a b"},
           {"User": "-x"}, {"User": 7}, {"User": "x" * 300}, {"WorkingDir": "a"}, {"WorkingDir": "/a/../b"}, {"WorkingDir": "C:\\x"},
           {"WorkingDir": 7}, {"StopSignal": "SIG KILL"}, {"StopSignal": "-9"}, {"Entrypoint": "sh"}, {"Cmd": [None]}, {"Labels": ["a"]},
           {"Labels": {"a": 7}}, {"Labels": {"": "x"}}, {"Labels": {"a=b": "x"}})
    for settings in good:
        made = layout(world)
        made.index(made.parts(settings=settings))
        accept(world, made)
    for settings in bad:
        made = layout(world)
        made.index(made.parts(settings=settings))
        refuse(world, made, next(iter(settings)).rstrip("s") if "Labels" in settings else next(iter(settings)))
    for config, says in (({"os": "windows"}, "windows"), ({"os": None}, "linux"), ({"architecture": "a/../b"}, "architecture"),
                         ({"created": "now\n"}, "created"), ({"config": []}, "not an object"), ({"rootfs": None}, "layers"),
                         ({"rootfs": {"type": "other", "diff_ids": []}}, "layers")):
        made = layout(world)
        made.index(made.parts(config=config))
        refuse(world, made, says)
    for text in (b"", b"[]", b"{", b"{}"):
        made = layout(world)
        made.index(made.parts(config=text))
        refuse(world, made, "image")


# ---- J19: references -----------------------------------------------------------------------------------------------


@test
def hostile_references(world):
    digest = "sha256:" + "0123456789abcdef" * 4
    good = {
        "host.example/a": ("host.example", "a", "latest", ""),
        "localhost/a:1": ("localhost", "a", "1", ""),
        "localhost:5000/a/b/c:V1.2-x_y": ("localhost:5000", "a/b/c", "V1.2-x_y", ""),
        "127.0.0.1:5000/a__b/c--d/e.f@" + digest: ("127.0.0.1:5000", "a__b/c--d/e.f", "", digest[7:]),
        "[::1]:5000/a:t@" + digest: ("[::1]:5000", "a", "t", digest[7:]),
    }
    for text, parts in good.items():
        got = world.tool("ref", text)
        check((got["registry"], got["repository"], got["tag"], got["digest"]) == parts, f"{text}: {got}")
    bad = ["", "a", "a/b", "../x", "--help", "-x/y", "host.example/", "host.example//a", "host.example/../a", "host.example/A", "host.example/a:",
           "host.example/a:-x", "host.example/a:.x", "host.example/a:" + "x" * 129, "host.example/a@sha256:1", "host.example/a@md5:" + "0" * 32,
           "host.example/a b", "host.example/a\n", "host.example/a\x1b[31m", "host.example/-a", "host.example/a-", "host.example/a..b",
           "host.example/a___b", "host.example/a/", "host.example:0/a", "host.example:65536/a", "host.example:/a", "host.example:x/a",
           "user@host.example/a", "http://host.example/a", "host.example/" + "a" * 300, "x" * 600, "[::1/a", "host.example/a?x", "host.example/a%2e",
           "host.example/a#x", "h\u00f6st.example/a", ".host/a", "host-.example:1/a_"]
    for text in bad:
        world.refused(2, "not a reference", "ref", text, home="home")


# ---- J20, J21: layers elsewhere, and other layers ------------------------------------------------------------------


@test
def hostile_foreign_layers(world):
    kinds = ("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")
    for kind in kinds:
        made = layout(world)
        layer = {**made.blob(gzip.compress(layer_tar(ROOT)), kind), "urls": ["http://127.0.0.1:1/layer"]}
        made.index(made.parts(layers=[layer]))
        refuse(world, made, "foreign")
    for kind in ("application/vnd.example.model", MANIFEST, "", None, 7):
        made = layout(world)
        made.index(made.parts(layers=[{**made.blob(b"x", "x"), "mediaType": kind}]))
        refuse(world, made, "layers[0]")
    made = layout(world)
    made.index(made.parts(config=None, artifactType="x", annotations={"a": 7}))
    refuse(world, made, "annotation")


@test
def hostile_other_layers(world):
    """The layer is what its digest says, but not what the config says it unpacks to."""
    made = layout(world)
    made.index(made.parts(config={"rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(b"other")]}}))
    home = world.fresh("home").name
    got = world.tool("read", made.path, home=home)
    world.refused(815, "diff id", "tree", got["manifest"], home=home)
    check(not list((world.top / home / "store/trees").iterdir()), "a tree was left")
    for ids in ([], ["sha256:" + sha(b"x")] * 2):
        made = layout(world)
        made.index(made.parts(config={"rootfs": {"type": "layers", "diff_ids": ids}}))
        refuse(world, made, "layers")


@test
def hostile_layer_says_other_compression(world):
    """A layer is told by its bytes; the type in the manifest is not believed, and the diff id decides."""
    made = layout(world)
    tar = layer_tar(ROOT)
    made.index(made.parts(layers=[made.blob(tar, LAYER + "+zstd")]))
    home = world.fresh("home").name
    world.tree(world.tool("read", made.path, home=home)["manifest"], home=home)


# ---- docker archives and outer archives ----------------------------------------------------------------------------


@test
def hostile_docker_archives(world):
    for member, value, says in (("Config", "../../../etc/passwd", "etc/passwd"), ("Config", "/etc/passwd", "etc/passwd"), ("Config", 7, "config"),
                                ("Layers", ["../../etc/passwd"] * 2, "etc/passwd"), ("Layers", [None, None], "layer"), ("Layers", "x", "layers"),
                                ("Layers", lambda layers: layers[:1], "layers"), ("Layers", lambda layers: layers * 100, "127")):
        place, _ = docker_directory(world)
        items = json.loads((place / "manifest.json").read_bytes())
        items[0][member] = value(items[0][member]) if callable(value) else value
        (place / "manifest.json").write_bytes(dump(items))
        world.refused(815, says, "read", place)
    place, config = docker_directory(world)
    (place / f"{config}.json").write_bytes((place / f"{config}.json").read_bytes() + b" ")
    world.refused(815, config, "read", place)
    place, _ = docker_directory(world)
    layer = next(place.glob("*/layer.tar"))
    layer.unlink()
    layer.symlink_to("/etc/passwd")
    world.refused(815, "layer.tar", "read", place)
    for text in (b"[]", b"{}", b"[7]", b"[", b"[{},{}]"):
        (place / "manifest.json").write_bytes(text)
        world.refused(815, "", "read", place)


@test
def hostile_outer_archives(world):
    """The archive around an image is unpacked as any other: nothing leaves its directory, and nothing stays."""
    made = layout(world)
    made.index(made.parts())
    good = world.top / "good.tar"
    pack_tar(made.path, good)
    world.tool("read", good, home="home")
    out = world.top / "evil.tar"
    for name in ("../escaped", "/tmp/px-escaped", "a/../../escaped"):
        with tarfile.open(good) as source, tarfile.open(out, "w") as tar:
            for member in source:
                tar.addfile(member, source.extractfile(member) if member.isreg() else None)
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"evil"))
        world.raw("read", out, home="evil")     # refused, or made harmless
        check(not (world.top / "escaped").exists() and not os.path.exists("/tmp/px-escaped"), f"{name} escaped")
    for data in (b"", b"x" * 10000, good.read_bytes()[:700], gzip.compress(b"nothing")):
        out.write_bytes(data)
        world.raw("read", out, home="evil")
        check(world.raw("read", out, home="evil").returncode == 1, f"accepted: {data[:20]!r}")
    check(not list((world.top / "evil/store/tmp").iterdir()), "something was left in the store")
