"""Which files are packed: what git would hand on, and nothing that is always left out."""

import json
import os
import random
import socket
import subprocess

from cases import Skip, check, test
from pack_place import CLEAN, MAIN, commit, git, make, pack, packed_files
from projects import LIMIT_S, equal

SKIPPED = (".px", "__pycache__", "target", "dist", ".mypy_cache", ".pytest_cache", ".nox", ".tox", ".venv", "venv", ".ruff_cache")
OWN = ["main.py", "pyproject.toml", "requirements.txt"]


def put(directory, *names, data=b"x\n"):
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@test
def p30_what_is_left_out(w):
    project = make(w, {".gitignore": b"*.log\n/build/\n", ".env.example": b"A=\n", "sub/.gitignore": b"local\n", "sub/a.py": b"",
                       "cache.pyc": b"", "pkg/m.pyc": b"", ".github/workflow.yml": b"", **{f"{name}/x": b"" for name in SKIPPED},
                       **{f"sub/{name}/x": b"" for name in SKIPPED}})
    put(project.dir, "x.log", "build/out", "sub/local", "notes.txt")
    (project.dir / ".git/info/exclude").write_text("notes.txt\n")
    equal(sorted(packed_files(project)), sorted([".env.example", ".github/workflow.yml", ".gitignore", "sub/.gitignore", "sub/a.py", *OWN]), "files")
    git(project.dir, "add", "-f", "build/out", "x.log")
    git(project.dir, "commit", "-qm", "forced")
    check({"build/out", "x.log"} <= set(packed_files(project)), "what git tracks is not ignored")
    (project.dir / ".ignore").write_text("*.secret\n/only/here\nsub/*\n!sub/a.py\n")
    put(project.dir, "a.secret", "sub/b.secret", "only/here", "other/only/here", "sub/c.py")
    git(project.dir, "add", ".ignore", "other")
    git(project.dir, "commit", "-qm", "ignored by others than git")
    found = packed_files(project)
    check(not {"a.secret", "sub/b.secret", "only/here", "sub/c.py"} & set(found), f"{sorted(found)}")
    check({"other/only/here", "sub/a.py"} <= set(found), f"{sorted(found)}")


@test
def what_builds_and_tests_leave_behind(w):
    """It makes no project dirty and is not packed; what git tracks is."""
    made = ("build/lib/x.py", "demo.egg-info/PKG-INFO", "src/demo.egg-info/PKG-INFO", ".eggs/x", "a.pyo", "htmlcov/index.html", ".coverage", "web/node_modules/x/y.js")
    ours = ["pkg/build/__init__.py", "coverage", "egg-info", "pyo", "htmlcov.txt"]
    project = make(w, {name: b"" for name in ours})
    put(project.dir, *made)
    equal(sorted(packed_files(project)), sorted([*ours, *OWN]), "files")
    subprocess.run(["mv", str(project.dir / ".git"), str(project.dir.parent / "git")], check=True)
    equal(sorted(packed_files(project)), sorted([*ours, *OWN]), "files without a repository")
    subprocess.run(["mv", str(project.dir.parent / "git"), str(project.dir / ".git")], check=True)
    git(project.dir, "add", "-f", *made)
    git(project.dir, "commit", "-qm", "on purpose")
    put(project.dir, "build/more.py", ".eggs/more")
    equal(sorted(packed_files(project)), sorted([*made, *ours, *OWN]), "what git tracks")


@test
def ignored_as_git_ignores(w):
    """Trees and patterns by chance: the files are those that git itself names."""
    chance = random.Random(7)
    names = ["a", "b", "c.txt", "d.log", "e e", "f[1]", "#g", "!h", "deep", "x.py"]
    patterns = ["*.log", "*.txt", "/a", "b/", "deep/**", "**/x.py", "!x.py", "\\#g", "\\!h", "e e", "f\\[1\\]", "*", "!*/", "!*.py", "deep/*/a", "c.*",
                "# a comment", "", "a/b", "/deep/b/", "!/a/b", "[a-c]", "?.py", "  ", "d.log "]
    project = make(w)
    for turn in range(25):
        top = project.dir.parent / f"tree{turn}"
        for _ in range(chance.randrange(5, 40)):
            path = top.joinpath(*(chance.choice(names) for _ in range(chance.randrange(1, 4))))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")
            except OSError:             # a file where a directory is, or the other way round
                continue
        git(top, "init", "-q")
        for directory in [top, *(p for p in top.rglob("*") if p.is_dir() and ".git" not in p.parts and chance.random() < 0.3)]:
            (directory / ".gitignore").write_text("\n".join(chance.choice(patterns) for _ in range(chance.randrange(0, 5))) + "\n")
        if turn % 2:
            git(top, "add", "-A")
            git(top, "commit", "-q", "--allow-empty", "-m", "x")
        expected = {name for name in git(top, "ls-files", "-z", "-co", "--exclude-standard").split("\0") if name}
        done = subprocess.run([str(w.programs / "image-tool"), "worktree", str(top), "1"], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env={**CLEAN, "PX_HOME": str(project.home)})
        check(done.returncode == 0, done.stderr)
        answer = json.loads(done.stdout)
        equal(sorted(answer["files"]), sorted(expected), f"tree {turn}: {[(str(p), p.read_text()) for p in top.rglob('.gitignore')]}")
        status = {line for line in git(top, "status", "--porcelain", "-z", "--untracked-files=all").split("\0") if line}
        equal(set(answer["dirty"]), status, f"tree {turn}: dirty")


@test
def links_stay_links(w):
    project = make(w)
    for name, target in (("out", "/etc/passwd"), ("up", "../../.."), ("nowhere", "gone"), ("inside", "main.py"), ("dir", "pkg")):
        (project.dir / name).symlink_to(target)
    put(project.dir, "pkg/a.py")
    commit(project.dir)
    found = packed_files(project)
    equal({n: m.linkname for n, (m, _) in found.items() if m.issym()},
          {"out": "/etc/passwd", "up": "../../..", "nowhere": "gone", "inside": "main.py", "dir": "pkg"}, "links")
    check("dir/a.py" not in found and "pkg/a.py" in found, "a link was followed")


@test
def sockets_and_pipes_are_said(w):
    project = make(w)
    os.mkfifo(project.dir / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(project.dir)
        listener.bind("socket")
        os.chdir(here)
    done = pack(project, "--allow-dirty")
    check(len(done["warnings"]) == 2 and any("pipe" in line for line in done["warnings"]), f"{done['warnings']}")
    said = project.run("pack", "image", "--allow-dirty")
    check("px pack: " in said.stderr and "socket" in said.stderr, said.stderr)
    equal(sorted(packed_files(project, "--allow-dirty")), OWN, "files")


@test
def what_cannot_be_read_is_an_error(w):
    if os.getuid() == 0:
        raise Skip("the administrator reads everything")
    project = make(w)
    put(project.dir, "closed/file", "unreadable")
    commit(project.dir)
    for path in ("unreadable", "closed"):
        (project.dir / path).chmod(0)
        details = project.refused("PX007", "pack", "image", "--allow-dirty")
        check("ermission" in json_of(details), f"{details}")
        (project.dir / path).chmod(0o755)
    pack(project, "--allow-dirty")


def json_of(details):
    return json.dumps(details)


@test
def strange_names_are_packed(w):
    project = make(w)
    strange = ["line\nend", "tab\there", "quote\"'", "ünïcode", "-dash", " blank ", "back\\slash", "*star", "a" * 200 + "/" + "b" * 200]
    put(project.dir, *strange)
    (project.dir / os.fsdecode(b"latin-\xe4")).write_bytes(b"x")
    commit(project.dir)
    found = packed_files(project)
    check(set(strange) <= set(found), f"{sorted(set(strange) - set(found))}")
    (project.dir / "line\nend").write_text("changed")
    lines = project.refused("PX903", "pack", "image")["lines"]
    equal(lines, " M line\\x0aend", "a name that would be two lines")
    (project.dir / ".wh.hidden").write_text("")
    said = project.run("pack", "image", "--allow-dirty", status=1).stderr
    check(said.startswith("PX005  ") and "hides" in said, f"a whiteout: {said}")


@test
def a_part_of_a_repository(w):
    """The project is a directory of a larger repository: patterns above it count, changes beside it do not."""
    project = make(w)
    top = project.dir.parent / "large"
    (top / "services").mkdir(parents=True)
    subprocess.run(["rm", "-rf", "--", str(project.dir / ".git")], check=True)
    subprocess.run(["mv", str(project.dir), str(top / "services/demo")], check=True)
    project.dir = top / "services/demo"
    project.synced()
    (top / ".gitignore").write_text("*.tmp\n")
    (top / ".ignore").write_text("demo/secret\n")
    put(top, "services/other/x.py", "services/demo/a.tmp")
    (top / "services/.ignore").write_text("demo/secret\n")
    commit(top)
    put(project.dir, "secret")
    put(top, "services/other/changed.py", "beside")
    equal(sorted(packed_files(project)), OWN, "files")
    put(project.dir, "new.py")
    equal(project.refused("PX903", "pack", "image")["lines"], "?? new.py", "lines")
    (project.dir / "new.py").unlink()
    (top / ".git/info/exclude").write_text("/services/\n")
    git(top, "rm", "-rq", "--cached", "services")
    equal(sorted(packed_files(project)), sorted(["a.tmp", "secret", *OWN]), "a project that the repository around it ignores")


@test
def linked_trees_and_submodules(w):
    project = make(w)
    linked = project.dir.parent / "linked"
    git(project.dir, "worktree", "add", "-q", linked)
    original, project.dir = project.dir, linked
    project.synced()
    first = pack(project)
    equal(first["commit"], git(linked, "rev-parse", "HEAD").strip(), "commit")
    put(linked, "new")
    equal(project.refused("PX903", "pack", "image")["lines"], "?? new", "lines")
    outer = project.dir.parent / "outer"
    outer.mkdir()
    commit(outer)
    git(outer, "submodule", "--quiet", "add", original, "part")
    git(outer, "commit", "-qm", "a part")
    project.dir = outer / "part"
    project.synced()
    equal(pack(project)["image_digest"], first["image_digest"], "the same files as a submodule")
    (project.dir / "main.py").write_bytes(MAIN + b"#")
    equal(project.refused("PX903", "pack", "image")["lines"], " M main.py", "lines")
