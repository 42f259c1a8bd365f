"""bad_input.py - what is wrong with a project's files has its code, in words and as JSON, and nothing comes of it. Cases of pack.py."""

import json

import elf
from cases import WITHOUT_REASON, check, test
from pack_place import commit, make
from projects import ALPHA, equal, plain, tree
from wheels import Wheel


def both(project, code, *words, **more):
    """The answer's details, after the words for a person said the same, and nothing was written."""
    before = tree(project.dir)
    said = project.run(*words, status=1, **more)
    said.stderr = "".join(line for line in said.stderr.splitlines(True) if not line.startswith("px: "))         # progress
    check(said.stderr.startswith(code + "  ") and ("\nWhy:\n  - " in said.stderr or code in WITHOUT_REASON) and "\nFix:\n  - " in said.stderr and not said.stdout, f"{words}: {said.stderr}")
    answer = json.loads(project.run("--json", *words, status=1, **more).stdout)
    equal((answer["status"], answer["details"]["code"]), ("user-error", code), f"{words}: {answer}")
    check((answer["details"]["why"] or code in WITHOUT_REASON) and answer["details"]["fix"], f"{answer}")
    check(tree(project.dir) == before, f"{words}: something was written in the project")
    check(not list((project.home / "store/tmp").iterdir()), f"{words}: something is left in the store")
    return answer["details"] | {"message": answer["message"]}


BUILD, PACK, RUN = ("sandbox", "build"), ("pack", "image", "--allow-dirty"), ("run", "--sandbox", "main.py")


@test
def manifests_that_are_wrong(w):
    project = make(w)
    images = list((project.home / "sandbox/images").glob("*")) if (project.home / "sandbox/images").exists() else []
    path = project.dir / "pyproject.toml"
    good = path.read_text()
    rows = ((good.replace('version = "1.2.3"', 'version = 1.2.3.'), "PX102", "pyproject.toml:3:"),
            (good + "[tool.px.sandbox]\nbase = 7\n", "PX102", "pyproject.toml:8:"),
            (good + '[tool.px.sandbox]\nbase = "plan-9"\n', "PX900", "plan-9"),
            (good + "[tool.px.sandbox.capabilities]\npostgers = true\n", "PX901", "postgers"),
            (good + '[tool.px.sandbox]\nbase = "alpine-3.20"\n[tool.px.sandbox.capabilities]\npostgres = true\n', "PX901", "postgres"))
    for text, code, word in rows:
        path.write_text(text)
        for words in (BUILD, PACK, RUN):
            if (code, words, "alpine" in text) != ("PX901", PACK, True):         # for another base its environment is another: PX201
                check(word in both(project, code, *words)["message"], f"{words}: {word}")
    path.write_text(good)
    left = [image for image in (project.home / "sandbox/images").glob("*") if image not in images]
    check(not left, f"images came of it: {left}")
    project.build()


@test
def locks_that_are_wrong(w):
    project = make(w)
    lock = project.dir / "requirements.txt"
    good = lock.read_text()
    lock.unlink()
    for words, code in ((BUILD, "PX120"), (RUN, "PX120"), (PACK, "PX201")):
        check("no px.lock beside" in str(both(project, code, *words)["why"]), f"{words}: why")
    (project.dir / "px.lock").write_text("version = 1\n[metadata\n")
    for words, code in ((BUILD, "PX121"), (RUN, "PX121"), (PACK, "PX201")):
        check("px.lock:2:" in json.dumps(both(project, code, *words)), f"{words}: the line")
    (project.dir / "px.lock").unlink()
    lock.write_text("alpha==1.0\n")
    both(project, "PX121", "sync", "--frozen")
    project.synced()
    commit(project.dir)
    details = both(project, "PX121", *PACK)
    equal((details["package"], details["reason"]), ("alpha", "missing_hash"), "a lock without hashes")
    project.build()
    lock.write_text(good)
    project.synced()
    project.run(*PACK)


@test
def archives_that_are_wrong(w):
    """Cut off after the lock was made, and before; full of nothing."""
    project = make(w)
    wheel = Wheel("beta", "1.0", {"beta.py": b"x = 1\n" * 1000})
    whole = wheel.bytes()
    project.write(ALPHA, wheel)
    (project.wheels / wheel.file).write_bytes(whole[:-100])
    commit(project.dir)
    for words, code in ((BUILD, "PX800"), (RUN, "PX800"), (PACK, "PX201"), (("sync",), "PX800")):
        details = both(project, code, *words)
        check(code == "PX201" or wheel.file in str(details["why"]), f"{words}: {details}")
    for data in (whole[:-100], whole[:200], b""):
        wheel.bytes = lambda data=data: data
        project.write(ALPHA, wheel)
        for words, code in ((BUILD, "PX814"), (RUN, "PX814"), (PACK, "PX201"), (("sync",), "PX814")):
            both(project, code, *words)
    wheel.bytes = lambda: whole
    project.write(ALPHA, wheel)
    project.synced()
    project.build()


@test
def libraries_that_lie(w):
    """A file that says of itself what cannot be: it needs nothing, takes no time, and its package is a package."""
    good = elf.shared_library("libpq.so.5")
    lies = {"sizes": good[:64] + good[64:].replace(good[96:104], b"\xff" * 7 + b"\x7f"), "count": good[:56] + b"\xff\xff" + good[58:],
            "headers": good[:32] + b"\xf0" + b"\xff" * 7 + good[40:], "names": good[:-8], "loop": good[:64] + good[120:176] * 2 + good[176:],
            "many": good + b"\x01" + b"\0" * 15 + b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0" * 200000, "head": good[:20], "nothing": b"\x7fELF"}
    files = {f"thing/_{name}.so": data for name, data in lies.items()} | {"thing/__init__.py": b""}
    project = w.project(plain("thing", files=files)).synced()
    check(set(project.inferred()) <= {"postgres"}, f"{project.inferred()}")
    equal(project.build()["base"], "debian-12", "it is built")
