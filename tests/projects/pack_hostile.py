"""Repositories that mean harm: nothing of them is run, nothing outside of them is read, and they can at worst fail."""

import json
import os
import subprocess

from cases import Skip, check, test
from pack_place import CLEAN, commit, git, make, pack, packed_files
from projects import LIMIT_S, equal, tree


def look(w, directory):
    """(exit status, answer or error) of px-git through its client."""
    done = subprocess.run([str(w.programs / "image-tool"), "worktree", str(directory), "1"], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env={**CLEAN, "PX_HOME": str(w.top / "look-home")})
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else done.stderr


@test
def no_program_of_a_repository_runs(w):
    project = make(w, {".gitattributes": b"* filter=evil diff=evil text\n", "a.txt": b"a\n"})
    mark = project.dir.parent / "ran"
    evil = project.dir.parent / "evil"
    evil.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    evil.chmod(0o755)
    settings = {"core.fsmonitor": evil, "filter.evil.clean": evil, "filter.evil.smudge": evil, "filter.evil.process": evil, "diff.evil.textconv": evil,
                "diff.evil.command": evil, "core.sshCommand": evil, "core.editor": evil, "core.pager": evil, "core.hooksPath": project.dir.parent,
                "core.gitProxy": evil, "credential.helper": evil, "core.askPass": evil, "gpg.program": evil, "diff.external": evil}
    for name, value in settings.items():
        git(project.dir, "config", name, value)
    for hook in ("post-index-change", "pre-commit", "fsmonitor-watchman", "post-checkout"):
        path = project.dir / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(evil.read_text())
        path.chmod(0o755)
    os.utime(project.dir / "a.txt", (5, 5))             # its content has to be looked at
    before = tree(project.dir / ".git")
    pack(project)
    check(not mark.exists(), "a program of the repository was run")
    check(tree(project.dir / ".git") == before, "the repository was written to")


@test
def damaged_repositories_fail_in_words(w):
    project = make(w, {"a/b": b"1\n"})
    good = {name: (project.dir / ".git" / name).read_bytes() for name in ("HEAD", "config", "index")}
    cases = {
        "HEAD": [b"", b"ref: ../../../../etc/passwd\n", b"\0" * 100, b"ref: refs/heads/" + b"x" * 5000],
        "config": [b"[core", b"[core]\n\trepositoryformatversion = 99\n", b"[include]\n\tpath = /etc/shadow\n[core]\n\tbare = true\n",
                   b"[extensions]\n\tunheard = 1\n[core]\n\trepositoryformatversion = 1\n"],
        "index": [b"DIRC" + b"\xff" * 40, good["index"][:-30], b"x" * 100],
    }
    for name, texts in cases.items():
        for text in texts:
            (project.dir / ".git" / name).write_bytes(text)
            details = project.refused("PX903", "pack", "image")
            equal(details["reason"], "git_unreadable", f"{name} {text[:30]!r}: {details}")
        (project.dir / ".git" / name).write_bytes(good[name])
    pack(project)
    objects = sorted((project.dir / ".git/objects").glob("??/*"))
    for path in objects:
        path.chmod(0o600)
        path.write_bytes(b"\x78\x9c" + b"\xff" * 50)
    equal(project.refused("PX903", "pack", "image")["reason"], "git_unreadable", "objects")
    check("a/b" in packed_files(project, "--allow-dirty"), "without a comparison its objects are not needed")


@test
def nothing_outside_is_read(w):
    """Another repository, borrowed objects, settings and patterns elsewhere: refused, or as if they were not there."""
    project = make(w)
    other = project.dir.parent / "other"
    other.mkdir()
    (other / "private name").write_text("x")
    commit(other)
    taker = project.dir.parent / "taker"
    taker.mkdir()
    for text in (f"gitdir: {other}/.git\n", "gitdir: ../other/.git\n", "gitdir: /etc\n", "gitdir: \n", "nonsense", "x" * 9000, ""):
        (taker / ".git").write_text(text)
        status, said = look(w, taker)
        check(status == 1 and said.startswith("PX903") and "private" not in said, f"{text[:40]!r}: {said}")
    (taker / ".git").unlink()
    (taker / ".git").symlink_to(other / ".git")
    status, said = look(w, taker)
    check(status == 1 and said.startswith("PX903"), said)
    (taker / ".git").unlink()
    # Patterns and settings that lie elsewhere.
    (project.dir.parent / "patterns").write_text("main.py\n")
    git(project.dir, "config", "core.excludesFile", project.dir.parent / "patterns")
    git(project.dir, "config", "core.attributesFile", project.dir.parent / "patterns")
    status, said = look(w, project.dir)
    check(status == 1 and "PX903" in said or status == 0 and "main.py" in said["files"], f"{said}")
    git(project.dir, "config", "--unset", "core.excludesFile")
    git(project.dir, "config", "--unset", "core.attributesFile")
    (project.dir / ".gitignore").symlink_to(project.dir.parent / "patterns")
    status, said = look(w, project.dir)
    check(status == 1 or "main.py" in said["files"], f"a link to patterns was followed: {said}")
    (project.dir / ".gitignore").unlink()
    # Objects of another repository.
    borrower = project.dir.parent / "borrower"
    git(project.dir.parent, "clone", "-q", "--shared", other, borrower)
    status, said = look(w, borrower)
    check(status == 1 and said.startswith("PX903") and "repack" in said, said)
    git(borrower, "repack", "-q", "-a", "-d")
    (borrower / ".git/objects/info/alternates").unlink()
    status, said = look(w, borrower)
    check(status == 0 and not said["dirty"], f"after it was repacked: {said}")


@test
def a_repository_of_somebody_else_above(w):
    if os.getuid() != 0:
        raise Skip("only the administrator can make files of others")
    project = make(w)
    subprocess.run(["rm", "-rf", "--", str(project.dir / ".git")], check=True)
    pack(project)
    git(project.dir.parent, "init", "-q")
    (project.dir.parent / ".git/info/exclude").write_text("main.py\n")
    subprocess.run(["chown", "-R", "1203", str(project.dir.parent / ".git")], check=True)
    details = project.refused("PX903", "pack", "image")
    equal((details["reason"], details["why"]), ("git_unreadable", ["It belongs to another user than the project."]), "details")
    project.refused("PX903", "pack", "image", "--allow-dirty")


@test
def patterns_have_bounds(w):
    project = make(w)
    path = project.dir / ".ignore"
    for text, word in (("x" * 100_000, "64 KiB"), ("y" * 5000 + "\n", "too long"), ("a\0b\n", "no text")):
        path.write_text(text)
        check(word in json.dumps(project.refused("PX005", "pack", "image", "--allow-dirty")), word)
    path.unlink()
    os.mkfifo(path)
    packed_files(project, "--allow-dirty")
    path.unlink()
    os.mkfifo(project.dir / ".gitignore")       # nobody may wait for it
    status, _ = look(w, project.dir)
    check(status in (0, 1), "a pipe instead of patterns")
    (project.dir / ".gitignore").unlink()
    deep = project.dir
    for _ in range(140):
        deep = deep / "d"
        deep.mkdir()
    (deep / "f").write_text("")
    check("deep" in json.dumps(project.refused("PX005", "pack", "image", "--allow-dirty")), "too deep")


@test
def px_git_can_do_nothing_else(w):
    """What it may not do fails inside its confinement, and what it needs works."""
    place = w.top / "confined"
    place.mkdir(exist_ok=True)

    def act(name):
        return subprocess.run(["sh", "-c", 'exec "$1" try "$2" 3</dev/null 4<"$3"', "sh", str(w.programs / "px-git"), name, str(place)],
                              stdin=subprocess.DEVNULL, check=False, timeout=LIMIT_S).returncode

    for name in ("read-outside", "write-outside", "write-inside", "make-device", "make-directory", "run-program", "new-process", "new-socket", "code-memory",
                 "change-owner", "trace", "signal"):
        check(act(name) not in (0, 2), f"{name} worked inside px-git")
    check(not list(place.iterdir()), "something was made")
    for name in ("data-memory", "new-thread"):
        equal(act(name), 0, name)
