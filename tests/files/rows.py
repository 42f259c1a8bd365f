#!/usr/bin/python3
"""files/rows.py [--as UID] [--only NAME...] PX - the rows F1 to F32 of the file sandbox's specification, each by its number.

Through the commands that people and agents use: px file for F1 to F25, px worker for F26 to F32. PX and px-main beside it are copied to
where any user can reach them. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
from cases import Skip, check, drive, test  # noqa: E402

LIMIT_S = 120
SECRET = "the secret of the host"
OUTSIDE = "Cannot access '{}': path is outside sandbox.\nReadable paths: portfolio, pipeline"
READ_ONLY = "Cannot write to '{}': path is read-only.\nWritable paths: {}"
DENIALS = ("PathNotInSandboxError", "PathNotWritableError", "SuffixNotAllowedError", "FileTooLargeError", "NotAFileError", "NotTextError", "PatternError")


class World:
    """portfolio is rw, .md and .pdf, at most 20 bytes; pipeline is ro; the secret lies beside them."""

    def __init__(self, px, top):
        self.px, self.top = px, Path(top)
        self.portfolio, self.pipeline = self.top / "p1", self.top / "p2"
        for path in (self.portfolio, self.pipeline):
            path.mkdir()
        (self.portfolio / "a.md").write_text("hello")
        (self.pipeline / "b.txt").write_text("b")
        (self.top / "secret.md").write_text(SECRET)
        self.roots = (f"portfolio={self.portfolio}:rw:suffixes=.md,.pdf:max=20", f"pipeline={self.pipeline}")

    def ask(self, op, *words, roots=(), options=(), data=None):
        done = subprocess.run([self.px, "--json", "file", op, *(f"--root={root}" for root in roots or self.roots), *options, "--", *words],
                              input=data, stdin=subprocess.DEVNULL if data is None else None, capture_output=True, timeout=LIMIT_S, check=False)
        said = done.stdout + done.stderr
        check(done.returncode in (0, 1, 2), f"{op} {words}: ended with {done.returncode}: {said[-300:]!r}")
        check(SECRET.encode() not in said, f"{op} {words}: the secret")
        check(str(self.top).encode() not in said, f"F20: {op} {words}: a path of the host: {said[-300:]!r}")
        return json.loads(done.stdout)

    def good(self, op, *words, **more):
        answer = self.ask(op, *words, **more)
        check(answer["ok"], f"{op} {words}: {answer.get('message')}")
        return answer

    def bad(self, kind, op, *words, message=None, **more):
        answer = self.ask(op, *words, **more)
        check(not answer["ok"] and answer["error"]["class"] == kind, f"{op} {words}: {answer}")
        check(message is None or answer["message"] == message, f"{op} {words}: {answer['message']!r}, not {message!r}")
        check(answer["error"]["retryable"] is (kind not in DENIALS), f"{op} {words}: whether it may be tried again: {answer['error']}")
        return answer

    def write(self, path, content, **more):
        return self.good("write", path, options=("--content", content), **more)

    def names(self, *words, **more):
        return [entry["path"] for entry in self.good("list", *words, **more)["entries"]]

    # ---- workers ----

    def worker(self, text, name="w.yaml"):
        (self.top / name).write_text(text)
        return str(self.top / name)

    def shell(self, file, *command, options=(), before=()):
        """(status, the JSON object, what was said)"""
        done = subprocess.run([*before, self.px, "--json", "worker", "shell", file, "--base", str(self.top), *options, "--", *command], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=LIMIT_S, check=False, text=True)
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stdout + done.stderr


BOTH = "sandbox:\n  paths:\n    portfolio: {root: ./p1, mode: rw}\n    pipeline: {root: ./p2}\n"
ANY = "shell_default: {approval_required: false}\n"


# ---- reading ----


@test
def F01_a_read_gives_the_content(w):
    check(w.good("read", "portfolio/a.md")["content"] == "hello", "its content")
    for path in ("portfolio:a.md", "./portfolio/a.md", ".//./portfolio/a.md"):
        check(w.good("read", path)["content"] == "hello", f"its content as {path}")


@test
def F02_a_read_outside_says_what_is_readable(w):
    for path in ("/etc/passwd", "nope/x", "", "../secret.md", "./nope/x", "./../secret.md"):
        w.bad("PathNotInSandboxError", "read", path, message=OUTSIDE.format(path))
    w.bad("NotAFileError", "read", "portfolio", message="Not a file: portfolio")


@test
def F03_a_write_to_a_root_that_is_read_only(w):
    w.bad("PathNotWritableError", "write", "pipeline/x", options=("--content", "x"), message=READ_ONLY.format("pipeline/x", "portfolio"))
    w.bad("PathNotWritableError", "write", "pipeline/x", options=("--content", "x"), roots=(f"pipeline={w.pipeline}",),
          message=READ_ONLY.format("pipeline/x", "none"))
    check(sorted(os.listdir(w.pipeline)) == ["b.txt"], "it was written")


@test
def F04_a_suffix_that_is_not_allowed(w):
    (w.portfolio / "x.txt").write_text("x")
    w.bad("SuffixNotAllowedError", "read", "portfolio/x.txt",
          message="Cannot access 'portfolio/x.txt': suffix not allowed.\nAllowed suffixes: .md, .pdf")
    w.bad("SuffixNotAllowedError", "write", "portfolio/none", options=("--content", "x"))


@test
def F05_a_suffix_in_capitals(w):
    (w.portfolio / "B.MD").write_text("big")
    check(w.good("read", "portfolio/B.MD")["content"] == "big", "its content")


@test
def F06_a_file_of_the_limit_and_one_byte_more(w):
    (w.portfolio / "fits.md").write_text("x" * 20)
    (w.portfolio / "large.md").write_text("x" * 21)
    check(w.good("read", "portfolio/fits.md")["total_chars"] == 20, "20 bytes")
    w.bad("FileTooLargeError", "read", "portfolio/large.md",
          message="Cannot read 'portfolio/large.md': file too large (21 bytes).\nMaximum allowed: 20 bytes")


@test
def F07_a_write_over_the_limit_leaves_the_file(w):
    w.bad("FileTooLargeError", "write", "portfolio/a.md", options=("--content", "x" * 21),
          message="Cannot write 'portfolio/a.md': file too large (21 bytes).\nMaximum allowed: 20 bytes")
    check((w.portfolio / "a.md").read_text() == "hello", "it was changed")
    w.write("portfolio/a.md", "x" * 20)


@test
def F08_a_file_that_is_missing_and_a_directory(w):
    w.bad("FileNotFoundError", "read", "portfolio/none.md", message="File not found: portfolio/none.md")
    (w.portfolio / "dir.md").mkdir()
    w.bad("NotAFileError", "read", "portfolio/dir.md", message="Not a file: portfolio/dir.md")


@test
def F09_the_first_characters(w):
    got = w.good("read", "portfolio/a.md", options=("--max-chars", "3"))
    check((got["content"], got["truncated"], got["total_chars"]) == ("hel", True, 5), f"{got}")


@test
def F10_an_offset_past_the_end(w):
    got = w.good("read", "portfolio/a.md", options=("--offset", "99"))
    check((got["content"], got["truncated"]) == ("", False), f"{got}")


@test
def F11_characters_are_counted_and_never_split(w):
    text = "aä€😀z"
    (w.pipeline / "u").write_text(text, encoding="utf-8")
    for offset in range(6):
        for count in range(6):
            got = w.good("read", "pipeline/u", options=(f"--offset={offset}", f"--max-chars={count}"))
            check(got["content"] == text[offset:offset + count], f"{offset} {count}: {got}")


@test
def F12_bytes_that_are_no_text(w):
    for data in (b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"):
        (w.portfolio / "b.md").write_bytes(data)
        check("attachment" in json.dumps(w.bad("NotTextError", "read", "portfolio/b.md")), "the other way is not named")


@test
def F13_ways_out(w):
    (w.portfolio / "out.md").symlink_to("../secret.md")
    (w.portfolio / "abs.md").symlink_to(w.top / "secret.md")
    (w.portfolio / "dir").symlink_to("..")
    for path in ("portfolio/../secret.md", "portfolio/../p2/b.txt", "portfolio/../pipeline/b.txt", str(w.top / "secret.md").replace(str(w.top), "/x"),
                 "portfolio/out.md", "portfolio/abs.md", "portfolio/dir/secret.md", "~/x.md", "./portfolio/../secret.md", "./../secret.md"):
        w.bad("PathNotInSandboxError", "read", path)
    request = json.dumps({"path": "portfolio/a.md\0/../x"}).encode()
    done = subprocess.run([w.px, "--json", "file", "read", *(f"--root={root}" for root in w.roots), "--input", "-"], input=request, capture_output=True, check=False)
    error = json.loads(done.stdout)["error"]
    check((error["class"], error["message"]) == ("PathNotInSandboxError", OUTSIDE.format("portfolio/a.md\\x00/../x")), f"a NUL: {done.stdout!r}")
    check(w.good("resolve", "portfolio//etc/passwd.md")["path"] == "portfolio/etc/passwd.md", "two slashes stay inside")


@test
def F14_a_link_that_stays_inside(w):
    (w.portfolio / "sub").mkdir()
    (w.portfolio / "sub" / "in.md").symlink_to("../a.md")
    (w.portfolio / "way").symlink_to("sub")
    check(w.good("read", "portfolio/way/in.md")["content"] == "hello", "its content")
    check(w.good("resolve", "portfolio/way/in.md")["path"] == "portfolio/a.md", "where it leads")


# ---- writing ----


@test
def F15_directories_are_made_inside_only(w):
    w.write("portfolio/new/deep/x.md", "x")
    check((w.portfolio / "new" / "deep" / "x.md").read_text() == "x", "it is not there")
    w.bad("PathNotInSandboxError", "write", "portfolio/../made/x.md", options=("--content", "x"))
    (w.portfolio / "up").symlink_to("..")
    w.bad("PathNotInSandboxError", "write", "portfolio/up/made/x.md", options=("--content", "x"))
    check(sorted(os.listdir(w.top)) == ["p1", "p2", "secret.md"], f"{os.listdir(w.top)}")


@test
def F16_a_write_through_a_link_that_leads_out(w):
    (w.portfolio / "out.md").symlink_to("../secret.md")
    (w.portfolio / "gone.md").symlink_to("../new.md")
    for name in ("out.md", "gone.md"):
        w.bad("PathNotInSandboxError", "write", f"portfolio/{name}", options=("--content", "x"))
    check((w.top / "secret.md").read_text() == SECRET and not (w.top / "new.md").exists(), "it was written")


@test
def F17_a_list_of_everything(w):
    (w.portfolio / "sub").mkdir()
    (w.portfolio / "sub" / ".hidden").write_text("")
    check(w.names() == ["pipeline/b.txt", "portfolio/a.md", "portfolio/sub/.hidden"], f"{w.names()}")


@test
def F18_patterns(w):
    (w.portfolio / "sub").mkdir()
    (w.portfolio / "sub" / "c.md").write_text("")
    check(w.names("portfolio", options=("--pattern=*.md",)) == ["portfolio/a.md"], "*.md")
    check(w.names("portfolio", options=("--pattern=**/*.md",)) == ["portfolio/a.md", "portfolio/sub/c.md"], "**/*.md")
    check(w.names("portfolio/sub") == ["portfolio/sub/c.md"], "a path below")
    for pattern in ("../*", "/x", "~/x", "a/../../x"):
        w.bad("PatternError", "list", "portfolio", options=(f"--pattern={pattern}",))


@test
def F19_questions_are_never_errors(w):
    for path, read, write in (("portfolio/a.md", True, True), ("portfolio/new.md", True, True), ("pipeline/b.txt", True, False), ("/etc/passwd", False, False),
                              ("", False, False), ("nope/x", False, False), ("portfolio/x.txt", False, False), ("portfolio/../x", False, False)):
        for op, wanted in (("can-read", read), ("can-write", write)):
            answer = w.good(op, path)
            check(answer["allowed"] is wanted, f"{op} {path}: {answer}")


@test
def F20_no_error_shows_a_path_of_the_host(w):
    """Every other row looks for it, too."""
    (w.portfolio / "x.txt").write_text("x")
    (w.portfolio / "large.md").write_text("x" * 21)
    (w.portfolio / "out.md").symlink_to(w.top / "secret.md")
    (w.portfolio / "b.md").write_bytes(b"\xff")
    os.mkfifo(w.portfolio / "pipe.md")
    for path in ("portfolio/x.txt", "portfolio/large.md", "portfolio/out.md", "portfolio/b.md", "portfolio/pipe.md", "portfolio/none.md", "portfolio/", "nope",
                 "portfolio/a.md/x", "portfolio/" + "n" * 300, "portfolio/" + "d/" * 3000):
        for op, options in (("read", ()), ("stat", ()), ("resolve", ()), ("list", ()), ("delete", ()), ("edit", ("--old", "a", "--new", "b")), ("make-directory", ()),
                            ("diff", ("--content", "x"))):
            if (op, path) != ("delete", "portfolio/b.md"):
                w.ask(op, path, options=options)


@test
def F21_an_edit_needs_one_match(w):
    path = w.portfolio / "a.md"
    path.write_text("x y\nx x")
    w.bad("EditError", "edit", "portfolio/a.md", options=("--old", "z", "--new", ""), message="Cannot edit 'portfolio/a.md': text not found.\nSearched for: 'z'")
    w.bad("EditError", "edit", "portfolio/a.md", options=("--old", "x", "--new", ""),
          message="Cannot edit 'portfolio/a.md': text found 3 times, it must be unique.\nSearched for: 'x'")
    check("-x y\n+x z" in w.good("edit", "portfolio/a.md", options=("--old", "y", "--new", "z", "--dry-run"))["diff"], "a dry run's diff")
    check(path.read_text() == "x y\nx x", "it was changed")
    w.good("edit", "portfolio/a.md", options=("--old", "y", "--new", "z"))
    check(path.read_text() == "x z\nx x", "it was not changed")


@test
def F22_moving_and_copying(w):
    (w.portfolio / "b.md").write_text("b")
    (w.pipeline / "c.md").write_text("c")
    w.bad("FileExistsError", "move", "portfolio/a.md", "portfolio/b.md")
    w.bad("FileExistsError", "copy", "portfolio/a.md", "portfolio/b.md")
    w.bad("PathNotWritableError", "copy", "portfolio/a.md", "pipeline/a.md")
    w.bad("PathNotWritableError", "move", "pipeline/c.md", "portfolio/c.md")
    w.good("copy", "pipeline/c.md", "portfolio/new/c.md")
    check((w.portfolio / "new" / "c.md").read_text() == "c" and (w.portfolio / "b.md").read_text() == "b", "the files")


# ---- roots ----


@test
def F23_the_longest_name_wins(w):
    for name in ("deep", "deepx"):
        (w.portfolio / name).mkdir()
        (w.portfolio / name / "b.txt").write_text("outer")
    roots = (f"output={w.portfolio}", f"output/deep={w.pipeline}")
    check(w.good("read", "output/deep/b.txt", roots=roots)["content"] == "b", "output/deep")
    check(w.good("read", "output/deepx/b.txt", roots=roots)["content"] == "outer", "output/deepx")


@test
def F24_roots_that_cannot_be(w):
    (w.portfolio / "sub").mkdir()
    for roots in ((f"a={w.portfolio}", f"b={w.portfolio}/sub"), (f"a={w.portfolio}", f"b={w.portfolio}"), (f"a={w.portfolio}", f"a={w.pipeline}"), ()):
        done = subprocess.run([w.px, "file", "roots", *(f"--root={root}" for root in roots)], capture_output=True, check=False)
        check(done.returncode == 1 and done.stderr.startswith(b"PX310"), f"{roots}: {done.stderr[:200]!r}")


@test
def F25_a_child_can_only_do_less(w):
    for name in ("sub", "other"):
        (w.portfolio / name).mkdir()
        (w.portfolio / name / "a.md").write_text("a")

    def may(path, *options):
        return tuple(w.good(op, path, options=options)["allowed"] for op in ("can-read", "can-write"))
    check(may("portfolio/other/a.md", "--allow-read=portfolio/sub") == (False, False), "nothing is allowed but what is named")
    check(may("portfolio/sub/a.md", "--allow-read=portfolio/sub") == (True, False), "reading")
    check(may("portfolio/sub/a.md", "--allow-write=portfolio/sub") == (True, True), "writing")
    check(may("portfolio/sub/a.md", "--allow-write=portfolio/sub", "--read-only") == (True, False), "reading after all")
    for options in (("--allow-write=pipeline",), ("--allow-read=portfolio/sub/..",), ("--allow-read=portfolio/a.md",), ("--allow-read=/etc",)):
        check(not w.ask("roots", options=options)["ok"], f"{options} were taken")


# ---- the shell tool ----


@test
def F26_a_command_that_writes_where_it_may_not(w):
    file = w.worker(BOTH + ANY)
    status, answer, _ = w.shell(file, "touch", "pipeline/x")
    check(status == 1 and "Read-only file system" in answer["stderr"], f"{answer}")
    check("Note: This worker's writable paths are: portfolio" in answer["stderr"] and not (w.pipeline / "x").exists(), f"{answer}")
    status, answer, _ = w.shell(file, "touch", "portfolio/x")
    check(status == 0 and (w.portfolio / "x").exists(), f"the twin: {answer}")


CONNECT = "import socket; socket.create_connection(('198.51.100.1', 80), 5)"


@test
def F27_the_network_is_off(w):
    status, answer, _ = w.shell(w.worker(BOTH + ANY), "python3", "-c", CONNECT.replace("; ", "\n"))
    check(status == 1 and "Network is unreachable" in answer["stderr"], f"{answer}")
    check("Note: Network access is disabled for this worker." in answer["note"], f"{answer}")


@test
def F27_the_network_ends_at_names(w):
    file = w.worker(BOTH + "  network: {allow: [good.test]}\n" + ANY)
    ended = "import socket\nif not socket.create_connection(('198.51.100.1', 80), 60).recv(1):\n    exit(1)"     # or it is reset
    status, answer, said = w.shell(file, "python3", "-c", ended)
    check(status == 1 and "Denied by the sandbox: connect 198.51.100.1:80 (allow-net)" in (answer["note"] or ""), f"{said}")


@test
def F28_no_note_for_a_command_that_succeeded(w):
    text = "import sys\nsys.stderr.write('Permission denied Network is unreachable')"
    status, answer, _ = w.shell(w.worker(BOTH + ANY), "python3", "-c", text)
    check(status == 0 and answer["note"] is None and "Note:" not in answer["stderr"], f"{answer}")
    status, answer, _ = w.shell(w.worker(BOTH + ANY), "python3", "-c", text + "\nsys.exit(1)")
    check("Note:" in answer["stderr"], f"the twin: {answer}")


def without_namespaces(uid, before=()):
    """In a user namespace that allows no more of them px is an ordinary caller on such a host; uid 0 is the root of a container."""
    closed = (*before, "unshare", "--user", f"--map-user={uid}", f"--map-group={uid}", "--keep-caps", "bash", "-c",
              "echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all \"$@\"", "sh")
    if subprocess.run([*closed, "true"], capture_output=True, check=False).returncode:
        raise Skip("user namespaces cannot be closed here")
    return closed


@test
def F29_a_host_without_an_os_sandbox(w):
    fall_back(w, without_namespaces(1300))


@test
def F29_the_root_of_a_container_without_an_os_sandbox(w):
    """Not the host's own root: Landlock does not hold that one."""
    drop = ()
    if os.geteuid() == 0:
        (w.top / "tmp").mkdir()
        drop = ("env", f"HOME={w.top}", f"TMPDIR={w.top}/tmp", "setpriv", "--reuid=1300", "--regid=1300", "--clear-groups")
        subprocess.run(["chown", "-R", "1300:1300", w.top], check=True)
    fall_back(w, without_namespaces(0, drop))


@test
def F29_the_hosts_root_that_may_not_mount(w):
    """As in a container that takes what mounting needs: the box is whole, and finds its own way to roots that others can reach."""
    if os.geteuid():
        raise Skip("only for root")
    bare = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all")
    w.top.chmod(0o700)
    for more in ("", "  require_os_sandbox: true\n"):
        status, _, said = w.shell(w.worker(BOTH + more + ANY), "touch", "portfolio/ran", before=bare)
        check(status == 125 and "PX033" in said and "CAP_SYS_ADMIN" in said, f"{status} {said}")
        check(not (w.portfolio / "ran").exists(), "it ran")
    for path in (w.top, w.portfolio, w.pipeline):
        path.chmod(0o755)
    status, answer, said = w.shell(w.worker(BOTH + "  require_os_sandbox: true\n" + ANY), "touch", "portfolio/ran", before=bare)
    check(status == 0 and answer["result"]["isolation"]["tier"] == "full" and (w.portfolio / "ran").exists(), f"the twin: {status} {said}")


@test
def F29_network_off_without_an_os_sandbox(w):
    """No socket of IPv4 or IPv6 can be made, so that the host's services cannot be reached."""
    closed = without_namespaces(1300)
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    reach = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 60)\nprint('reached')"
    send = f"import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))\nprint('reached')"
    with server:
        status, answer, said = w.shell(w.worker(BOTH + "  network: true\n" + ANY), "python3", "-c", reach, before=closed)
        check(status == 0 and answer["stdout"] == "reached\n" and "the host's network" in said, f"the twin: {status} {said}")
        for program in (reach, send, reach.replace("127.0.0.1", "::1")):
            status, answer, said = w.shell(w.worker(BOTH + ANY), "python3", "-c", program, before=closed)
            check(status == 1 and "reached" not in answer["stdout"] and "Network access is disabled" in answer["note"], f"{status} {said}")
            check("no network" in said and not any(word.startswith("net") for word in answer["result"]["isolation"]["missing"]), f"{said}")
        local = "import socket\na, b = socket.socketpair()\nsocket.socket(socket.AF_UNIX)\nprint('local')"
        status, answer, said = w.shell(w.worker(BOTH + ANY), "python3", "-c", local, before=closed)
        check(status == 0 and answer["stdout"] == "local\n", f"the twin: {status} {said}")
        status, answer, said = w.shell(w.worker(BOTH + "  network: {allow: [good.test]}\n" + ANY), "true", before=closed)
        check(status == 125 and "PX018" in said, f"names without a network of its own: {status} {said}")


def fall_back(w, closed):
    for path in (w.portfolio, w.pipeline):
        path.chmod(0o755)
    text = BOTH.replace("./p1", "./portfolio").replace("./p2", "./pipeline")
    w.portfolio.rename(w.top / "portfolio")
    w.pipeline.rename(w.top / "pipeline")
    status, answer, said = w.shell(w.worker(text + "  require_os_sandbox: true\n" + ANY), "touch", "portfolio/ran", before=closed)
    check(status == 125 and "OS sandbox required but unavailable" in said and "PX323" in said, f"{status} {said}")
    check(not (w.top / "portfolio" / "ran").exists(), "it ran")
    weaker = w.worker(text + ANY)
    status, answer, said = w.shell(weaker, "cat", "portfolio/a.md", before=closed)
    check(status == 0 and answer["stdout"] == "hello" and said.count("px: warning: ") == 1, f"{status} {said}")
    status, answer, said = w.shell(weaker, "cat portfolio/a.md | cat > portfolio/copy && cat portfolio/copy; cat < pipeline/b.txt", before=closed)
    check(status == 0 and answer["stdout"] == "hellob", f"a line: {status} {said}")
    status, answer, said = w.shell(weaker, "echo a > pipeline/x", before=closed)
    check(status != 0 and "writable paths are: portfolio" in answer["note"], f"{status} {said}")
    status, answer, said = w.shell(weaker, "touch", "pipeline/x", before=closed)
    check(status == 1 and "writable paths are: portfolio" in answer["note"], f"{status} {said}")
    (w.top / "portfolio" / ".git").mkdir()
    missing = [w.shell(w.worker(text + more + ANY), "true", before=closed)[1]["result"]["isolation"]["missing"]
               for more in ("", "  git_writable: true\n")]
    check([any(word.startswith("git: ") for word in words) for words in missing] == [True, False], f"{missing}")
    weaker = w.worker(text + ANY)
    status, answer, said = w.shell(weaker, "cat", str(w.top / "secret.md"), before=closed)
    check(status == 1 and SECRET not in said, f"{status} {said}")


@test
def F29_a_mapped_root_without_an_os_sandbox(w):
    """The same where the caller's id is 0 and yet not the host's: what a container's root is."""
    become = ("setpriv", "--reuid=1300", "--regid=1300", "--clear-groups") if os.geteuid() == 0 else ()
    home = w.top / "state"
    home.mkdir(0o700)
    closed = (*become, "env", f"PX_HOME={home}", f"TMPDIR={home}", "unshare", "--user", "--map-root-user", "bash", "-c", "echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec \"$@\"", "sh")
    if subprocess.run([*closed, "true"], capture_output=True, check=False).returncode:
        raise Skip("user namespaces cannot be closed here")
    w.top.chmod(0o755)
    for path in (w.portfolio, w.pipeline):
        path.chmod(0o755)
    for path in (w.portfolio, home):
        if become:
            os.chown(path, 1300, 1300)
    status, answer, said = w.shell(w.worker(BOTH + "  require_os_sandbox: true\n" + ANY), "touch", "portfolio/ran", before=closed)
    check(status == 125 and "OS sandbox required but unavailable" in said and "PX323" in said, f"{status} {said}")
    check(not (w.portfolio / "ran").exists(), "it ran")
    status, answer, said = w.shell(w.worker(BOTH + ANY), "cat", str(w.portfolio / "a.md"), before=closed)
    check(status == 0 and answer["stdout"] == "hello" and said.count("px: warning: ") == 1, f"{status} {said}")
    status, answer, said = w.shell(w.worker(BOTH + ANY), "touch", str(w.portfolio / "ran"), before=closed)
    check(status == 0 and (w.portfolio / "ran").exists(), f"the twin: {status} {said}")


@test
def F30_rules_of_the_shell(w):
    rules = BOTH + "shell_rules:\n  - {pattern: echo no}\n  - {pattern: echo, approval_required: false}\n  - {pattern: echo yes}\n"
    file = w.worker(rules)
    check(w.shell(file, "echo", "yes")[0] == 0, "the first rule that fits")
    status, _, said = w.shell(file, "echo", "no")
    check(status == 125 and "PX322" in said, f"approval: {said}")
    check(w.shell(file, "echo", "no", options=("--approve-all",))[0] == 0, "--approve-all")
    check("PX322" in w.shell(file, "echo", "no", options=("--approve-all", "--strict"))[2], "--strict")
    check("PX321" in w.shell(file, "ls", options=("--approve-all",))[2], "no rule and no default")


@test
def F31_more_than_a_plain_command(w):
    """Lines whose commands are allowed run; what no rule can judge is blocked, unless every command may run."""
    rules = w.worker(BOTH + "shell_rules: [{pattern: echo, approval_required: false}, {pattern: cat, approval_required: false}]\n", "rules.yaml")
    for text in ("echo a; id", "echo a & id", "echo a | id", "echo a && id", "echo a\nid", "echo `id`", "echo $(id)", "echo ${HOME}", "echo \"$HOME\"",
                 "X=1 echo a", "echo a > /etc/x", "(echo a)", "cat << E\nx\nE", "sh -c id", "echo 'a", "echo \"a", "", "   ", "echo |", "| echo"):
        status, _, said = w.shell(rules, text)
        check(status == 125 and "PX321" in said, f"{text!r}: {said}")
    for text, out in (("echo 'a  b' \"c\" d\\ e", "a  b c d e\n"), ("echo 'a | b; c > d' $ | cat -", "a | b; c > d $\n"),
                      ("echo one > portfolio/x && cat < portfolio/x || echo never; cat portfolio/none 2> /dev/null || echo none", "one\nnone\n"),
                      ("cd portfolio && echo *.m? 'x*'", "a.md x*\n"), ("bash -lc 'echo a | cat'", "a\n"), ("cat portfolio/none 2>&1 | cat > /dev/null", ""),
                      ("echo a # b\n", "a\n"), ("echo a; exit 3", "a\n"), ("false", "")):
        status, answer, said = w.shell(rules, text)
        check(answer.get("stdout") == out and status == (3 if "exit" in text else int(text == "false")), f"{text!r}: {status} {said}")
    status, answer, said = w.shell(rules, "echo", "a | b", "$HOME", "c; d", "it's")
    check(answer.get("stdout") == "a | b $HOME c; d it's\n", f"words: {said}")
    status, answer, said = w.shell(w.worker(BOTH + ANY), "for x in 1 2; do echo $x; done; echo $(( 1 + 2 ))")
    check(answer.get("stdout") == "1\n2\n3\n", f"the twin: {said}")


@test
def F32_attachments_are_checked_before_the_child_starts(w):
    caller = w.worker(BOTH + "workers: [child]\n" + ANY)
    w.worker("sandbox: {paths: {own: {root: ./own, mode: rw}}}\n" + ANY, "child.yaml")
    (w.portfolio / "out.md").symlink_to("../secret.md")
    for path in ("/etc/passwd", "~/x", "nope/a.md", "portfolio", "portfolio/../secret.md", "portfolio/out.md", "portfolio/none.md", str(w.top / "secret.md")):
        status, _, said = call(w, caller, path)
        check(status == 125 and SECRET not in said and not (w.top / "own").exists(), f"{path}: {status} {said}")
    status, answer, said = call(w, caller, "portfolio/a.md")
    check(status == 0 and answer["stdout"] == "hello" and (w.top / "own").is_dir(), f"the twin: {said}")


def call(w, caller, attached):
    done = subprocess.run([w.px, "--json", "worker", "call", caller, "child", "--base", str(w.top), "--attach", attached, "--", "cat", "/attachments/a.md"],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stdout + done.stderr


# ---- running ----


if __name__ == "__main__":
    sys.exit(drive("files/rows.py", World, ("px", "px-main", "px-net")))
