#!/usr/bin/python3
"""task/run.py [--as UID] [--only NAME...] PX - tasks from outside: the rows R1 to R24 of their specification, what hostile workspaces try,
diffs against `patch`, branches, journals from many processes, and runners that are killed.

PX and px-main beside it are copied to where any user can reach them. Every case runs twice where it matters: on an overlay and, with
`overlay: never`, on a copy. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import base64
import html.parser
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
from cases import Problem, Skip, check, drive, test  # noqa: E402
from race import Race, outside_of, words_of  # noqa: E402

try:
    import pygit2                       # where it is installed
    for level in (pygit2.GIT_CONFIG_LEVEL_GLOBAL, pygit2.GIT_CONFIG_LEVEL_XDG, pygit2.GIT_CONFIG_LEVEL_SYSTEM):
        pygit2.settings.search_path[level] = ""
except ImportError:
    pygit2 = None

LIMIT_S = 300
CONFIG = "allowed_binaries: [python3, sh, cat, pytest]\n"
WAYS = ("auto", "never")                # on an overlay, on a copy


class World:
    """A directory that px task is called in."""

    def __init__(self, px, top):
        self.px, self.top = px, Path(top)
        os.environ["PX_HOME"] = str(self.top.parent / "px-home")
        self.configure()

    def configure(self, text=CONFIG):
        (self.top / "configs").mkdir(exist_ok=True)
        (self.top / "configs" / "sandbox.yaml").write_text(text)

    def way(self, overlay):
        self.configure(CONFIG + f"overlay: {overlay}\n")

    def command(self, *words, cwd=None):
        """With the configuration of that directory, if it has one, named: one that px finds itself may only restrict."""
        file, at = Path(cwd or self.top) / "configs" / "sandbox.yaml", words.index("task") + 2 if "task" in words else 0
        named = ["--config", str(file)] if at and file.exists() and "--config" not in words else []
        return [self.px, *words[:at], *named, *words[at:]]

    def raw(self, *words, data=None, env=None, cwd=None):
        return subprocess.run(self.command(*words, cwd=cwd), capture_output=True, check=False, cwd=cwd or self.top, timeout=LIMIT_S,
                              env={**os.environ, **(env or {})},
                              **({"input": data} if data is not None else {"stdin": subprocess.DEVNULL}))

    def ask(self, *words, **more):
        done = self.raw("--json", "task", *words, **more)
        try:
            return done.returncode, json.loads(done.stdout or done.stderr)
        except ValueError:
            raise Problem(f"px task {words}: no JSON: {done.stdout[-200:]!r} {done.stderr[-300:]!r}") from None

    def good(self, *words, **more):
        status, answer = self.ask(*words, **more)
        check(status == 0, f"px task {words}: {status} {str(answer)[:400]}")
        return answer

    def refused(self, code, *words, **more):
        status, answer = self.ask(*words, **more)
        check(status != 0 and answer.get("details", {}).get("code") == code, f"px task {words}: {status} {str(answer)[:300]}")
        return answer

    def prepare(self, task, files):
        return self.good("prepare", task, "--files", "-", data=json.dumps(files).encode())

    def act(self, task, *command, options=(), verb="apply", **more):
        return self.ask(verb, task, *options, "--", *command, **more)[1]

    def python(self, task, text, *words, options=(), verb="apply", **more):
        return self.act(task, "python3", "-c", text, *words, options=options, verb=verb, **more)

    def space(self, task):
        return self.top / ".sandbox" / task

    def log(self, task):
        text = (self.top / "logs" / "sandbox" / f"{task}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def inside(self, task, script="cat"):
        """What a box sees of a workspace: a sorted list of (path, kind, mode, content)."""
        answer = self.python(task, LOOK, options=("--discard",))
        check(answer["exit_code"] == 0, str(answer)[:300])
        return json.loads(answer["stdout"])


LOOK = r"""
import os, json, stat, base64
out = []
for top, dirs, files in os.walk("."):
    for name in sorted(dirs + files):
        path = os.path.join(top, name)
        st = os.lstat(path)
        if stat.S_ISLNK(st.st_mode):
            what = os.readlink(path)
        elif stat.S_ISREG(st.st_mode):
            what = base64.b64encode(open(path, "rb").read()).decode()
        else:
            what = ""
        mode = 0 if stat.S_ISLNK(st.st_mode) else stat.S_IMODE(st.st_mode)
        out.append([os.fsencode(path).hex(), stat.S_IFMT(st.st_mode), mode, what])
print(json.dumps(sorted(out)))
"""


def look(top):
    """The same as World.inside from outside."""
    done = subprocess.run(["/usr/bin/python3", "-c", LOOK], cwd=top, capture_output=True, check=True)
    return json.loads(done.stdout)


# ---- the rows -------------------------------------------------------------------------------------------------------


@test
def r01_prepare_writes_files(world):
    answer = world.prepare("task1", {"a/b.txt": "hello\n", "main.py": "print(1)\n"})
    check(answer["workspace"] == ".sandbox/task1", str(answer))
    check((world.space("task1") / "a" / "b.txt").read_text() == "hello\n", "a/b.txt")
    check((world.space("task1") / "main.py").read_text() == "print(1)\n", "main.py")
    world.prepare("task1", {"main.py": "print(2)\n"})
    check((world.space("task1") / "a" / "b.txt").exists(), "an old file is gone")
    check((world.space("task1") / "main.py").read_text() == "print(2)\n", "a file was not replaced")


@test
def r02_paths_stay_inside(world):
    for path in ("/abs", "../x", "a/../b", "", "a/", ".", "..", "a/."):
        answer = world.refused("PX402", "prepare", "t", "--files", "-", data=json.dumps({"good": "1", path: "2"}).encode())
        check(not path.strip(".") or path in answer["message"], f"{path}: {answer['message']}")
        check(not world.space("t").exists(), f"{path}: the files before it were written")
    check(not (world.top / ".sandbox" / "x").exists(), "written outside")
    world.prepare("t", {"ok/./f": "1", "two//g": "2"})
    check((world.space("t") / "ok" / "f").exists() and (world.space("t") / "two" / "g").exists(), "ok/./f")
    world.refused("PX402", "prepare", "u", "--files", "-", data=json.dumps({"a": "1", "a/b": "2"}).encode())
    check(not world.space("u").exists(), "half of it was written")


@test
def r03_names_of_tasks(world):
    for name in ("", ".", "..", "../esc", "a/b", ".px", "x" * 129, "a b", "ä", "a\n"):
        world.refused("PX401", "prepare", name, "--text", "a=b")
        world.refused("PX401", "cleanup", name)
    check(not (world.top / "esc").exists(), "written outside")
    world.good("prepare", "x" * 128, "--text", "a=b")
    world.good("prepare", ".hidden-1_A", "--text", "a=b")


@test
def r04_bytes_are_kept(world):
    data = bytes(range(256)) * 3
    (world.top / "bytes").write_bytes(data)
    world.good("prepare", "t", "--file", f"b={world.top / 'bytes'}", "--text", "c=d=e")
    check((world.space("t") / "b").read_bytes() == data, "bytes were changed")
    check((world.space("t") / "c").read_text() == "d=e", "a text with =")
    world.prepare("t", {"n": "a\0b"})
    check((world.space("t") / "n").read_bytes() == b"a\0b", "a NUL")


@test
def r05_only_what_is_listed(world):
    world.prepare("t", {"a": "1"})
    answer = world.act("t", "rm", "a")
    check(answer["exit_code"] == 126 and answer["error"] == "not_allowed" and "not allowed" in answer["stderr"], str(answer))
    check(answer["cmd"] == ["rm", "a"] and (world.space("t") / "a").exists(), "it ran")
    world.configure("allowed_binaries: [no-such-program]\n")
    answer = world.act("t", "no-such-program")
    check(answer["exit_code"] == 126 and answer["error"] == "not_allowed" and "`path` and `binds`" in answer["stderr"], f"listed and not installed: {answer}")
    check([line["error"] for line in world.log("t") if line["event"] == "apply_action"] == ["not_allowed"] * 2, "not in the journal")
    (world.top / "configs" / "sandbox.yaml").unlink()
    answer = world.act("t", "python", "-c", "print(1)")
    check(answer["exit_code"] == 0 and answer["stdout"] == "1\n", f"the usual list: {answer}")


@test
def r05_names_that_mean_another_program(world):
    """Python has two names. `sg` is ast-grep's: login has a program of that name that runs any line in a shell."""
    world.prepare("t", {"a": "1"})
    world.configure("allowed_binaries: [python3]\n")
    answer = world.act("t", "python", "-c", "import sys; print(sys.version_info[0])")
    check(answer["exit_code"] == 0 and answer["stdout"] == "3\n", str(answer)[:300])
    check(world.act("t", "python2", "-c", "1")["error"] == "not_allowed", "python2")
    (world.top / "configs" / "sandbox.yaml").unlink()
    answer = world.act("t", "python3", "-c", "print(1)")
    check(answer["exit_code"] == 0 and answer["stdout"] == "1\n", str(answer)[:300])
    answer = world.act("t", "sg", "root", "-c", "touch ran")
    check(answer["exit_code"] != 0 and not (world.space("t") / "ran").exists(), str(answer)[:300])
    check(shutil.which("ast-grep") or answer["error"] == "not_allowed", str(answer)[:300])


@test
def tools_of_ones_own(world):
    """path, binds and env: a tool that lies in a directory of the caller's, what it reads, and what it is told."""
    tools, words = world.top / "tools" / "bin", world.top / "words"
    tools.mkdir(parents=True)
    words.mkdir()
    for place in (world.top / "tools", tools, words):
        place.chmod(0o755)
    (words / "w").write_text("from a bind")
    (words / "w").chmod(0o644)
    script = f"#!/bin/sh\necho \"$(cat {words}/w), $GREETING, $1\"; other; touch {tools}/new {words}/new\n"
    for name, text in (("ast-grep", script), ("other", "#!/bin/sh\necho from PATH\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    own = "path: [tools/bin]\nbinds: [words]\nenv: [GREETING=hello]\n"
    for way in WAYS:
        world.configure(f"overlay: {way}\nallowed_binaries: [sg, ast-grep]\n{own}")
        world.prepare(way, {"a": "1"})
        for name in ("ast-grep", "sg"):
            answer = world.act(way, name, "scan")
            check(answer["stdout"] == "from a bind, hello, scan\nfrom PATH\n" and answer["cmd"][0] == f"{tools}/ast-grep", str(answer)[:500])
        check(world.act(way, "other")["error"] == "not_allowed", "what is in path must be listed as well")
    check(sorted(os.listdir(tools)) == ["ast-grep", "other"] and os.listdir(words) == ["w"], "written outside")
    world.configure("path: [no-such-directory]\n")
    world.refused("PX400", "apply", "auto", "--", "ast-grep")
    world.configure("env: [NAME]\n")
    world.refused("PX400", "apply", "auto", "--", "ast-grep")
    found = world.top / "found" / "configs"
    found.mkdir(parents=True)
    (found / "sandbox.yaml").write_text("env: [A=1]\n")
    done = subprocess.run([world.px, "--json", "task", "prepare", "t"], cwd=found.parent, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL)
    check(b"PX050" in done.stdout + done.stderr and done.returncode != 0, str(done)[:500])


@test
def r06_commands_that_are_none(world):
    world.prepare("t", {"a": "1"})
    for command in ([], "python3 -c pass", ["python3", 1], None, ["a\0b"], {"a": 1}):
        status, answer = world.ask("apply", "t", "--action", "-", data=json.dumps({"command": command, "why": "x"}).encode())
        check(status == 127 and answer["exit_code"] == 127 and answer["error"] == "invalid_command", f"{command}: {answer}")
        check(answer["stderr"] == "invalid command" and answer["cmd"] == [], str(answer))
    status, answer = world.ask("apply", "t", "--action", "-", data=b"{}")
    check(answer["exit_code"] == 127, str(answer))


@test
def r07_timeout_ends_the_tree(world):
    world.prepare("t", {"a": "1"})
    mark = f"9{os.getpid()}{random.randrange(10 ** 6)}"
    answer = world.act("t", "sh", "-c", f"(setsid sleep {mark} &) ; (trap '' TERM; sleep {mark} & wait) & sleep {mark}",
                       options=("--timeout", "1s"))
    check(answer["exit_code"] == 124 and answer["error"] == "timeout" and answer["stderr"] == "timeout", str(answer))
    alive = subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False)
    check(alive.returncode == 1, "something lives on")
    check("timeout" in world.log("t")[-1]["limits_hit"], str(world.log("t")[-1]))


@test
def r08_diff_of_a_rewritten_file(world):
    for way in WAYS:
        world.way(way)
        world.prepare(way, {"file.txt": "line1\n", "other": "x"})
        answer = world.python(way, "open('file.txt', 'a').write('line2\\n')")
        check(answer["exit_code"] == 0 and answer["changed_files"] == ["file.txt"] and answer["applied"], str(answer))
        check("--- a/file.txt" in answer["diff"] and "+++ b/file.txt" in answer["diff"] and "+line2" in answer["diff"], answer["diff"])
        check((world.space(way) / "file.txt").read_text() == "line1\nline2\n", "not merged")


VECTORS = [
    ("line1\n", "line1\nline2\n", "@@ -1 +1,2 @@\n line1\n+line2\n"),
    (None, "x\n", "@@ -0,0 +1 @@\n+x\n"),
    ("x\n", None, "@@ -1 +0,0 @@\n-x\n"),
    ("a", "b", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"),
    ("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"),
    (None, "", None),
    ("a\fb\n", "a\fc\n", "@@ -1 +1 @@\n-a\fb\n+a\fc\n"),
    ("".join(f"{i}\n" for i in range(1, 21)), "".join(f"{'x' if i in (3, 18) else i}\n" for i in range(1, 21)),
     "@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n@@ -15,6 +15,6 @@\n 15\n 16\n 17\n-18\n+x\n 19\n 20\n"),
]


@test
def r09_diff_vectors(world):
    script = "import sys, os\nif len(sys.argv) > 1: open('file.txt', 'w', newline='').write(sys.argv[1])\nelse: os.remove('file.txt')"
    for way in WAYS:
        world.way(way)
        for i, (before, after, hunks) in enumerate(VECTORS):
            task = f"{way}{i}"
            world.prepare(task, {"keep": "k"} if before is None else {"keep": "k", "file.txt": before})
            answer = world.python(task, script, *([] if after is None else [after]))
            wanted = "" if hunks is None else f"--- a/file.txt\n+++ b/file.txt\n{hunks}"
            check(answer["diff"] == wanted, f"{way} {i}: {answer['diff']!r}, not {wanted!r}")
            check(answer["changed_files"] == ["file.txt"], str(answer["changed_files"]))


@test
def r10_binary_and_large_files_are_named(world):
    for way in WAYS:
        world.way(way)
        world.prepare(way, {"a": "1\n"})
        answer = world.python(way, "open('bin', 'wb').write(b'a\\0b'); open('big', 'w').write('x\\n' * 2000000); open('a', 'w').write('2\\n')")
        check(answer["changed_files"] == ["a", "big", "bin"], str(answer["changed_files"]))
        notes = [line for line in answer["diff"].splitlines() if "big" in line or "bin" in line]
        check(len(notes) == 2 and "Binary files" in notes[1] and "too large" in notes[0], str(notes))
        check((world.space(way) / "bin").read_bytes() == b"a\0b" and (world.space(way) / "big").stat().st_size == 4000000, "not merged")


@test
def r11_no_change(world):
    for way in WAYS:
        world.way(way)
        world.prepare(way, {"a": "1\n"})
        answer = world.python(way, "open('a', 'w').write('1\\n'); print('done')")
        check(answer["diff"] is None and answer["changed_files"] is None and answer["exit_code"] == 0, str(answer))
        last = world.log(way)[-1]
        check(last["changed_files"] == [] and last["diff_len"] == 0, str(last))


@test
def r12_cpu_time(world):
    world.configure(CONFIG + "cpu_time_sec: 1\n")
    world.prepare("t", {"a": "1"})
    answer = world.python("t", "while True: pass")
    check(answer["exit_code"] == -9 and answer["error"] is None, str(answer)[:300])
    check("cpu-time" in world.log("t")[-1]["limits_hit"], str(world.log("t")[-1]))
    said = world.raw("task", "apply", "t", "--", "python3", "-c", "while True: pass")
    check(b"px: limit reached: cpu-time\n" in said.stderr, str(said.stderr))
    check(world.python("t", "pass")["exit_code"] == 0 and "limits_hit" not in world.log("t")[-1], "there was none")


@test
def r13_memory(world):
    world.configure(CONFIG + "mem_limit_mb: 64\n")
    world.prepare("t", {"a": "1"})
    answer = world.python("t", "x = bytearray(512 << 20); print(len(x))")
    check(answer["exit_code"] != 0 and not answer["stdout"], str(answer)[:300])


@test
def r14_no_core_file(world):
    world.prepare("t", {"a": "1"})
    answer = world.python("t", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    check(answer["exit_code"] == -11 and answer["changed_files"] is None, str(answer)[:300])
    check(os.listdir(world.space("t")) == ["a"], "there is a core file")


@test
def r15_no_proxies(world):
    world.prepare("t", {"a": "1"})
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy", "ftp_proxy", "SECRET")
    answer = world.python("t", "import os, json; print(json.dumps(dict(os.environ)))", env={name: "leak" for name in names})
    seen = json.loads(answer["stdout"])
    check(not set(names) & set(seen) and seen["NO_PROXY"] == "*", str(seen))


@test
def r16_the_workspace_is_the_working_directory(world):
    world.prepare("t", {"d/a": "1"})
    answer = world.python("t", "import os; print(sorted(os.listdir('.')), os.access('/usr', os.W_OK)); open('/workspace/new', 'w')")
    check(answer["stdout"] == "['d'] False\n" and answer["changed_files"] == ["new"], str(answer)[:300])


@test
def r17_a_path_is_no_way_around(world):
    evil = world.top / "evil"
    evil.mkdir()
    (evil / "python3").write_text("#!/bin/sh\necho evil\n")
    (evil / "python3").chmod(0o755)
    world.prepare("t", {"python3": "#!/bin/sh\necho evil\n"})
    (world.space("t") / "python3").chmod(0o755)
    for path in (str(evil / "python3"), "./python3", "/usr/bin/python3", "/no/python3", "../python3"):
        answer = world.act("t", path, "-c", "print(1)", env={"PATH": f"{evil}:{os.environ['PATH']}"})
        check(answer["exit_code"] == 126 and answer["error"] == "not_allowed", f"{path}: {answer}")
    answer = world.act("t", "python3", "-c", "print(1)", env={"PATH": f"{evil}:{os.environ['PATH']}"})
    check(answer["stdout"] == "1\n", f"not the box's own: {answer}")


@test
def r18_tests(world):
    world.prepare("t", {"test_a.py": "import unittest\nclass T(unittest.TestCase):\n    def test_no(self): self.assertEqual(1, 2)\n"})
    answer = world.act("t", "python3", "-m", "unittest", "test_a", verb="test")
    check(answer["exit_code"] == 1 and "FAILED" in answer["stderr"] and "diff" not in answer, str(answer)[:300])
    check(world.log("t")[-1]["event"] == "apply_action", "not in the journal")
    if not any(Path(folder, "pytest").exists() for folder in ("/usr/bin", "/usr/local/bin")):
        return
    answer = world.act("t", "pytest", "-q", verb="test")
    check(answer["exit_code"] == 1 and "failed" in answer["stdout"] and "diff" not in answer, str(answer)[:300])


@test
def r19_cleanup(world):
    world.prepare("t", {"a": "1"})
    world.good("cleanup", "t")
    check(not world.space("t").exists(), "it is still there")
    world.good("cleanup", "t")
    check([line["event"] for line in world.log("t")] == ["prepare_workspace", "cleanup", "cleanup"], "the journal")
    check(all(line["workspace"] == ".sandbox/t" for line in world.log("t")), "the journal")
    world.refused("PX403", "apply", "t", "--", "python3", "-c", "pass")


@test
def r20_lines_of_the_journal(world):
    world.prepare("t", {"ü.txt": "1"})
    before = time.time()
    world.python("t", "print('SECRET-OUT'); open('ü.txt', 'w').write('äöü\\n'); open('\"q\"\\n', 'w')")
    text = (world.top / "logs" / "sandbox" / "t.jsonl").read_text()
    check("SECRET-OUT" not in text.replace("print('SECRET-OUT')", "") and "ü.txt" in text, text)
    line = world.log("t")[-1]
    keys = ["event", "cmd", "exit_code", "duration_sec", "error", "changed_files", "diff_len", "timestamp", "task_id"]
    check(list(line)[:9] == keys, str(list(line)))
    check(line["task_id"] == "t" and abs(line["timestamp"] - before) < 600 and isinstance(line["timestamp"], float), str(line))
    check(line["changed_files"] == ['"q"\n', "ü.txt"] and line["diff_len"] > 0, str(line))
    check(world.raw("task", "log", "t").stdout.decode() == text, "px task log")


@test
def r21_configuration(world):
    shutil.rmtree(world.top / "configs")
    world.good("prepare", "t", "--text", "a=1")
    check(world.act("t", "sh", "-c", "true")["exit_code"] == 126, "sh is in the default list")
    for text, line in (("work_root: [1]\n", 1), ("\ndefault_timeout_sec: soon\n", 2), ("a: b\n", 1), ("x: [\n", 2),
                       ("work_root: a\nwork_root: b\n", 2), ("mem_limit_mb: 0\n", 1), ("allowed_binaries: [a/b]\n", 1), ("- a\n", 1)):
        world.configure(text)
        answer = world.refused("PX400", "prepare", "u", "--text", "a=1")
        check(f"line {line}" in answer["message"], f"{text!r}: {answer['message']}")
        check(not (world.top / ".sandbox" / "u").exists(), "it was made all the same")
    for text in ("# nothing\n# yet\n", "jailer: null\n"):
        world.configure(text)
        world.good("prepare", "t", "--text", "a=1")
    world.configure("work_root: w/r\nlogs_dir: l/o\ndefault_timeout_sec: 1.5\nallowed_binaries: [sh]\nlog_max_mb: 1\n")
    world.good("prepare", "v", "--text", "a=1")
    check((world.top / "w" / "r" / "v" / "a").exists() and (world.top / "l" / "o" / "v.jsonl").exists(), "work_root, logs_dir")
    check(world.act("v", "sh", "-c", "sleep 60")["exit_code"] == 124, "default_timeout_sec")
    (world.top / "elsewhere.yaml").write_text("allowed_binaries: []\nwork_root: w/r\n")
    check(world.act("v", "sh", "-c", "true", options=("--config", "elsewhere.yaml"))["exit_code"] == 126, "--config")
    world.refused("PX400", "prepare", "t", "--config", "no-such-file")


@test
def a_configuration_that_is_found_only_restricts(world):
    """configs/sandbox.yaml of a repository: what would weaken the defaults is refused; the same file is taken when it is named."""
    file = world.top / "configs" / "sandbox.yaml"
    (world.top / "out").symlink_to("/tmp")

    def found(*words):
        return subprocess.run([world.px, "--json", "task", *words], cwd=world.top, capture_output=True, check=False, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL)
    for text in ("enable_jail: false", "allowed_binaries: [python, sh]", "work_root: /tmp/px-elsewhere", "work_root: ../elsewhere",
                 "work_root: a/../../b", "work_root: out/w", "logs_dir: out", "logs_dir: /tmp/px-logs", "logs_dir: .git/hooks",
                 "default_timeout_sec: 31", "cpu_time_sec: 21", "mem_limit_mb: 4097", "log_max_mb: 65"):
        world.configure("jailer: none\n" + text + "\n")
        done = found("prepare", "t", "--text", "a=1")
        answer = json.loads(done.stdout or done.stderr)
        field = text.partition(":")[0]
        check(done.returncode != 0 and answer["details"]["code"] == "PX050" and answer["details"]["field"] == field, f"{text}: {answer}")
        check(f"line 2: '{field}" in answer["message"] and answer["details"]["file"] == "configs/sandbox.yaml", str(answer))
        check("--config" in answer["details"]["fix"][0], str(answer))
        check(not (world.top / ".sandbox").exists(), f"{text}: something was made")
    world.configure("enable_jail: false\n")
    check(b"PX050" in found("apply", "t", "--", "python", "-c", "pass").stdout, "an action")
    check(found("prepare", "t", "--text", "a=1", "--config", str(file)).returncode == 0, "a file that is named")
    world.configure("enable_jail: true\nallowed_binaries: [python]\nmem_limit_mb: 512\nwork_root: w\nlogs_dir: w/logs\noverlay: never\n")
    check(found("prepare", "t", "--text", "a=1").returncode == 0 and (world.top / "w" / "t" / "a").exists(), "a file that restricts")
    answer = json.loads(found("apply", "t", "--", "pytest").stdout)
    check(answer["error"] == "not_allowed", str(answer))


@test
def r22_the_jail(world):
    world.configure(CONFIG + "enable_jail: true\njailer: none\n")
    world.prepare("t", {"a": "1"})
    answer = world.python("t", "import socket; s = socket.socket(); s.settimeout(2); s.connect(('192.0.2.1', 80))")
    check(answer["exit_code"] == 1 and answer["tier"] == "full", str(answer)[:300])
    for jail in ("true", "false"):
        world.configure(CONFIG + f"enable_jail: {jail}\njailer: nsjail\n")
        world.refused("PX003", "apply", "t", "--", "python3", "-c", "pass")


@test
def r22_without_a_jail(world):
    """enable_jail: false is no box, and says so: limits, the end of all processes, the diff and the merge stay as they are."""
    world.configure(CONFIG + "enable_jail: false\ncpu_time_sec: 1\nmem_limit_mb: 256\n")
    world.prepare("t", {"a": "1\n", "d/b": "2\n"})
    answer = world.python("t", "import os; open('a', 'a').write('2\\n'); os.remove('d/b'); os.rmdir('d'); print(os.getuid(), os.readlink('/proc/self/ns/net'))",
                          env={"HTTP_PROXY": "leak", "SECRET": "leak"})
    check(answer["exit_code"] == 0 and answer["stdout"] == f"{os.getuid()} {os.readlink('/proc/self/ns/net')}\n" and answer["applied"], str(answer)[:400])
    check(answer["tier"] == "rlimits", str(answer["tier"]))
    named = {text.partition(":")[0] for text in answer["missing"]}
    check(named >= {"namespaces", "root", "net", "landlock", "seccomp", "ids", "pids"}, f"not named as missing: {answer['missing']}")
    check(answer["changed_files"] == ["a", "d/b"] and "+2" in answer["diff"], str(answer)[:400])
    check((world.space("t") / "a").read_text() == "1\n2\n" and not (world.space("t") / "d").exists(), "not merged")
    seen = json.loads(world.python("t", "import os, json; print(json.dumps(dict(os.environ)))", env={"HTTP_PROXY": "x", "SECRET": "x"})["stdout"])
    check(not {"HTTP_PROXY", "SECRET", "PX_SANDBOX", "container"} & set(seen) and seen["NO_PROXY"] == "*", str(seen))
    check("/px-homes-" in seen["HOME"] and not Path(seen["HOME"]).parent.exists(), f"its home is left: {seen['HOME']}")
    answer = world.python("t", "open('a', 'w').write('gone\\n')", options=("--discard",))
    check(not answer["applied"] and (world.space("t") / "a").read_text() == "1\n2\n", "merged all the same")
    check(world.python("t", "while True: pass")["exit_code"] == -9, "CPU time")
    answer = world.python("t", "x = bytearray(1 << 30); print(len(x))")
    check(answer["exit_code"] != 0 and not answer["stdout"], f"memory: {str(answer)[:300]}")
    answer = world.python("t", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    check(answer["exit_code"] == -11 and answer["changed_files"] is None, "a core file")
    mark = f"8{os.getpid()}{random.randrange(10 ** 6)}"
    answer = world.act("t", "sh", "-c", f"(setsid sleep {mark} &) ; (trap '' TERM; sleep {mark} & wait) & sleep {mark}", options=("--timeout", "1s"))
    check(answer["exit_code"] == 124 and answer["error"] == "timeout", str(answer)[:300])
    check(subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False).returncode == 1, "something lives on")
    world.good("fork", "t", "u")
    check(world.python("u", "open('a', 'a').write('3\\n')")["applied"] and len(world.inside("u")) == 1, "a branch")
    check(b"warning: enable_jail is false" in world.raw("task", "apply", "t", "--", "sh", "-c", "true").stderr, "no warning")
    world.configure(CONFIG + "enable_jail: maybe\n")
    world.refused("PX400", "apply", "t", "--", "sh", "-c", "true")


@test
def r23_output_before_a_timeout(world):
    world.prepare("t", {"a": "1"})
    answer = world.act("t", "sh", "-c", "echo so far; echo more > a; sleep 60", options=("--timeout", "1s"))
    check(answer["exit_code"] == 124 and answer["stdout"] == "so far\n" and answer["changed_files"] == ["a"], str(answer)[:300])
    check((world.space("t") / "a").read_text() == "more\n", "what it did was not merged")
    answer = world.act("t", "sh", "-c", "echo again > a; sleep 60", options=("--timeout", "1s", "--discard-on-timeout"))
    check(not answer["applied"] and (world.space("t") / "a").read_text() == "more\n", "it was merged")


@test
def r24_output_that_is_no_text(world):
    world.prepare("t", {"a": "1"})
    answer = world.python("t", "import sys; sys.stdout.buffer.write(b'a\\xff\\xfeb\\0c'); open('l', 'wb').write(b'\\xe4\\n')")
    check(answer["stdout"] == "a\ufffd\ufffdb\0c" and answer["exit_code"] == 0, repr(answer["stdout"]))
    check("\ufffd" in answer["diff"] and (world.space("t") / "l").read_bytes() == b"\xe4\n", str(answer)[:300])


# ---- diffs ----------------------------------------------------------------------------------------------------------


ENDS = ["", ".txt", " x", "-ä"]
STRANGE = ["", " ", "\t", '"', "'", "\n", "\\", "\udcff\udcfe", " b", "\r", "\x1b[1m", "\x7f", "ü", "$(x)", "{a => b}", ".txt\t2001-01-01"]


def random_name(chance, ends=ENDS):
    return "".join(chance.choice("abc") for _ in range(chance.randrange(1, 3))) + chance.choice(ends)


def random_text(chance, near=None):
    lines = [f"{chance.randrange(12)}\n" for _ in range(chance.randrange(30))] if near is None else near.splitlines(True)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(lines) + 1)
        lines[at:at + chance.randrange(3)] = [f"{chance.randrange(99)}\n" for _ in range(chance.randrange(3))]
    text = "".join(lines)
    return text[:-1] if chance.random() < 0.2 else text


def random_tree(chance, top, ends=ENDS):
    folders = [top]
    for _ in range(chance.randrange(3, 25)):
        folder = chance.choice(folders)
        path = folder / random_name(chance, ends)
        if path.exists() or path.is_symlink():
            continue
        if chance.random() < 0.3:
            path.mkdir()
            folders.append(path)
        elif chance.random() < 0.1:
            path.symlink_to(random_name(chance, ends))
        else:
            path.write_text(random_text(chance), newline="")
            path.chmod(chance.choice([0o644, 0o755]))


CHANGE = r"""
import os, random, shutil, sys
sys.path.insert(0, ".")
chance = random.Random(int(sys.argv[1]))
def paths():
    return sorted(os.path.join(top, name) for top, dirs, files in os.walk(".") for name in dirs + files)
def name():
    return "".join(chance.choice("abc") for _ in range(chance.randrange(1, 3))) + chance.choice(["", ".txt", " x", "-ä"])
def text():
    data = "".join(f"{chance.randrange(99)}\n" for _ in range(chance.randrange(8)))
    return data[:-1] if chance.random() < 0.2 else data
def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)
for _ in range(chance.randrange(1, 12)):
    have = paths()
    path = chance.choice(have) if have else "./" + name()
    what = chance.random()
    if what < 0.2 and os.path.lexists(path):
        remove(path)
    elif what < 0.4 and os.path.isfile(path) and not os.path.islink(path):
        lines = open(path, newline="").read().splitlines(True)
        at = chance.randrange(len(lines) + 1)
        lines[at:at + chance.randrange(3)] = [f"{chance.randrange(99)}\n" for _ in range(chance.randrange(3))]
        open(path, "w", newline="").write("".join(lines))
    elif what < 0.5 and os.path.isfile(path) and not os.path.islink(path):
        os.chmod(path, chance.choice([0o644, 0o755]))
    elif what < 0.6 and os.path.lexists(path):
        new = "./" + name()
        if not os.path.lexists(new) and not new.startswith(path):
            shutil.move(path, new)
    elif what < 0.7 and os.path.lexists(path):
        remove(path)
        os.mkdir(path)
        open(path + "/" + name(), "w", newline="").write(text())
    elif what < 0.8 and os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
        open(path, "w", newline="").write(text())
    elif what < 0.85:
        new = "./" + name()
        if not os.path.lexists(new):
            os.symlink(name(), new)
    else:
        folder = path if os.path.isdir(path) and not os.path.islink(path) else "."
        new = folder + "/" + name()
        if not os.path.lexists(new):
            open(new, "w", newline="").write(text())
"""


def without_directories(tree):
    """What a diff can tell: files and links; two modes."""
    return [[path, kind, mode & 0o100, what] for path, kind, mode, what in tree if kind != stat.S_IFDIR]


def build_tree(place, tree):
    """Without empty directories, which no diff can name: git could not put a file in the place of one that has such in it."""
    place.mkdir()
    for path, kind, mode, what in tree:
        target = Path(os.fsdecode(os.fsencode(place) + b"/" + bytes.fromhex(path)))
        if kind == stat.S_IFDIR:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == stat.S_IFLNK:
            target.symlink_to(what)
        else:
            target.write_bytes(base64.b64decode(what))
            target.chmod(mode)


def beyond_patch(old, new):
    """What `git apply` does and `patch` does not: a file in the place of a directory (it keeps what it removes until its end), an empty
    file that goes, a mode alone of a name with a blank."""
    was = {path: (kind, mode, what) for path, kind, mode, what in old}
    now = {path: (kind, mode, what) for path, kind, mode, what in new}
    both = [(path, was[path], now[path]) for path in was if path in now]
    return (any((a[0] == stat.S_IFDIR) != (b[0] == stat.S_IFDIR) for _, a, b in both)
            or any(was[path][0] == stat.S_IFREG and not was[path][2] for path in was if path not in now)
            or any(b" " in bytes.fromhex(path) and a[2] == b[2] and a[1] != b[1] for path, a, b in both))


def seen_by_git(tree):
    return {(path.removeprefix("./".encode().hex()), 0o120000 if kind == stat.S_IFLNK else 0o100755 if mode & 0o100 else 0o100644,
             what.encode("utf-8", "surrogateescape") if kind == stat.S_IFLNK else base64.b64decode(what))
            for path, kind, mode, what in tree if kind != stat.S_IFDIR}


def beyond_libgit2(old, new):
    """What the library's parser does not take: an empty file that comes or goes without a number of its content, a name with a blank,
    modes before lines that change, which a link with another target has."""
    changed = seen_by_git(old) ^ seen_by_git(new)
    links = [{path: what for path, kind, _, what in tree if kind == stat.S_IFLNK} for tree in (old, new)]
    return any(links[1].get(path, what) != what for path, what in links[0].items()) or any(not data or b" " in bytes.fromhex(path) for path, _, data in changed)


def by_libgit2(diff, old):
    """The tree that the library makes of the old one, in its index: in a working directory it follows links."""
    with tempfile.TemporaryDirectory(prefix="libgit2.") as top:
        place = pygit2.init_repository(top, bare=True)
        for path, mode, data in seen_by_git(old):
            place.index.add(pygit2.IndexEntry(os.fsdecode(bytes.fromhex(path)), place.create_blob(data), mode))
        place.index.write()
        place.apply(pygit2.Diff.parse_diff(diff), pygit2.GIT_APPLY_LOCATION_INDEX)
        place.index.read()
        return {(os.fsencode(entry.path).hex(), entry.mode, place[entry.id].data) for entry in place.index}


def appliers(old, new, patch):
    if shutil.which("git"):
        yield ["git", "apply", "-p1", "--whitespace=nowarn"]
    if patch and shutil.which("patch") and not beyond_patch(old, new):
        yield ["patch", "-p1", "-s", "--no-backup-if-mismatch"]


def check_applies(world, name, diff, old, new, patch=True):
    for words in appliers(old, new, patch) if diff else ():
        place = world.top / f"place-{name}-{words[0]}"
        build_tree(place, old)
        done = subprocess.run(words, cwd=place, input=diff, capture_output=True, check=False,
                              env={**os.environ, "GIT_CEILING_DIRECTORIES": str(world.top)})
        check(done.returncode == 0, f"{name}: {words[0]}: {(done.stdout + done.stderr)[-500:]!r}\n{diff.decode('utf-8', 'replace')[:1500]}")
        check(without_directories(look(place)) == without_directories(new), f"{name}: {words[0]}: another tree\n{diff.decode('utf-8', 'replace')[:1500]}")
    if diff and patch and pygit2 and not beyond_libgit2(old, new):
        check(by_libgit2(diff, old) == seen_by_git(new), f"{name}: libgit2: another tree\n{diff.decode('utf-8', 'replace')[:1500]}")


@test
def diffs_apply_with_patch(world):
    """Random trees, random changes: the diff of two branches turns one tree into the other, both ways, and both ways of running agree."""
    if not shutil.which("patch"):
        raise Skip("there is no patch here")
    chance = random.Random(int(os.environ.get("PX_SEED", "23")))
    for i in range(12):
        source = world.top / f"s{i}"
        source.mkdir()
        random_tree(chance, source)
        before, seed = look(source), str(chance.randrange(10 ** 9))
        for way in WAYS:
            world.way(way)
            world.good("prepare", f"{way}{i}", "--from", str(source))
            world.good("fork", f"{way}{i}", f"{way}{i}-b")
            answer = world.python(f"{way}{i}-b", CHANGE, seed)
            check(answer["exit_code"] == 0, f"{i}: {answer['stderr'][-300:]}")
        after = world.inside(f"auto{i}-b")
        check(after == world.inside(f"never{i}-b"), f"{i}: the two ways differ")
        check(world.inside(f"auto{i}") == before, f"{i}: the parent was changed")
        check_applies(world, f"{i}-there-{seed}", world.raw("task", "diff", f"auto{i}", f"auto{i}-b").stdout, before, after)
        check_applies(world, f"{i}-back-{seed}", world.raw("task", "diff", f"auto{i}-b", f"auto{i}").stdout, after, before)


@test
def diffs_of_strange_names_apply_with_git(world):
    """Blanks, tabs, quotes, newlines and bytes that are no UTF-8 in names and in targets of links; modes, also of a file that is no text."""
    if not shutil.which("git"):
        raise Skip("there is no git here")
    chance = random.Random(int(os.environ.get("PX_SEED", "41")))
    change = CHANGE.replace('["", ".txt", " x", "-ä"]', ascii(STRANGE)).replace(
        "for name in dirs + files)", "for name in dirs + files if name != 'bin')") + "os.chmod('bin', 0o755)\n"
    check(change.count("udcff") == 1 and "!= 'bin'" in change, "the script was not made")
    for i in range(15):
        source = world.top / f"s{i}"
        source.mkdir()
        random_tree(chance, source, STRANGE)
        (source / "bin").write_bytes(b"a\0\xff")
        (source / "bin").chmod(0o644)
        before, seed = look(source), str(chance.randrange(10 ** 9))
        world.good("prepare", f"t{i}", "--from", str(source))
        world.good("fork", f"t{i}", f"t{i}-b")
        answer = world.python(f"t{i}-b", change, seed)
        check(answer["exit_code"] == 0, f"{i}: {answer['stderr'][-300:]}")
        after = world.inside(f"t{i}-b")
        check_applies(world, f"{i}-there-{seed}", world.raw("task", "diff", f"t{i}", f"t{i}-b").stdout, before, after, False)
        check_applies(world, f"{i}-back-{seed}", world.raw("task", "diff", f"t{i}-b", f"t{i}").stdout, after, before, False)


@test
def actions_diff_like_branches(world):
    """What an action says it changed is what changed, on a plain workspace and on a branch; merged exactly."""
    chance = random.Random(5)
    for i in range(8):
        source = world.top / f"s{i}"
        source.mkdir()
        random_tree(chance, source)
        seed = str(chance.randrange(10 ** 9))
        answers = {}
        for way in WAYS:
            world.way(way)
            for kind in ("plain", "branch"):
                task = f"{kind}-{way}-{i}"
                world.good("prepare", task, "--from", str(source))
                if kind == "branch":
                    world.good("fork", task, f"{task}-x")
                answers[task] = world.python(task, CHANGE, seed)
                check(answers[task]["exit_code"] == 0, str(answers[task]["stderr"])[-300:])
        first = answers[f"plain-auto-{i}"]
        for task, answer in answers.items():
            for key in ("diff", "changed_files", "changes"):
                check(answer.get(key) == first.get(key), f"{task} seed {seed}: {key}: {answer.get(key)} is not {first.get(key)}")
        trees = {task: world.inside(task) for task in answers}
        check(look(world.space(f"plain-auto-{i}")) == trees[f"plain-auto-{i}"], "outside and inside differ")
        check(len({json.dumps(tree) for tree in trees.values()}) == 1, f"{i}: the trees differ")


LINKS = """
import os
os.symlink("/etc/passwd", "new")
os.remove("moved"); os.symlink("there", "moved")
os.remove("gone")
os.remove("empty"); os.symlink("text", "empty")
os.remove("was link"); open("was link", "w").write("a file\\n")
open("text", "a").write("2\\n")
"""


def links_of(top):
    return {path.name: os.readlink(path) for path in sorted(top.iterdir()) if path.is_symlink()}


def make_links(top):
    top.mkdir()
    for name in ("moved", "gone", "was link"):
        (top / name).symlink_to("here")
    (top / "empty").touch()
    (top / "text").write_text("1\n")


def apply_with_git(world, diff, place):
    done = subprocess.run(["git", "apply", "-p1"], cwd=place, input=diff.encode(), capture_output=True, check=False,
                          env={**os.environ, "GIT_CEILING_DIRECTORIES": str(world.top)})
    check(done.returncode == 0, f"git apply: {done.stderr[-500:]!r}\n{diff}")


@test
def links_show_as_links(world):
    """Who reads the diff of an action sees that it makes a link, and git makes one of it."""
    wanted = {"new": ("added", True), "moved": ("modified", True), "gone": ("deleted", True), "empty": ("modified", True),
              "was link": ("modified", None), "text": ("modified", None)}
    for way in WAYS:
        world.way(way)
        source, place = world.top / f"{way}-source", world.top / f"{way}-place"
        make_links(source)
        make_links(place)
        world.good("prepare", way, "--from", str(source))
        answer = world.python(way, LINKS)
        check(answer["exit_code"] == 0 and answer["applied"], str(answer)[:400])
        check({item["path"]: (item["kind"], item.get("link")) for item in answer["changes"]} == wanted, str(answer["changes"]))
        check("diff --git a/new b/new\nnew file mode 120000\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+/etc/passwd\n" in answer["diff"],
              answer["diff"])
        check(answer["diff"].count("120000\n") == 6 and "--- a/text\n+++ b/text\n" in answer["diff"], answer["diff"])
        if shutil.which("git"):
            apply_with_git(world, answer["diff"], place)
            check(links_of(place) == links_of(world.space(way)) and (place / "was link").read_text() == "a file\n", answer["diff"])
            check((place / "text").read_text() == "1\n2\n", answer["diff"])
    said = world.raw("task", "apply", "auto", "--", "python3", "-c", "import os; os.symlink('a', 'b')")
    check(b"px: added b (symbolic link)\n" in said.stderr, str(said.stderr))


@test
def a_file_that_is_no_text_stops_no_diff(world):
    """A note behind an entry that has no lines, a mode or an empty file, is no part of that entry for git."""
    if not shutil.which("git"):
        raise Skip("there is no git here")
    world.prepare("t", {"a": "1\n", "z": "1\n"})
    world.good("fork", "t", "b")
    world.python("b", "import os; os.chmod('a', 0o755); open('b', 'wb').write(b'\\0'); open('c', 'w'); open('d', 'wb').write(b'\\0')\n"
                      "open('e', 'w').write('x' * 3000000); open('z', 'a').write('2\\n')")
    place = world.top / "place"
    place.mkdir()
    for name in ("a", "z"):
        (place / name).write_text("1\n")
        (place / name).chmod(0o644)
    answer = world.good("diff", "b")
    apply_with_git(world, answer["diff"], place)
    check(sorted(os.listdir(place)) == ["a", "c", "z"] and (place / "a").stat().st_mode & 0o111, answer["diff"])
    check((place / "z").read_text() == "1\n2\n", answer["diff"])


# ---- branches -------------------------------------------------------------------------------------------------------


@test
def branches_are_apart(world):
    world.prepare("base", {f"d{i % 10}/f{i}": f"{i}\n" for i in range(200)})
    for name in ("b", "c"):
        world.good("fork", "base", name)
    world.refused("PX404", "fork", "base", "b")
    world.refused("PX403", "fork", "nobody", "d")
    check(not world.space("d").exists(), "a branch of nothing is there")
    world.python("b", "import shutil; shutil.rmtree('d1'); open('d1', 'w').write('file\\n'); open('d2/f2', 'w').write('b\\n')")
    world.python("c", "open('d3/f3', 'w').write('c\\n')")
    check(len(world.inside("base")) == 210, "the parent was changed")
    kinds = {item["path"]: item["kind"] for item in world.good("diff", "b", "c")["changes"]}
    check(kinds["d1"] == "deleted" and kinds["d2/f2"] == "modified" and kinds["d3/f3"] == "modified" and kinds["d1/f1"] == "added", str(kinds))
    world.good("apply-from", "c", "--to", "b")
    check({item["path"] for item in world.good("diff", "c", "b")["changes"]} >= {"d1", "d2/f2"}, "apply-from")
    world.python("c", "open('d2/f2', 'w').write('c too\\n')")
    before = world.inside("b")
    answer = world.refused("PX406", "apply-from", "c", "--to", "b")
    check("d2/f2" in answer["message"] and world.inside("b") == before, str(answer))
    world.good("cleanup", "base", "b")
    check(world.python("c", "print(open('d9/f9').read(), open('d2/f2').read())")["stdout"] == "9\n c too\n\n", "a branch needs its parent")
    world.good("cleanup", "c")
    check(not list((world.top / ".sandbox" / ".px" / "layers").iterdir()), "layers are left")


def paths_of(world, task, *below):
    return [one["path"] for one in world.good("show", task, *below)["files"]]


@test
def files_of_branches_are_shown(world):
    """A branch has no directory; its files can be read nevertheless, and no link in it leads anywhere."""
    world.prepare("base", {"a.txt": "one\n", "d/b.txt": "two\n", "d/e/c.txt": "three\n"})
    world.good("fork", "base", "b")
    world.python("b", "import os; os.remove('a.txt'); open('d/b.txt', 'w').write('new\\n'); os.symlink('/etc', 'out'); "
                      "os.symlink('b.txt', 'd/l'); open('d/x.bin', 'wb').write(b'\\xff\\0')")
    check(paths_of(world, "base") == ["a.txt", "d/", "d/b.txt", "d/e/", "d/e/c.txt"], str(paths_of(world, "base")))
    check(paths_of(world, "b") == ["d/", "d/b.txt", "d/e/", "d/e/c.txt", "d/l", "d/x.bin", "out"], str(paths_of(world, "b")))
    for path in ("d/e", "./d//e/", "d/./e"):
        check(paths_of(world, "b", path) == ["d/e/c.txt"], path)
    check(world.raw("task", "show", "b", "d/b.txt").stdout == b"new\n", "a changed file")
    check(world.raw("task", "show", "b", "d/x.bin").stdout == b"\xff\0", "bytes")
    check(world.good("show", "b", "d/x.bin")["text"] is None and world.good("show", "b", "d/e/c.txt")["text"] == "three\n", "JSON")
    check([one["type"] for one in world.good("show", "b", "out")["files"]] == ["link"], "a link")
    for path in ("a.txt", "nothing", "out/passwd", "d/l/x", "d/b.txt/x"):
        world.refused("PX007", "show", "b", path)
    for path in ("../base", "/etc/passwd", "d/../../x"):
        world.refused("PX402", "show", "b", path)
    world.refused("PX403", "show", "nobody")


@test
def branches_are_exported(world):
    world.prepare("base", {"a.txt": "one\n", "d/b.txt": "two\n"})
    world.good("fork", "base", "b")
    world.python("b", "import os; os.chmod('a.txt', 0o755); os.symlink('/etc/passwd', 'l'); os.mkfifo('p'); os.mkdir('empty', 0o711)")
    for task in ("base", "b"):
        world.good("export", task, f"out-{task}")
        check(look(world.top / f"out-{task}") == world.inside(task), task)
    check(os.readlink(world.top / "out-b" / "l") == "/etc/passwd" and not (world.top / "out-b" / "p").exists(), "links and pipes")
    before = look(world.top / "out-b")
    for place in ("out-b", "no/such/place", "configs/sandbox.yaml"):
        world.refused("PX007", "export", "b", place)
    check(look(world.top / "out-b") == before, "a directory that was there was changed")
    os.symlink("elsewhere", world.top / "link")
    world.refused("PX007", "export", "b", "link")
    check(not (world.top / "elsewhere").exists(), "a link was followed")


@test
def branches_get_a_directory_again(world):
    world.prepare("base", {"a.txt": "one\n", "d/b.txt": "two\n"})
    world.good("fork", "base", "b")
    world.good("fork", "b", "c")
    world.python("b", "import os; os.remove('a.txt'); open('d/n.txt', 'w').write('b\\n')")
    before = {task: world.inside(task) for task in ("base", "b", "c")}
    answer = world.good("checkout", "b")
    check(answer["workspace"] == ".sandbox/b" and look(world.space("b")) == before["b"], str(answer))
    check({task: world.inside(task) for task in before} == before, "a checkout changed a workspace")
    check(world.good("checkout", "b")["workspace"] == ".sandbox/b", "a plain one")
    world.python("b", "open('d/n.txt', 'w').write('more\\n')")
    check((world.space("b") / "d" / "n.txt").read_text() == "more\n", "an action on it")
    check(not world.good("diff", "base", "c")["changes"], "the others")
    world.space("c").mkdir()
    world.refused("PX407", "checkout", "c")
    world.space("c").rmdir()
    world.good("cleanup", "base", "c", "b")
    check(not list((world.top / ".sandbox" / ".px" / "layers").iterdir()), "layers are left")


@test
def actions_in_a_base(world):
    """Its programs are those of the base; a configuration that px finds cannot choose one."""
    root = world.top / "root"
    busybox = shutil.which("busybox")
    if not busybox or subprocess.run([busybox, "ldd", busybox], capture_output=True, check=False).returncode == 0:
        raise Skip("no static busybox")
    (root / "bin").mkdir(parents=True)
    (root / "etc").mkdir()
    shutil.copy(busybox, root / "bin" / "busybox")
    for name in ("sh", "cat"):
        os.symlink("busybox", root / "bin" / name)
    done = world.raw("--json", "sandbox", "base", "import", "tiny", str(root))
    check(done.returncode == 0, str(done.stdout[-300:] + done.stderr[-300:]))
    own = world.top / "own.yaml"
    own.write_text("allowed_binaries: [sh, cat, python]\nbase: tiny\n")
    world.good("prepare", "t", "--config", str(own), "--text", "a=one")
    answer = world.ask("apply", "t", "--config", str(own), "--", "sh", "-c", "echo two >> a; ls /bin; ls /usr")[1]
    check(answer["stdout"] == "busybox\ncat\nsh\n" and answer["changed_files"] == ["a"], str(answer)[:500])
    answer = world.ask("apply", "t", "--config", str(own), "--", "python", "-V")[1]
    check(answer["error"] == "not_allowed" and "not installed" in answer["stderr"], str(answer)[:300])
    done = world.raw("--json", "sandbox", "build", "--base", "tiny", "--tag", "px.local/tiny:1")
    check(done.returncode == 0, str(done.stdout[-300:] + done.stderr[-300:]))
    own.write_text("allowed_binaries: [sh]\nbase: px.local/tiny:1\n")       # an image, by the name that it has in the store
    answer = world.ask("apply", "t", "--config", str(own), "--", "sh", "-c", "cat a; ls /bin")[1]
    check(answer["stdout"] == "onetwo\nbusybox\ncat\nsh\n", str(answer)[:500])
    subprocess.run(["tar", "-cf", str(world.top / "root.tar"), "-C", str(root), "."], check=True)
    for name in ("px.local/tiny:1", "./root.tar"):
        done = world.raw("exec", "--base", name, "--", "sh", "-c", "ls /bin")
        check(done.stdout == b"busybox\ncat\nsh\n", f"{name}: {done.stdout[-300:]} {done.stderr[-300:]}")
    own.write_text("base: px.local/other:1\n")
    world.refused("PX034", "apply", "t", "--config", str(own), "--", "python", "-V")
    own.write_text("base: nowhere\n")
    world.refused("PX900", "apply", "t", "--config", str(own), "--", "python", "-V")
    own.write_text("base: tiny\nenable_jail: false\n")
    world.refused("PX400", "apply", "t", "--config", str(own), "--", "python", "-V")
    world.configure("base: tiny\n")
    done = subprocess.run([world.px, "task", "show", "t"], cwd=world.top, capture_output=True, check=False)
    check(done.returncode != 0 and b"PX050" in done.stderr, str(done.stderr[-300:]))


@test
def deep_chains_are_flattened(world):
    world.prepare("t0", {f"f{i}": "x\n" for i in range(30)})
    expected = {f"f{i}": "x\n" for i in range(30)}
    for i in range(30):
        world.good("fork", f"t{i}", f"t{i + 1}")
        answer = world.python(f"t{i + 1}", f"import os; open('f{i}', 'a').write('{i}\\n'); os.remove('f{29 - i}') if {i} > 15 else None; "
                                          f"open('n{i}', 'w').write('n')")
        check(answer["exit_code"] == 0, str(answer)[:300])
        expected[f"f{i}"] = expected.get(f"f{i}", "") + f"{i}\n"
        if i > 15:
            del expected[f"f{29 - i}"]
        expected[f"n{i}"] = "n"
        layers = (world.top / ".sandbox" / ".px" / "tasks" / f"t{i + 1}" / "layers").read_text().splitlines()
        check(int(layers[1].split()[0]) <= 9, f"{layers[1]} layers")
    got = {os.fsdecode(bytes.fromhex(path))[2:]: base64.b64decode(what).decode() for path, kind, mode, what in world.inside("t30")}
    check(got == expected, f"{set(got) ^ set(expected)}")
    world.good("cleanup", *(f"t{i}" for i in range(31)))
    check(not list((world.top / ".sandbox" / ".px" / "layers").iterdir()), "layers are left")


@test
def branches_cost_what_differs(world):
    """Many branches of many files: the disk has the files once, and for each branch what it changed."""
    source, files, first, all_of_them = world.top / "many", 2000, 10, 60
    for i in range(files):
        if i % 100 == 0:
            (source / f"d{i // 100}").mkdir(parents=True)
        (source / f"d{i // 100}" / f"f{i % 100}").write_text("x" * 4096)
    world.good("prepare", "base", "--from", str(source))

    def used():
        done = subprocess.run(["du", "-s", "-k", "--", ".sandbox"], cwd=world.top, capture_output=True, check=True)
        return int(done.stdout.split()[0])

    def branch(begin, end):
        write_actions(world, [{"task": f"b{i}", "from": "base", "command": ["sh", "-c", f"echo {i} > d{i % 20}/f1"]} for i in range(begin, end)])
        done = world.raw("task", "run", "--jobs", "4", "--from", "a.jsonl")
        check(done.returncode == 0 and len(done.stdout.splitlines()) == end - begin, done.stderr.decode()[-300:])

    before = used()
    branch(0, first)
    some = used() - before
    branch(first, all_of_them)
    grown = used() - before
    check(before >= files * 4 and grown < all_of_them * 64, f"{before} KiB, and {grown} KiB more for {all_of_them} branches")
    check(grown <= some * (all_of_them // first) * 1.5, f"{some} KiB for {first}, {grown} KiB for {all_of_them}: not by what differs")
    check(world.act("b57", "cat", "d17/f1")["stdout"] == "57\n" and world.act("b57", "cat", "d16/f1")["stdout"] == "x" * 4096, "a branch")


# ---- hostile workspaces ---------------------------------------------------------------------------------------------


@test
def links_lead_nowhere(world):
    outside = world.top / "outside"
    outside.mkdir()
    (outside / "secret").write_text("the secret")
    world.prepare("t", {"d/f": "1", "g": "2"})
    answer = world.python("t", f"import os, shutil; shutil.rmtree('d'); os.symlink({str(outside)!r}, 'd'); os.remove('g'); "
                               f"os.symlink({str(outside / 'secret')!r}, 'g')")
    check(answer["exit_code"] == 0 and "the secret" not in json.dumps(answer), str(answer)[:300])
    check((world.space("t") / "d").is_symlink() and os.readlink(world.space("t") / "g") == str(outside / "secret"), "links")
    world.prepare("t", {"d/f": "evil", "g": "evil", "d/secret": "evil"})
    check((outside / "secret").read_text() == "the secret" and sorted(os.listdir(outside)) == ["secret"], "written through a link")
    check((world.space("t") / "d" / "f").read_text() == "evil" and not (world.space("t") / "g").is_symlink(), "the links are still there")
    world.python("t", "import os; os.symlink('/etc', 'e')")
    world.good("fork", "t", "u")
    world.prepare("u", {"e/x": "1"})
    check(not Path("/etc/x").exists(), "written to /etc")


@test
def special_files_are_not_merged(world):
    for way in WAYS:
        world.way(way)
        world.prepare(way, {"a": "1\n"})
        answer = world.python(way, "import os, socket; os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('sock'); "
                                   "os.link('a', 'hard'); open('hard', 'a').write('2\\n')\n"
                                   "try: os.chmod('a', 0o4755)\nexcept PermissionError: os.chmod('a', 0o755)")
        check(answer["exit_code"] == 0, str(answer)[:300])
        kinds = {item["path"]: item["kind"] for item in answer["changes"]}
        check(kinds == {"a": "modified", "fifo": "special", "hard": "added", "sock": "special"}, f"{way}: {kinds}")
        check(answer["changed_files"] == ["a", "hard"], str(answer["changed_files"]))
        check(sorted(os.listdir(world.space(way))) == ["a", "hard"], str(os.listdir(world.space(way))))
        check((world.space(way) / "hard").read_text() == "1\n2\n", "a hard link")
        check(not (world.space(way) / "a").stat().st_mode & 0o7000, "a set-id bit")


@test
def hard_links_to_the_outside_are_cut(world):
    world.prepare("t", {"a": "1\n"})
    (world.top / "outside").write_text("host\n")
    os.link(world.top / "outside", world.space("t") / "h")
    world.python("t", "open('h', 'w').write('changed\\n')")
    check((world.space("t") / "h").read_text() == "changed\n" and (world.top / "outside").read_text() == "host\n", "written through")
    (world.top / "outside").chmod(0o644)
    os.link(world.top / "outside", world.space("t") / "m")
    answer = world.python("t", "import os; os.chmod('m', 0o755)")
    check([item["kind"] for item in answer["changes"]] == ["mode"] and (world.space("t") / "m").stat().st_mode & 0o777 == 0o755, str(answer)[:300])
    check((world.top / "outside").stat().st_mode & 0o777 == 0o644, "the mode of a file outside was changed")


@test
def strange_names(world):
    names = ["new\nline", "tab\t", "quote\"'", "back\\slash", "-rf", " ", "a b ", "\x1b[31m", "*", "ü", "'", "$(x)", "b" * 255]
    for way in WAYS:
        world.way(way)
        world.prepare(way, {"a": "1"})
        answer = world.python(way, "import os, sys\nfor n in sys.argv[1:]: open(n, 'w').write(n + '\\n')\n"
                                   "open(b'\\xff\\xfe', 'w').write('bytes\\n'); os.mkdir('d\\n'); open('d\\n/x', 'w').write('x')", *names)
        check(answer["exit_code"] == 0, answer["stderr"][-300:])
        check(set(answer["changed_files"]) >= set(names) | {"d\n/x"} and len(answer["changed_files"]) == len(names) + 2,
              str(answer["changed_files"]))
        check((Path(os.fsdecode(os.fsencode(world.space(way)) + b"/\xff\xfe"))).read_text() == "bytes\n", "a name that is no UTF-8")
        for name in names:
            check((world.space(way) / name).read_text() == name + "\n", repr(name))
        for line in world.log(way):
            check(line["task_id"] == way, "a name broke the journal")


@test
def sparse_files_stay_sparse(world):
    for way in WAYS:
        world.way(way)
        world.prepare(way, {"a": "1\n"})
        answer = world.python(way, "f = open('s', 'wb'); f.truncate(3 << 30); f.seek(1 << 30); f.write(b'x')", options=("--memory", "256m"))
        check(answer["exit_code"] == 0 and answer["changed_files"] == ["s"], str(answer)[:300])
        st = (world.space(way) / "s").stat()
        check(st.st_size == 3 << 30 and st.st_blocks < 4096, f"{way}: {st.st_size} bytes in {st.st_blocks} blocks")
        answer = world.python(way, "open('s', 'r+b').write(b'y')")
        st = (world.space(way) / "s").stat()
        check(answer["changed_files"] == ["s"] and st.st_blocks < 4096, f"{way}: {answer['changed_files']}, {st.st_blocks} blocks")
        world.good("fork", way, way + "-2")
        answer = world.python(way + "-2", "open('s', 'r+b').write(b'z')")
        check(answer["changed_files"] == ["s"], str(answer)[:300])
        used = sum(path.lstat().st_blocks for path in (world.top / ".sandbox").rglob("*"))
        check(used < 65536, f"{way}: {used} blocks after a fork")
        answer = world.python(way, "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); open('t', 'wb').truncate(1 << 60)")
        check(answer["exit_code"] == 1 and "File too large" in answer["stderr"], f"{way}: an exabyte: {str(answer)[:300]}")


@test
def no_more_is_merged_than_the_limit(world):
    for way in WAYS:
        world.way(way)
        world.prepare(way, {"a": "1\n"})
        links = "import os\nopen('a', 'w').write('2')\nopen('f', 'wb').write(b'x' * (8 << 20))\nfor i in range(12): os.link('f', f'f{i}')"
        answer = world.refused("PX046", "apply", way, "--memory", "64m", "--", "python3", "-c", links)
        check("nothing was merged" in answer["message"], answer["message"])
        check(os.listdir(world.space(way)) == ["a"] and (world.space(way) / "a").read_text() == "1\n", f"{way}: {os.listdir(world.space(way))}")
        check(world.log(way)[-1]["error"] == "too_large", str(world.log(way)[-1])[:300])
        check(world.python(way, links, options=("--memory", "512m"))["exit_code"] == 0, f"{way}: with a larger limit")
        check(len(os.listdir(world.space(way))) == 14, f"{way}: {os.listdir(world.space(way))}")


@test
def diffs_share_one_budget(world):
    """Lines in the opposite order cost the most steps; beyond the budget files are only named."""
    world.prepare("t", {f"f{i}": "".join(f"{k}\n" for k in range(40000)) for i in range(8)})
    world.good("fork", "t", "u")
    turn = "for i in range(8):\n a = open(f'f{i}').readlines(); open(f'f{i}', 'w').writelines(a[::-1])"
    for task in ("t", "u"):
        answer = world.python(task, turn)
        check(answer["changed_files"] == [f"f{i}" for i in range(8)] and answer["diff_truncated"], str(answer)[:300])
        check(answer["diff"].startswith("--- a/f0\n") and answer["diff"].endswith("Files a/f7 and b/f7 differ; diff left out: budget\n"),
              answer["diff"][:60] + "..." + answer["diff"][-100:])
    answer = world.good("diff", "u")
    check("Files a/f7 and b/f7 differ; diff left out: budget\n" in answer["diff"], answer["diff"][-100:])


@test
def many_files(world):
    world.prepare("t", {"a": "1"})
    answer = world.python("t", "import os\nfor i in range(100):\n os.mkdir(f'd{i}')\n for k in range(1000): open(f'd{i}/f{k}', 'w')",
                          options=("--timeout", "200s", "--cpu-time", "200s"))
    check(answer["exit_code"] == 0 and len(answer["changed_files"]) == 100000, str(answer)[:300])
    check(len(os.listdir(world.space("t") / "d99")) == 1000, "not merged")
    answer = world.act("t", "sh", "-c", "rm -r d*", options=("--timeout", "200s", "--cpu-time", "200s"))
    check(len(answer["changed_files"]) == 100000 and os.listdir(world.space("t")) == ["a"], str(answer)[:200])


@test
def one_at_a_time(world):
    world.prepare("t", {"a": "1"})
    seen = None
    for _ in range(100):        # of two that start together either may be the first
        slow = subprocess.Popen(world.command("--json", "task", "apply", "t", "--", "sh", "-c", "sleep 5; echo 2 > a"), cwd=world.top,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while slow.poll() is None and not seen:
            status, answer = world.ask("apply", "t", "--discard", "--", "sh", "-c", "true")
            seen = answer if status else None
        slow.communicate(timeout=LIMIT_S)
        if seen:
            break
    check(seen and seen["details"]["code"] == "PX405", f"two at once: {seen}")
    check((world.space("t") / "a").read_text() == "2\n", "the first one was disturbed")


@test
def a_host_that_writes_meanwhile_is_not_overwritten(world):
    world.prepare("t", {"a": "1\n", "b": "1\n"})
    slow = subprocess.Popen(world.command("--json", "task", "apply", "t", "--", "python3", "-c",
                             "import sys, time; open('a', 'w').write('box\\n'); open('b', 'w').write('box\\n'); time.sleep(3)"), cwd=world.top,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.5)
    (world.space("t") / "a").write_text("host\n")
    out, err = slow.communicate(timeout=LIMIT_S)
    if slow.returncode == 0:
        raise Skip("the host was too slow to be in between")
    check(json.loads(out or err)["details"]["code"] == "PX406", (out or err).decode()[:300])
    check((world.space("t") / "a").read_text() == "host\n" and (world.space("t") / "b").read_text() == "1\n", "half of it was merged")
    check(world.log("t")[-1]["error"] == "conflict", "the journal")


# ---- the journal ----------------------------------------------------------------------------------------------------


@test
def journals_from_many_processes(world):
    world.prepare("base", {"a": "1"})
    problems = []

    def work(number):
        for i in range(10):
            status, answer = world.ask("apply", "shared-refused", "--", "rm", f"{number}-{i}")
            if status not in (125, 126):
                problems.append(answer)
        world.raw("task", "cleanup", "one-journal")

    world.prepare("shared-refused", {"a": "1"})
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not problems, str(problems[:1]))
    check(len(world.log("one-journal")) == 6, f"{len(world.log('one-journal'))} lines")
    world.log("shared-refused")


@test
def journals_are_rotated(world):
    world.configure(CONFIG + "log_max_mb: 1\n")
    world.prepare("t", {"a": "1"})
    logs = world.top / "logs" / "sandbox"
    for i in range(5):
        world.act("t", "rm", "x" * 100000, "y" * 100000, "z" * 100000, f"n{i}")
    check((logs / "t.jsonl.1").exists() and (logs / "t.jsonl").stat().st_size < 1 << 20, str(os.listdir(logs)))
    lines = [json.loads(line) for line in world.raw("task", "log", "t").stdout.splitlines()]
    check([line["cmd"][-1] for line in lines[1:]] == [f"n{i}" for i in range(5)], "lines were lost")


@test
def a_torn_line_is_cut(world):
    world.prepare("t", {"a": "1"})
    journal = world.top / "logs" / "sandbox" / "t.jsonl"
    with journal.open("a") as file:
        file.write('{"event":"half')
    world.act("t", "rm")
    check([line["event"] for line in world.log("t")] == ["prepare_workspace", "apply_action"], journal.read_text()[-300:])


# ---- many actions ---------------------------------------------------------------------------------------------------


def write_actions(world, lines, name="a.jsonl"):
    (world.top / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def results_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


@test
def run_many(world):
    lines = [{"task": "base", "files": {f"f{i}": "x\n" for i in range(10)}}]
    lines += [{"task": f"t{i % 5}", "from": "base", "id": f"n{i}", "command": ["sh", "-c", f"echo {i} >> f0"]} for i in range(40)]
    lines += [{"task": "t0", "command": "oops"}, {"task": "t0", "command": ["rm"]}, {"task": "t1", "command": ["sh", "-c", "exit 3"]},
              {"task": "t1", "command": ["sh", "-c", "sleep 60"], "timeout_sec": 1}, {"task": "t2", "cleanup": True},
              {"task": "t3", "test": True, "discard": True, "command": ["sh", "-c", "echo gone > f0"]},
              {"task": "t9", "timeout": 1, "command": ["x"], "id": "bad"}, {"task": "../x", "command": ["sh"]}, {"task": "none", "command": ["sh"]}]
    write_actions(world, lines)
    with (world.top / "a.jsonl").open("a") as file:
        file.write("{broken\n\n")
    done = world.raw("task", "run", "--jobs", "4", "--from", "a.jsonl")
    results = {result["line"]: result for result in results_of(done)}
    check(done.returncode == 1 and sorted(results) == list(range(1, 52)), f"{done.returncode} {sorted(results)} {done.stderr[-300:]}")
    check(all(results[i + 2]["id"] == f"n{i}" and results[i + 2]["exit_code"] == 0 for i in range(40)), "the results")
    codes = [results[i]["exit_code"] for i in range(42, 52)]
    check(codes == [127, 126, 3, 124, 0, 0, 125, 125, 125, 125], f"the exit codes: {codes} {results[45]}")
    check(results[48]["id"] == "bad", f"the id of a wrong line: {results[48]}")
    check([results[i]["error"] for i in (48, 49, 50, 51)] == ["PX408", "PX401", "PX403", "PX408"], "the errors")
    got = world.act("t3", "cat", "f0")["stdout"].split()
    check(got == ["x", *(str(i) for i in range(40) if i % 5 == 3)], f"the order: {got}")
    check(not (world.top / ".sandbox" / ".px" / "tasks" / "t2").exists(), "cleanup")
    again = world.raw("task", "run", "--from", "a.jsonl")
    check({result["line"] for result in results_of(again)} == {48, 49, 50, 51}, f"done twice: {again.stdout[-300:]}")
    other = world.raw("task", "run", "--name", "second", "--from", "a.jsonl")
    check(len(results_of(other)) == 51, "another name is another run")


@test
def lines_wait_for_older_ones(world):
    """A branch has what stood above its first line, whoever is busy meanwhile, and lines of one task never pass each other."""
    world.prepare("base", {"f": "0\n"})
    lines = [{"task": "base", "command": ["sh", "-c", "sleep 1; echo 1 > f"]}, {"task": "b", "from": "base", "command": ["cat", "f"]},
             {"task": "b", "command": ["sh", "-c", "echo 2 >> f"]}, {"task": "base", "command": ["sh", "-c", "echo 3 > f"]},
             {"task": "c", "from": "base", "command": ["cat", "f"]}, {"task": "b", "command": ["cat", "f"]}]
    write_actions(world, lines)
    done = world.raw("task", "run", "--jobs", "4", "--from", "a.jsonl")
    told = {result["line"]: result.get("stdout") for result in results_of(done)}
    check(done.returncode == 0 and [told.get(i) for i in (2, 5, 6)] == ["1\n", "3\n", "1\n2\n"], f"{told} {done.stderr[-300:]}")


@test
def one_action_at_a_time_through_a_pipe(world):
    """Who waits for a result before the next action gets it: a loop that learns works so."""
    world.prepare("t", {"a": ""})
    runner = subprocess.Popen(world.command("-q", "task", "run", "--jobs", "2", "--from", "-"), cwd=world.top, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ended = threading.Timer(60, runner.kill)
    ended.start()
    try:
        for i in range(5):
            line = json.dumps({"task": "t", "id": i, "command": ["sh", "-c", f"echo {i} >> a; cat a"]}).encode() + b"\n"
            runner.stdin.write(line[:20])
            runner.stdin.flush()
            runner.stdin.write(line[20:])
            runner.stdin.flush()
            answer = json.loads(runner.stdout.readline() or b"{}")
            check(answer.get("id") == i and answer["stdout"].split() == [str(k) for k in range(i + 1)], f"{i}: {str(answer)[:300]}")
        runner.stdin.close()
        check(runner.wait(LIMIT_S) == 0, f"{runner.returncode}")
    finally:
        ended.cancel()
        runner.kill()
        runner.wait()


def kill_and_start_again(world, jobs, count):
    """A runner that is killed again and again; how often."""
    kills = 0
    for attempt_number in range(200):
        runner = subprocess.Popen(world.command("-q", "task", "run", "--jobs", str(jobs), "--from", "a.jsonl"), cwd=world.top,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait = random.Random(f"{os.environ.get('PX_SEED', '')} {attempt_number}").random() * 0.4 + 0.02 * attempt_number
        try:
            runner.communicate(timeout=wait)
            check(runner.returncode == 0, f"the run ended with {runner.returncode}")
            return kills
        except subprocess.TimeoutExpired:
            runner.send_signal(signal.SIGKILL)
            runner.communicate(timeout=LIMIT_S)
            kills += 1
    raise Problem("it never came to an end")


@test
def killed_runners_do_everything_once(world):
    """kill -9 at random moments: each action once in the journal and once in its workspace, plain or branch, and none of them half."""
    tasks, each = 6, 12
    lines = [{"task": "base", "files": {"seen": "", "a": "0\n", "b": "0\n"}}]
    for i in range(tasks):
        lines.append({"task": f"p{i}", "files": {"seen": "", "a": "0\n", "b": "0\n"}})
    for k in range(each):
        for i in range(tasks):
            name = f"p{i}" if i % 2 else f"q{i}"
            line = {"task": name, "command": ["sh", "-c", f"echo {k} >> seen; echo {k} > a; echo {k} > b; mkdir d{k}; echo x > d{k}/x"]}
            lines.append(line if i % 2 else {**line, "from": "base"})
    write_actions(world, lines)
    kills = kill_and_start_again(world, 3, len(lines))
    for i in range(tasks):
        name = f"p{i}" if i % 2 else f"q{i}"
        events = [line for line in world.log(name) if line["event"] == "apply_action"]
        check(len(events) == each and len({line["action"] for line in events}) == each, f"{name}: {len(events)} lines after {kills} kills")
        answer = world.act(name, "sh", "-c", "cat seen; cat a b; ls -d d*/x | wc -l", options=("--discard",))
        wanted = "".join(f"{k}\n" for k in range(each)) + f"{each - 1}\n" * 2 + f"{each}\n"
        check(answer["stdout"] == wanted, f"{name} after {kills} kills: {answer['stdout']!r}")
    check(not list((world.top / ".sandbox" / ".px" / "trash").iterdir()), "the trash is full")
    world.good("cleanup", "base", *(f"{kind}{i}" for kind in "pq" for i in range(tasks)))
    left = [path for part in ("layers", "tasks", "unsettled", "trash") for path in (world.top / ".sandbox" / ".px" / part).iterdir()]
    left = [path for path in left if path.parent.name != "tasks" or any(path.iterdir())]       # a name that was locked, and no more
    check(not left and sorted(os.listdir(world.top / ".sandbox")) == [".px"], f"left after {kills} kills: {left[:5]}")


@test
def report_of_a_run(world):
    world.prepare("t", {"a": "1\n"})
    world.act("t", "sh", "-c", "echo '<script>alert(1)</script>' > a")
    world.act("t", "sh", "-c", "exit 3")
    world.act("t", "rm", "<b>&\"'")
    write_actions(world, [{"task": "u", "files": {"x": "1\n"}, "command": ["sh", "-c", "echo '<i>' > x"]}])
    done = world.raw("task", "run", "--from", "a.jsonl")
    (world.top / "logs" / "sandbox" / "results.jsonl").write_bytes(done.stdout)
    with (world.top / "logs" / "sandbox" / "u.jsonl").open("a") as file:
        file.write("not json\n[1]\n")
    answer = world.good("report", "--html", "r.html")
    wanted = {"tasks": 2, "actions": 4, "ok": 2, "failed": 1, "refused": 1, "prepared": 2, "broken_lines": 2}
    check(all(answer[key] == value for key, value in wanted.items()), str(answer))
    page = (world.top / "r.html").read_text()
    check("<script" not in page and "<b>&" not in page and "<i>" not in page, "text of an action is markup")
    check("&#60;i&#62;" in page and "<svg" in page and "http://" not in page and "https://" not in page, "the page")
    world.refused("PX007", "report", "no-such-directory")


class Page(html.parser.HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text += data


@test
def reports_are_pages_without_scripts(world):
    """Names, outputs and commands that want to be markup are text, and the page asks nobody for anything."""
    evil = ['"><img src=x onerror=alert(1)>', "'><svg onload=alert(2)>", "</title></style></pre><script>alert(3)</script>", "&lt;b&gt;<!--",
            "javascript:alert(4)", "\udcff<i>", "]]><a href=//x>"]
    world.prepare("t", {"a": "1\n"})
    write_actions(world, [{"task": "t", "id": "<u>", "command": ["python3", "-c", "import sys\nfor n in sys.argv[1:]:\n"
                           "  open(n.replace('/', '|'), 'w').write(n + '\\n'); print(n); print(n, file=sys.stderr)", *evil[:5], *evil[6:]]},
                          {"task": "t", "command": ["python3", "-c", "open(b'\\xff<i>', 'w').write('x'); raise SystemExit(7)"]},
                          {"task": "t", "command": ["<script>alert(5)</script>"]}])
    done = world.raw("task", "run", "--from", "a.jsonl")
    (world.top / "logs" / "sandbox" / "results.jsonl").write_bytes(done.stdout)
    world.good("report", "--html", "r.html")
    text = (world.top / "r.html").read_text()
    page = Page(text)
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "pre", "code", "svg",
               "rect", "line", "text", "g", "details", "summary", "section", "span", "div", "ul", "li", "a", "b", "small"}
    check(page.tags <= allowed, f"elements: {page.tags - allowed}")
    for tag, name, value in page.attributes:
        check(not name.startswith("on") and name not in ("src", "srcset", "action", "formaction", "data", "background"), f"{tag} {name}={value}")
        check(name not in ("href", "xlink:href") or value.startswith("#"), f"{tag} {name}={value}")
        check("<" not in value and "alert" not in value or name == "title", f"{tag} {name}={value}")
    check("@import" not in text and "url(" not in text, "the style asks for something")
    check("svg" in page.tags and "rect" in page.tags, "no timeline")
    for piece in ("alert(1)", "+++ b/", "alert(5)", "not_allowed", "126", "7"):
        check(piece in page.text, f"the page does not show {piece}")


# ---- state that px did not make -------------------------------------------------------------------------------------


def make_evil(own):
    """What a repository or another user could bring: a record that moves a directory to a place of its choice."""
    for name in ("layers/.new-evil/users", "tasks/evil/stage", "unsettled", "trash"):
        (own / name).mkdir(parents=True)
    for name in ("unsettled/evil", "layers/.new-evil/users/keep"):
        (own / name).touch()
    (own / "layers/.new-evil/authorized_keys").write_text("ssh-ed25519 AAAA attacker\n")
    for head in (b"px-redo 1", b"px-redo 2"):
        record = head + b"\0n 0 0 ../../../../../victim/.ssh\0"
        (own / "tasks/evil/stage/record").write_bytes(record)


def snapshot(top):
    """Every path below it with its kind, mode, owner and content."""
    found = {}
    for path in sorted(top.rglob("*")):
        st = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(top))] = (st.st_mode, st.st_uid, st.st_ino, content)
    return found


VERBS = (("prepare", "t1", "--from", "."), ("prepare", "t1"), ("cleanup", "t1"), ("cleanup", "evil"), ("fork", "evil", "t2"), ("diff", "evil", "t1"))


@test
def a_repository_brings_state(world):
    """A clone has .sandbox/.px in it: nothing is done that it says, and nothing of it is removed."""
    (world.top / "victim").mkdir()
    make_evil(world.top / "evil" / ".sandbox" / ".px")
    (world.top / "evil" / ".sandbox" / ".px" / "trash" / "mine").mkdir()
    (world.top / "evil" / ".sandbox" / ".px" / "trash" / "mine" / "thesis").write_text("x")
    (world.top / "victim" / "projects").mkdir()
    clone = world.top / "victim" / "clone"
    shutil.copytree(world.top / "evil", clone, symlinks=True)
    before = snapshot(world.top / "victim")
    for words in VERBS:
        world.refused("PX044", *words, cwd=clone)
    check(snapshot(world.top / "victim") == before, "something was changed")
    shutil.rmtree(clone / ".sandbox")
    world.good("prepare", "t1", "--from", ".", cwd=clone)


@test
def a_copy_of_state_is_refused(world):
    """px made the one that was copied, but not the copy; the one that was moved is still px's."""
    world.prepare("t1", {"a": "1\n"})
    world.good("fork", "t1", "t2")
    (world.top / "other").mkdir()
    shutil.copytree(world.top / ".sandbox", world.top / "other" / ".sandbox", symlinks=True)
    before = snapshot(world.top / "other")
    for words in VERBS:
        world.refused("PX044", *words, cwd=world.top / "other")
    check(snapshot(world.top / "other") == before, "something was changed")
    (world.top / "third").mkdir()
    (world.top / ".sandbox").rename(world.top / "third" / ".sandbox")
    shutil.copytree(world.top / "configs", world.top / "third" / "configs")
    answer = world.act("t2", "cat", "a", cwd=world.top / "third")
    check(answer["stdout"] == "1\n", str(answer)[:300])
    world.refused("PX044", "prepare", "t3", cwd=world.top / "third", env={"PX_HOME": str(world.top / "another")})


@test
def a_forged_record_is_not_done(world):
    """A box that can write to .px leaves a record: the operator's next px does not do what it says."""
    world.prepare("t1", {"a": "1\n"})
    (world.top / "victim").mkdir()
    own = world.top / ".sandbox" / ".px"
    stage = own / "tasks" / "t1" / "stage"
    stage.mkdir(exist_ok=True)
    (stage / "0").write_text("forged")
    unsigned, wrong = b"", b"s 0 0 " + b"0" * 64 + b"\0"
    for head, op, end in ((1, b"n 0 0 ../../../victim/.ssh", unsigned), (2, b"n 0 0 ../../../victim/.ssh", wrong), (2, b"p 33188 0 a", wrong),
                          (2, b"d 32768 0 a", unsigned), (2, b"c 33279 0 ../../../victim", wrong), (2, b"l 0 0 px-branch 1\n", wrong)):
        (stage / "record").write_bytes(b"px-redo %d\0%s\0%s" % (head, op, end))
        (own / "unsettled" / "t1").touch()
        world.refused("PX044", "apply", "t1", "--", "cat", "a")
        world.good("prepare", "t2")
    check((world.space("t1") / "a").read_text() == "1\n" and not list((world.top / "victim").iterdir()), "it was done")
    shutil.rmtree(stage)
    check(world.act("t1", "cat", "a")["stdout"] == "1\n", "t1 cannot be used any more")


@test
def journals_of_a_repository_are_not_done(world):
    """The author of a repository has run the same actions, and ships his journals: here nothing was done yet."""
    author, user = world.top / "author", world.top / "user"
    author.mkdir()
    shutil.copytree(world.top / "configs", author / "configs")
    lines = [{"task": "t", "files": {"a": "1\n"}}, {"task": "t", "command": ["python3", "-c", "open('checked', 'w')"]}]
    (author / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = world.raw("task", "run", "--name", "ci", "--from", "a.jsonl", cwd=author)
    check(done.returncode == 0 and (author / ".sandbox" / "t" / "checked").exists(), str(done)[-300:])
    shutil.rmtree(author / ".sandbox")
    author.rename(user)
    done = world.raw("task", "run", "--name", "ci", "--from", "a.jsonl", cwd=user)
    check(done.returncode == 0 and (user / ".sandbox" / "t" / "checked").exists(), f"it was skipped: {str(done)[-300:]}")
    (user / ".sandbox" / "t" / "checked").unlink()
    done = world.raw("task", "run", "--name", "ci", "--from", "a.jsonl", cwd=user)
    check(done.returncode == 0 and not (user / ".sandbox" / "t" / "checked").exists(), "what px has done here was done again")


@test
def parts_that_are_links(world):
    """Directories of .px that somebody has replaced by links are not followed."""
    for part in ("tasks", "layers", "trash", "unsettled"):
        world.prepare("t1", {"a": "1\n"})
        elsewhere = world.top / "elsewhere"
        (elsewhere / "t1").mkdir(parents=True, exist_ok=True)
        (elsewhere / "t1" / "thesis").write_text("x")
        own = world.top / ".sandbox" / ".px"
        (own / part).rename(own / "away")
        (own / part).symlink_to(elsewhere)
        before = snapshot(elsewhere)
        for words in VERBS[:3]:
            world.refused("PX044", *words)
        check(snapshot(elsewhere) == before, f"{part}: something was changed")
        (own / part).unlink()
        (own / "away").rename(own / part)


@test
def a_work_root_that_is_a_link(world):
    """.sandbox or logs as a link of the repository: what it leads to is not touched. An absolute path is the user's word."""
    user = world.top / "user"
    (user / "t1").mkdir(parents=True)
    (user / "t1" / "thesis").write_text("x")
    (world.top / ".sandbox").symlink_to("user")
    before = snapshot(user)
    for words in VERBS[:3]:
        world.refused("PX044", *words)
    check(snapshot(user) == before, "something was changed")
    (world.top / ".sandbox").unlink()
    (world.top / "logs").symlink_to("user")
    world.refused("PX044", "prepare", "t1")
    check(snapshot(user) == before, "something was changed by way of logs")
    (world.top / "named").symlink_to("real")
    (world.top / "real").mkdir()
    (world.top / "c.yaml").write_text(f"work_root: {world.top}/named\nlogs_dir: {world.top}/named/logs\n")
    world.good("prepare", "t1", "--config", "c.yaml")
    check((world.top / "real" / "t1").is_dir(), "an absolute path through a link")


@test
def state_of_another_user(world):
    """A .px of another user's in a directory that all can write to: his directory does not come to where root alone may write."""
    if os.geteuid() != 0:
        raise Skip("needs root, to be two users")
    work, victim = world.top / "work", world.top / "victim"
    work.mkdir()
    work.chmod(0o1777)
    victim.mkdir(mode=0o700)
    make_evil(work / ".px")
    (work / ".px" / "tasks/evil/stage/record").write_bytes(b"px-redo 1\0n 0 0 ../../../victim/.ssh\0")
    for path in (work / ".px", *(work / ".px").rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    (world.top / "c.yaml").write_text(f"work_root: {work}\n")
    before = snapshot(world.top / "work")
    for words in VERBS[:4]:
        world.refused("PX044", *words, "--config", "c.yaml")
    check(snapshot(work) == before and not list(victim.iterdir()), "something was changed")
    shutil.rmtree(work / ".px")
    (work / ".px").mkdir()
    os.chown(work / ".px", 65534, 65534)
    world.refused("PX044", "prepare", "t1", "--config", "c.yaml")


@test
def cleanup_follows_no_link(world):
    """A box that has the workspace as a bind, or the directory that holds it, swaps directories with links while px fills and removes them."""
    outside, away = outside_of(world.top), world.top / "away"
    away.mkdir()
    world.good("prepare", "t")
    files = json.dumps({f"d{i}/sub/{k}": "1" for i in range(8) for k in range(4)}).encode()
    words = words_of(Path(world.px).with_name("swapper"), away, outside, "t", "t/d*", "t/d*/sub", ".px/trash", ".px/tasks/t")
    with Race(words, outside, cwd=world.top / ".sandbox") as race:
        for _ in race.rounds():                                         # each command may say that something was in the way
            filled = world.raw("task", "prepare", "t", "--files", "-", data=files)
            race.look(world.space("t") / "d0")
            gone = world.raw("task", "cleanup", "t")
            race.seen["worked"] += filled.returncode == gone.returncode == 0


@test
def homes_that_are_swept(world):
    """An action without a jail has its home in TMPDIR: a directory of the user's beside it stays, the home of a killed px goes."""
    tmp = world.top / "tmp"
    for name in ("px-backup", "px-homes-1", "px-home-thesis"):
        (tmp / name).mkdir(parents=True)
        (tmp / name / "thesis").write_text("x")
    before = snapshot(tmp)
    (world.top / "c.yaml").write_text(CONFIG + "enable_jail: false\n")
    world.prepare("t", {"a": "1\n"})
    act = [world.px, "--json", "task", "apply", "t", "--config", "c.yaml", "--", "python3", "-c"]
    environment = {**os.environ, "TMPDIR": str(tmp)}
    left = subprocess.Popen([*act, "import time; time.sleep(600)"], cwd=world.top, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not list(tmp.glob("px-homes-*/home-*")) and time.monotonic() < end:
        time.sleep(0.01)
    homes = list(tmp.glob("px-homes-*/home-*"))
    left.kill()
    left.wait()
    check(homes, "the action has no home")
    while snapshot(tmp) != before and time.monotonic() < end:      # px-init holds it until all processes of the box have ended
        done = subprocess.run([*act, "print(1)"], cwd=world.top, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    check(snapshot(tmp) == before, f"left or lost: {set(snapshot(tmp)) ^ set(before)} {done.stdout[-300:]}")


HOLD = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
if os.fork() == 0:
    print("held", flush=True)
    time.sleep(1)
    os._exit(0)
os._exit(0)
"""


@test
def a_lock_of_the_dying(world):
    """Who took the lock is dead, and a process that it had forked holds it for a moment more: the next action waits for that."""
    world.prepare("t", {"a": "1\n"})
    own = world.top / ".sandbox" / ".px" / "tasks" / "t"
    own.mkdir(exist_ok=True)
    holder = subprocess.Popen(["/usr/bin/python3", "-c", HOLD, own], stdout=subprocess.PIPE)
    check(holder.stdout.readline() == b"held\n" and holder.wait() == 0, "nobody holds it")
    answer = world.act("t", "cat", "a")
    holder.stdout.close()
    check(answer.get("stdout") == "1\n", str(answer)[:300])


# ---- running --------------------------------------------------------------------------------------------------------


if __name__ == "__main__":
    sys.exit(drive("task/run.py", World, programs=("px", "px-main", "px-layer"), scripts=["race.py"], tools=["swapper"]))
