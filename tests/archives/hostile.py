"""Archives that mean harm: each is refused by name and leaves nothing, its permitted twin works."""

import os

from raw import entry, folder, hardlink, header, pax, symlink, tar
from ground import check, outside, test
from tables import PERMITTED, REFUSED


@test
def hostile_archives_by_the_interface(site):
    site.write("victim", b"victim")
    before = outside(site)
    for name, data in REFUSED.items():
        _, answer = site.unpack(data)
        check(answer.startswith("PX814"), f"{name}: {answer}")
        check(outside(site) == before, f"{name}: something outside changed")
    names = {
        "dotdot": "a/../../x",
        "pax path": "../x",
        "long name": "../x",
        "write through link": "out/px-evil",
        "hard link outside": "'x'",
        "unknown kind": "'a'",
    }
    for name, word in names.items():
        check(word in site.unpack(REFUSED[name])[1], f"{name} is not named: {site.unpack(REFUSED[name])[1]}")


@test
def permitted_twins(site):
    for name, data in PERMITTED.items():
        _, answer = site.unpack(data)
        check(answer.startswith("ok"), f"{name}: {answer}")


@test
def hostile_archives_by_the_command_line(site):
    site.write("victim", b"victim")
    archive = site.top / "archive"
    for name, data in REFUSED.items():
        archive.write_bytes(data)
        done = site.exec(archive)
        check(done.returncode == 125 and "PX814" in done.stderr, f"{name}: {done.returncode} {done.stderr[:300]}")
        check(site.trees() == [] and site.left() == [], f"{name}: the store has {site.trees()} {site.left()}")
    check(sorted(os.listdir(site.top)) == ["archive", "home", "victim"], f"outside: {os.listdir(site.top)}")


@test
def names_that_terminals_obey(site):
    _, answer = site.unpack(tar(entry(b"\x1b]0;owned\x07/../x", b"e")))
    check(answer.startswith("PX814") and "\x1b" not in answer and "\x07" not in answer, repr(answer))


@test
def duplicates_last_wins(site):
    data = tar(
        entry("a", b"first", mode=0o600),
        hardlink("keep", "a"),
        entry("a", b"second"),
        folder("d/"),
        entry("d/f", b"x"),
        entry("d", b"now a file"),
        entry("f", b"x"),
        folder("f/"),
        entry("f/in", b"y"),
        symlink("l", "a"),
        entry("l", b"no link any more"),
        entry("m", b"x"),
        symlink("m", "a"),
    )
    out, answer = site.unpack(data)
    check(answer.startswith("ok"), answer)
    check(
        (out / "a").read_bytes() == b"second" and (out / "keep").read_bytes() == b"first",
        "a second entry wrote into the first one's inode",
    )
    check((out / "d").read_bytes() == b"now a file" and (out / "f/in").read_bytes() == b"y", "a change of kind")
    check(
        (out / "l").read_bytes() == b"no link any more"
        and not (out / "l").is_symlink()
        and os.readlink(out / "m") == "a",
        "links",
    )


@test
def existing_files_are_not_followed(site):
    """A directory that holds links already, as another layer may have left them."""
    victim = site.write("victim", b"victim")
    out = site.fresh("out")
    (out / "link").symlink_to("../victim")
    (out / "dir").symlink_to("..")
    os.link(victim, out / "hard")
    _, answer = site.unpack(tar(entry("link", b"new"), entry("hard", b"new", mode=0o600)), onto=True)
    check(
        answer.startswith("ok") and victim.read_bytes() == b"victim" and (out / "link").read_bytes() == b"new", answer
    )
    _, answer = site.unpack(tar(entry("dir/px-evil", b"new")), onto=True)
    check(answer.startswith("PX814") and not (site.top / "px-evil").exists(), answer)
    _, answer = site.unpack(tar(folder("dir/"), entry("dir/in", b"new")), onto=True)
    check(answer.startswith("ok") and not (site.top / "in").exists() and (out / "dir/in").exists(), answer)


@test
def devices_are_counted_only(site):
    data = tar(header("null", b"3"), header("disk", b"4"), header("pipe", b"6"), entry("file", b"x"))
    out, answer = site.unpack(data)
    check(
        answer.split()[0] == "ok" and answer.split()[-1] == "3" and os.listdir(out) == ["file"],
        f"{answer} {os.listdir(out)}",
    )


@test
def whiteouts(site):
    lower = tar(
        folder("d/"),
        entry("d/old", b"x"),
        entry("d/stay", b"x"),
        folder("d/sub/"),
        entry("d/sub/old", b"x"),
        entry("gone", b"x"),
        folder("tree/a/b/"),
        entry("tree/a/b/c", b"x"),
    )
    upper = [
        entry("d/.wh..wh..opq"),
        entry("d/new", b"y"),
        entry("d/sub/new", b"y"),
        entry(".wh.gone"),
        entry(".wh.tree"),
        entry("tree/other", b"y"),
        entry("no/.wh.thing"),
    ]
    expected = {"d/new", "d/sub/new", "tree/other"}
    for order in (upper, upper[::-1], upper[3:] + upper[:3]):
        out, answer = site.unpack(lower)
        check(answer.startswith("ok"), answer)
        _, answer = site.unpack(tar(*order), onto=True, whiteouts=True)
        check(answer.startswith("ok"), answer)
        found = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
        check(found == expected, f"{sorted(found)}")
    out, answer = site.unpack(tar(entry(".wh.plain", b"x")))
    check(answer.startswith("ok") and (out / ".wh.plain").exists(), "without whiteouts it is a file like any other")


@test
def hostile_whiteouts(site):
    site.write("victim", b"victim")
    bad = {
        "dot": entry(".wh.."),
        "dotdot": entry(".wh..."),
        "empty": entry(".wh."),
        "nested": entry(".wh..wh.x"),
        "with data": entry(".wh.victim", b"data"),
        "folder": folder(".wh.victim/"),
        "in a whiteout": entry(".wh.a/b"),
        "through link": symlink("up", "..") + entry("up/.wh.victim"),
        "opaque through link": symlink("up", "..") + entry("up/.wh..wh..opq"),
        "link": symlink(".wh.victim", "x"),
    }
    for name, data in bad.items():
        _, answer = site.unpack(tar(data), whiteouts=True)
        check(answer.startswith("PX814"), f"{name}: {answer}")
        check(
            (site.top / "victim").read_bytes() == b"victim" and (site.top / "archive").exists(),
            f"{name}: something outside went",
        )
    _, answer = site.unpack(tar(entry(".wh.never-there"), entry(".wh..wh..opq")), whiteouts=True)
    check(answer.startswith("ok"), answer)
