#!/usr/bin/python3
"""projects/pack.py [--as UID] [--only NAME...] BUILD - px pack image: which files, which bytes, which name, where to, and who can run it.

Projects are git repositories made here, on the base and with the wheels of projects.py; there is no network but this machine's own. Prints
`ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("envs", "bases", "images")), str(HERE.parent)]
sys.dont_write_bytecode = True
import leaks  # noqa: E402
from cases import TESTS, built, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402
from projects import ALPHA, LIMIT_S, Wheel, World, equal, tree  # noqa: E402
from pack_place import CLEAN, MAIN, Archive, commit, git, make, pack, packed_files  # noqa: E402
import bad_input  # noqa: E402,F401
import pack_files  # noqa: E402,F401
import pack_hostile  # noqa: E402,F401
import pack_ship  # noqa: E402,F401
import pins  # noqa: E402,F401


# ---- states -----------------------------------------------------------------------------------------------------------


@test
def p26_a_stale_environment_is_refused(w):
    project = make(w)
    subprocess.run(["rm", "-rf", "--", str(project.dir / ".px")], check=True)
    before = tree(project.dir)
    details = project.refused("PX201", "pack", "image")
    equal((details["reason"], details["state"]), ("env_outdated", "needs-env"), "details")
    check(any("px sync" in line for line in details["fix"]), f"{details['fix']}")
    check(tree(project.dir) == before, "something was written")
    project.synced()
    (project.dir / "pyproject.toml").write_text((project.dir / "pyproject.toml").read_text().replace('"alpha"', '"alpha", "beta"'))
    equal(project.refused("PX201", "pack", "image", "--allow-dirty")["reason"], "env_outdated", "a lock that does not fit")


@test
def p27_what_is_not_committed_is_said(w):
    project = make(w, {".gitignore": b"*.log\n", "pkg/old.py": b"1\n"})
    pack(project)
    (project.dir / "noise.log").write_text("ignored")
    (project.dir / "__pycache__").mkdir()
    (project.dir / "__pycache__/main.cpython-311.pyc").write_bytes(b"x")
    pack(project)
    (project.dir / "main.py").write_bytes(MAIN + b"#\n")
    (project.dir / "new file.txt").write_text("new")
    (project.dir / "pkg/old.py").unlink()
    details = project.refused("PX903", "pack", "image")
    equal((details["reason"], details["lines"].split("\n")), ("dirty_worktree", [" M main.py", "?? new file.txt", " D pkg/old.py"]), "lines")
    equal([line.strip() for line in details["why"]], ["M main.py", "?? new file.txt", "D pkg/old.py"], "why")
    said = project.run("pack", "image", status=1)
    check(said.stderr.startswith("PX903  ") and "--allow-dirty" in said.stderr and not said.stdout, said.stderr)
    done = pack(project, "--allow-dirty")
    equal(done["allow_dirty"], True, "allow_dirty")
    check("new file.txt" in packed_files(project, "--allow-dirty"), "the new file")
    subprocess.run(["rm", "-rf", "--", str(project.dir / "__pycache__")], check=True)
    git(project.dir, "add", "-A")
    equal(project.refused("PX903", "pack", "image")["lines"].split("\n"), ["M  main.py", "A  new file.txt", "D  pkg/old.py"], "staged")
    for number in range(30):
        (project.dir / f"more{number}").write_text("")
    details = project.refused("PX903", "pack", "image")
    check("33" in json.dumps(project.ask("pack", "image", status=1)["message"]) and details["why"][-1] == "and 25 more", f"{details}")


@test
def an_archive_in_the_project_is_not_packed(w):
    project = make(w)
    (project.dir / "dist").mkdir()
    for words in (("--out", "app.tar"), ("--out", "./dist/app.tar")):
        digests = [pack(project, *words)["image_digest"] for _ in range(3)]
        equal(digests, digests[:1] * 3, f"the digests of {words}")
        (project.dir / words[1]).unlink()
    (project.dir / "other.tar").write_text("x")
    equal(project.refused("PX903", "pack", "image", "--out", "app.tar")["lines"], "?? other.tar", "another file")


@test
def p34_nothing_of_the_project_is_written(w):
    project = make(w)
    before = tree(project.dir)
    pack(project)
    pack(project, "--check-repro")
    equal(sorted(tree(project.dir)), sorted(before), "names")
    check(tree(project.dir) == before, "something was written")


@test
def without_git_everything_is_clean(w):
    project = w.project(ALPHA)
    for name in ("main.py", "a.log", "keep.log", "secret.key"):
        (project.dir / name).write_bytes(MAIN)
    (project.dir / ".gitignore").write_text("*.log\n!keep.log\n")
    (project.dir / ".ignore").write_text("*.key\n")
    done = pack(project.synced())
    check("commit" not in done, f"{done.get('commit')}")
    equal(sorted(packed_files(project)), [".gitignore", ".ignore", "keep.log", "main.py", "pyproject.toml", "requirements.txt"], "files")


def unpacked(made, root):
    """The files of an archive's layers, as a root."""
    for descriptor in made.manifest["layers"]:
        with tarfile.open(fileobj=io.BytesIO(made.blob(descriptor))) as tar:
            tar.extractall(root, members=[m for m in tar if not m.isdev()])
    return root


@test
def the_own_package_is_in_the_image(w):
    project = make(w, {"src/demo/__init__.py": b"import alpha\ndef main():\n    print('own', __file__)\n"}, more='[project.scripts]\nmycli = "demo:main"\n')
    out = project.dir.parent / "image.tar"
    pack(project, "--out", str(out))
    made = Archive(out)
    equal(made.config["config"]["Cmd"], ["mycli"], "what it runs")
    root = unpacked(made, project.dir.parent / "rootfs")
    words = [word for line in made.config["config"]["Env"] for word in ("-e", line)]
    done = project.run("exec", "--rootfs", str(root), *words, "-w", "/app", "--", *made.config["config"]["Cmd"])
    equal(done.stdout, "own /app/src/demo/__init__.py\n", "the image runs it")


@test
def the_image_runs_as_the_sandbox_does(w):
    project = make(w, more='[tool.px.env]\nPX_PYTHON = "mine"\nGREETING = "hello"\nPATH = "/mine"\nPX_PROJECT_ROOT = "/mine"\nLANG = "C"\n')
    said = "import json, os; print(json.dumps([os.getuid(), os.getgid(), os.getcwd(), dict(os.environ)]))"
    uid, gid, cwd, inside = json.loads(project.run("run", "--sandbox", "python", "-c", said).stdout)
    out = project.dir.parent / "image.tar"
    pack(project, "--out", str(out))
    made = Archive(out)
    config = made.config["config"]
    equal((config["User"], config["WorkingDir"]), (f"{uid}:{gid}", cwd), "user and directory")
    variables = dict(line.split("=", 1) for line in config["Env"])
    for name in ("HOME", "PATH", "VIRTUAL_ENV", "PX_PROJECT_ROOT", "PX_SANDBOX", "PX_SANDBOX_ID", "PYTHONDONTWRITEBYTECODE", "GREETING", "LANG"):
        equal(variables[name], inside[name], name)
    equal(variables["PX_PYTHON"], "/px/env/bin/python3.11", "PX_PYTHON, which is px's to say")
    with tarfile.open(fileobj=io.BytesIO(made.blob(made.manifest["layers"][-2]))) as tar:
        equal((tar.getmember("home/sandbox").mode, tar.getmember("home").mode), (0o1777, 0o755), "its home")


SEEN = """import compiled.deep.module as m, importlib.util, json, os
data = open(m.__cached__, "rb").read()
source = open(m.__file__, "rb").read()
print(json.dumps([m.__file__, m.__cached__, int.from_bytes(data[4:8], "little"), data[8:16] == importlib.util.source_hash(source), m.name.__code__.co_filename,
                  sorted(os.listdir(os.path.dirname(m.__cached__)))]))
"""


@test
def packages_have_byte_code(w):
    """Made once, by the base's Python, without times: the same in the sandbox, in the image, and in another store."""
    wheel = Wheel("compiled", "1", {"compiled/__init__.py": b"", "compiled/deep/__init__.py": b"", "compiled/deep/module.py": b"def name(x):\n    return x in {None, 'a', 'b', 1.5}\n",
                                    "compiled/deep/broken.py": b"this is no Python\n", "compiled/deep/zero.py": b"x = '\0'\n", "compiled/data.txt": b"",
                                    "compiled/deep/__pycache__/module.cpython-311.pyc": b"of another time"})
    digests = []
    for _ in range(2):
        project = w.project(wheel)
        project.synced()
        commit(project.dir)
        source, cached, flags, same, name, names = json.loads(project.run("run", "--sandbox", "python", "-c", SEEN).stdout)
        check(source.startswith("/px/store/pkg-builds/") and cached.startswith(os.path.dirname(source)), f"{source} {cached}")
        equal((flags, same, name), (1, True, source), "an unchecked hash, and the path in the sandbox")
        equal(names, ["__init__.cpython-311.pyc", "module.cpython-311.pyc"], "what could be compiled")
        out = project.dir.parent / "image.tar"
        digests.append(pack(project, "--out", str(out), "--check-repro")["layers"][1]["digest"])
        made = Archive(out)
        with tarfile.open(fileobj=io.BytesIO(made.blob(made.manifest["layers"][1]))) as tar:
            equal(tar.getmember(cached.lstrip("/")).mode, 0o644, "in the image")
        project.run("run", "python", "-c", "import compiled.deep.module")
        check(not [p for p in (project.home / "store/trees").glob("*/root/site-packages/compiled/__pycache__")], "the package's own tree was changed")
    equal(digests[0], digests[1], "in two stores")


def names_in(made):
    """The names of the packages in the environment of an image."""
    for descriptor in made.manifest["layers"]:
        with tarfile.open(fileobj=io.BytesIO(made.blob(descriptor))) as tar:
            if "px/env/manifest.json" in tar.getnames():
                return [p["name"] for p in json.load(tar.extractfile("px/env/manifest.json"))["packages"]]
    return None


@test
def what_development_needs_is_not_shipped(w):
    wheels = (ALPHA, Wheel("base-lib", "1"), Wheel("fast", "1"), Wheel("checker", "1", metadata="Requires-Dist: base-lib\nRequires-Dist: colours>=1\n"),
              Wheel("colours", "1"), Wheel("listed", "1"), Wheel("web", "1", metadata='Requires-Dist: base-lib\nRequires-Dist: fast ; extra == "quick"\n'
                                                               'Requires-Dist: colours ; sys_platform == "win32"\n'))
    project = w.project(*wheels)
    manifest = project.dir / "pyproject.toml"
    text = '[project]\nname = "demo"\nversion = "1"\ndependencies = ["alpha", "Web[quick]"]\n\n[dependency-groups]\ndev = ["checker"]\n\n[tool.px]\n'
    manifest.write_text(text)
    (project.dir / "main.py").write_bytes(MAIN)
    project.synced()
    commit(project.dir)
    project.run("run", "python", "-c", "import checker, colours")
    project.run("run", "--sandbox", "python", "-c", "import checker, colours")
    out = project.dir.parent / "image.tar"
    first = pack(project, "--out", str(out), "--check-repro")
    equal(names_in(Archive(out)), ["alpha", "base-lib", "fast", "listed", "web"], "what is shipped")
    check(first["profile_oid"] != project.explain()["profile_oid"], "the profile of development")
    project.run("run", "--sandbox", "python", "-c", "import checker, colours")
    check(pack(project)["cached"] and project.explain()["built"], "one image took the place of the other")
    listed = json.dumps(project.ask("sandbox", "list"))
    check(f'"{project.dir}/pyproject.toml"' in listed and '"gone": ["' not in listed, listed)
    manifest.write_text(text + '[tool.px.dependencies]\ninclude-groups = ["dev"]\n')
    project.synced()
    commit(project.dir)
    pack(project, "--out", str(out))
    equal(names_in(Archive(out)), sorted(wheel.name for wheel in wheels), "a group that is named is the project's")
    equal(pack(project)["profile_oid"], project.explain()["profile_oid"], "one profile")


# ---- bytes ------------------------------------------------------------------------------------------------------------


@test
def p28_the_archive_is_whole(w):
    project = make(w)
    out = project.dir.parent / "image.tar"
    done = pack(project, "--out", str(out))
    made = Archive(out)
    check({"index.json", "oci-layout"} <= set(made.files), f"{sorted(made.files)}")
    equal("sha256:" + hashlib.sha256(made.blob(made.index["manifests"][0])).hexdigest(), done["image_digest"], "digest")
    equal([layer["name"] for layer in done["layers"]], ["base", "env", "packages", "app"], "layers")
    equal([(layer["digest"], layer["size"]) for layer in done["layers"]], [(x["digest"], x["size"]) for x in made.manifest["layers"]], "descriptors")
    for descriptor in made.manifest["layers"]:
        made.blob(descriptor)
    config = made.config["config"]
    equal((config["Cmd"], config["WorkingDir"], config["Env"][0].split(":")[0]), (["python", "main.py"], "/app", "PATH=/px/env/bin"), "config")
    equal([row.get("comment") for row in made.config["history"]], ["base", "environment", "packages", "application"], "history")
    equal(config["Labels"]["px.sbx_id"], done["sbx_id"], "label")
    equal(made.index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "px.local/demo:1.2.3", "name")
    equal(pack(project, "--out", str(out))["image_digest"], done["image_digest"], "the same once more")
    out.write_bytes(b"mine")
    project.refused("PX007", "pack", "image", "--out", str(out))
    equal(out.read_bytes(), b"mine", "a file that is not an image")


@test
def other_forms_hold_the_same(w):
    project = make(w)
    first = pack(project)
    for words, files in ((("--out", "dir"), {"index.json", "oci-layout", "blobs"}), (("--out", "z.tar", "--compression", "zstd"), None),
                         (("--out", "n.tar", "--compression", "none"), None), (("--out", "d.tar", "--format", "docker-archive"), None)):
        done = pack(project, *words, cwd=project.dir, status=0)
        path = project.dir / words[1]
        equal([x["diff_id"] for x in done["layers"]], [x["diff_id"] for x in first["layers"]], f"{words}: layers")
        check(files is None or {p.name for p in path.iterdir()} == files, f"{words}")
        subprocess.run(["mv", str(path), str(project.dir.parent)], check=True)
    project.refused("PX002", "pack", "image", "--compression", "zip")
    equal(project.run("pack", "image", "--compression", "zstd", status=None).returncode, 1, "another form, for nobody")


@test
def p29_two_clones_one_image(w):
    """Another place, other times, another umask, another user, another store: the same digest."""
    project = make(w, {"tool.sh": b"#!/bin/sh\n", "pkg/__init__.py": b"", "data/x": b"x" * 5000})
    (project.dir / "tool.sh").chmod(0o755)
    (project.dir / "link").symlink_to("data/x")
    commit(project.dir)
    first = pack(project)
    other = w.project(ALPHA)
    subprocess.run(["rm", "-rf", "--", str(other.dir)], check=True)
    subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", "git", "-c", "safe.directory=*", "clone", "-q", str(project.dir), str(other.dir)], check=True,
                   env=CLEAN, capture_output=True, timeout=LIMIT_S)
    for path in (other.dir / "main.py", other.dir / "data/x", other.dir / "pkg", other.dir / "tool.sh"):
        os.utime(path, (1, 1))
    (other.dir / "tool.sh").chmod(0o711)
    os.link(other.dir / "main.py", other.dir.parent / "another name of it")
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", "1201:1202", str(other.dir)], check=True)
    other.run("sync", "--frozen")
    second = pack(other)
    equal((second["sbx_id"], second["image_digest"]), (first["sbx_id"], first["image_digest"]), "ids")
    check(first["store"] != second["store"], "one store")
    equal(pack(project)["image_digest"], first["image_digest"], "packed twice")
    out = project.dir.parent / "x.tar"
    pack(other, "--out", str(out))
    for name, (member, _) in Archive(out).app().items():
        equal((member.uid, member.gid, member.mtime, member.uname), (0, 0, 0, ""), name)
        equal(member.mode, 0o777 if member.issym() else 0o755 if member.isdir() or name.endswith("tool.sh") else 0o644, name)


@test
def one_changed_byte_changes_the_app_alone(w):
    project = make(w)
    first = pack(project)
    (project.dir / "main.py").write_bytes(MAIN.replace(b"runs", b"rums"))
    commit(project.dir)
    second = pack(project)
    check(second["cached"], "the sandbox was built again")
    changed = [a["name"] for a, b in zip(first["layers"], second["layers"]) if a["digest"] != b["digest"]]
    equal((changed, first["sbx_id"]), (["app"], second["sbx_id"]), "layers that changed")
    check(second["layers"][-1]["size"] < 10_000, f"{second['layers'][-1]}")


@test
def p18_a_damaged_blob_is_found(w):
    project = make(w)
    first = pack(project)
    for number in (0, 1):
        blob = project.home / "store/blobs/sha256" / first["layers"][number]["digest"].removeprefix("sha256:")
        data = bytearray(blob.read_bytes())
        data[len(data) // 2] ^= 1
        blob.chmod(0o600)
        blob.write_bytes(data)
        details = project.refused("PX904", "pack", "image")
        equal((details["reason"], details["sbx_id"]), ("digest_mismatch", first["sbx_id"]), "details")
        equal(pack(project)["image_digest"], first["image_digest"], "made anew")


def store_anew(directory):
    """As if px had stored a tree the way it is now: its listing as px-store(7) has it. Without a seal every byte is read."""
    rows, seen = [], {}
    for path in sorted((directory / "root").rglob("*"), key=lambda path: bytes(path.relative_to(directory / "root"))):
        name, st = str(path.relative_to(directory / "root")), path.lstat()
        row = {"gid": 0, "mode": 0o777 if path.is_symlink() else st.st_mode & 0o1777, "path": name, "uid": 0}
        if not path.is_dir() or path.is_symlink():
            first = seen.setdefault(st.st_ino, name)
            row |= {"type": "hardlink", "target": first} if first != name else {"type": "link", "target": os.readlink(path)} if path.is_symlink() else {
                "type": "file", "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": st.st_size}
        rows.append(row if "type" in row else row | {"type": "dir"})
    listing = json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    complete = json.loads((directory / "complete").read_text()) | {"listing": hashlib.sha256(listing.encode()).hexdigest()}
    (directory / "complete").write_text(json.dumps(complete, sort_keys=True, separators=(",", ":")))
    (directory / "seal").unlink(missing_ok=True)


@test
def check_repro_finds_what_differs(w):
    project = make(w)
    equal(pack(project, "--check-repro")["checked"], True, "checked")
    trees = project.home / "store/trees"
    for pattern, layer in (("*/root/store/pkg-builds/*/site-packages/*.dist-info/METADATA", "environment"), ("*/root/usr/bin/sed", "base")):
        path = next(iter(trees.glob(pattern)))
        before, mode = path.read_bytes(), path.stat().st_mode
        path.chmod(0o644)
        path.write_bytes(before + b"\n")
        path.chmod(mode)
        for directory in trees.iterdir():       # the file may have a name in more than one
            store_anew(directory)
        details = project.refused("PX904", "pack", "image", "--check-repro")
        equal((details["reason"], details["layer"]), ("not_reproducible", layer), f"{details}")
        check(details["path"].endswith(pattern.split("/")[-1]), f"{details['path']}")
        check(not list((project.home / "store/tmp").iterdir()), "it left something")
        path.chmod(0o644)
        path.write_bytes(before)
        path.chmod(mode)
        for directory in trees.iterdir():
            store_anew(directory)
    pack(project, "--check-repro")


@test
def system_libraries_are_a_layer(w):
    project = make(w)
    first = pack(project)
    project.run("sandbox", "add", "yaml")
    commit(project.dir)
    second = pack(project, "--check-repro")
    equal([layer["name"] for layer in second["layers"]], ["base", "system", "env", "packages", "app"], "layers")
    check(second["system_deps"] and all("=" in row for row in second["system_deps"]), f"{second['system_deps']}")
    check(second["sbx_id"] != first["sbx_id"] and second["profile_oid"] == first["profile_oid"], "ids")
    same = {layer["name"]: layer["digest"] for layer in first["layers"]}
    equal([layer["name"] for layer in second["layers"] if same.get(layer["name"]) == layer["digest"]], ["base", "env"], "layers that stayed")
    said = project.ask("pack", "image")["message"]
    check(said.endswith("(base=debian-12, capabilities=yaml)"), said)


@test
def a_workspace_is_packed_as_a_whole(w):
    project = w.project()
    (project.dir / "pyproject.toml").write_text('[tool.px.workspace]\nname = "all of it"\nmembers = ["libs/core"]\n')
    core = project.dir / "libs/core"
    core.mkdir(parents=True)
    (core / "pyproject.toml").write_text('[project]\nname = "core"\nversion = "1"\n\n[tool.px]\n')
    (core / "core.py").write_text("")
    (project.dir / "requirements.txt").unlink()
    project.run("sync")
    commit(project.dir)
    done = pack(project, cwd=core)
    equal((done["workspace_root"], done["tag"]), (str(project.dir), f"px.local/all-of-it:{done['commit']}"), "details")
    check("libs/core/core.py" in packed_files(project), "files")


@test
def several_at_once(w):
    project = make(w)
    words = [project.world.px, "--json", "pack", "image", "--tag"]
    running = [subprocess.Popen([*words, f"demo:{number % 2}"], cwd=project.dir, env=project.environment(), stdout=subprocess.PIPE, text=True)
               for number in range(6)]
    answers = [(p.communicate(timeout=LIMIT_S)[0], p.returncode) for p in running]
    check(all(status == 0 for _, status in answers), f"{answers}")
    equal(len({json.loads(text)["details"]["image_digest"] for text, _ in answers}), 1, "digests")
    check(not list((project.home / "store/tmp").iterdir()), "something was left")


# ---- names ------------------------------------------------------------------------------------------------------------


@test
def p31_names(w):
    project = make(w)
    done = pack(project)
    equal(done["tag"], "px.local/demo:1.2.3", "name")
    check(not done["pushed"] and "out" not in done and done["system_deps"] == [] and done["store"] == str(project.home / "store"), f"{done}")
    manifest = project.dir / "pyproject.toml"
    for line, expected in (('name = "My App!"\nversion = "1.0+Local"', "px.local/my-app:1.0-local"),
                           ('name = "a..b__c_-d."', "px.local/a-b__c-d:COMMIT"), ('name = "!!!"', "px.local/px:COMMIT")):
        text = manifest.read_text()
        manifest.write_text(line.join(["[project]\n", "\ndependencies" + text.split("\ndependencies")[1]]))
        project.synced()
        commit(project.dir)
        now = git(project.dir, "rev-parse", "HEAD").strip()
        equal(pack(project)["tag"], expected.replace("COMMIT", now), line)
    (project.dir / "main.py").write_bytes(MAIN + b"#\n")
    equal(pack(project, "--allow-dirty")["tag"], f"px.local/px:{now}-dirty", "code that no commit has")
    commit(project.dir)
    subprocess.run(["mv", str(project.dir / ".git"), str(project.dir.parent / "git")], check=True)
    equal(pack(project)["tag"], f"px.local/px:{done['profile_oid'][:32]}", "without a repository")
    subprocess.run(["mv", str(project.dir.parent / "git"), str(project.dir / ".git")], check=True)
    equal(pack(project, "--tag", "demo:7")["tag"], "demo:7", "a tag of one's own")
    check("demo:7" in json.dumps(project.ask("sandbox", "list")), "the list of images")
    project.refused("PX002", "pack", "image", "--tag", "Not A Name")


@test
def the_built_image_block(w):
    project = make(w)
    d = pack(project)
    said = project.run("pack", "image")
    equal(said.stdout, f"""Built image:
  name: px.local/demo:1.2.3
  digest: {d['image_digest']}

Derived from:
  base: debian-12 (base_os_oid={d['base_os_oid']})
  env:  profile_oid={d['profile_oid']}
  sbx:  sbx_id={d['sbx_id']}
""", "the block")
    answer = project.ask("pack", "image")
    equal(answer["message"], f"px pack image: sbx_id={d['sbx_id']} (base=debian-12, capabilities=none)", "message")


# ---- running ----------------------------------------------------------------------------------------------------------


def run_all(options):
    leaks.become_subreaper()
    world = World(options.build, options.build / "work")
    world.programs = options.build
    return tell((f.__name__, *verdict_of(f, world)) for f in chosen(TESTS, options.only))


def main():
    options = parser("build").parse_args()
    if options.published:
        return run_all(options)
    scripts = [*HERE.glob("*.py"), *(HERE.parent / name for name in ("bases/debs.py", "envs/wheels.py", "leaks.py")), *(HERE.parent / "images").glob("*.py")]
    programs = built(options.build, "px-main", "px-layer", "px-fetch", "px-git", "px-net", "tests/image-tool")
    top = publish("px.pack", programs, scripts, options.uid)
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return start_again(top, "projects/pack.py", options, environment=clean)


if __name__ == "__main__":
    sys.exit(main())
