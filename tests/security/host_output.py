"""Sections C, D, F, H and I: a program that lies about itself. What it writes is output and nothing else."""

import base64
import json
import subprocess
import threading
import time

from suite import LIMIT, Skipped, check, everywhere, fields, shorten, test

# What px says of a run that must not depend on what the run wrote.
MEASURED = {"id", "argv", "stdout", "stderr", "truncated", "wall_s", "wall_ns", "cpu_user_s", "cpu_sys_s", "memory_peak_bytes",
            "pids_peak", "io_read_bytes", "io_write_bytes"}

LIES = r"""
printf 'PX013  --memory needs a cgroup\n\nWhy:\n  - no\n\nFix:\n  - none\n' >&2
printf 'px: timeout: ran longer than its timeout\npx: refused: mount, 3 times (seccomp; no box may)\n' >&2
printf '{"schema":1,"status":"timeout","exit_code":124,"timed_out":true,"denials":[{"op":"syscall","target":"mount",'
printf '"rule":"seccomp","grant":null,"count":7}],"isolation":{"tier":"none"}}\n'
printf '\033]0;title\007\033]52;c;eA==\007\033[2J\033[H\033[?1049h\033P+q\033\\\r\b\b'
printf '\000\001\002\377\376\303\050\355\240\200\364\220\200\200\302\233\342\200\256'
printf '"}],"status":"ok"}\n</testcase></testsuite>\n]]>\n'
head -c 300000 /dev/zero | tr '\000' 'a'
printf '\n'
exit %d
"""


def steady(result):
    return {key: value for key, value in result.items() if key not in MEASURED}


@everywhere
def C6_lies_change_nothing(suite):
    """px's own messages, escape sequences, its own JSON, NULs, broken UTF-8 and a very long line."""
    for code in (0, 5):
        honest = suite.result([], "/bin/sh", "-c", f"exit {code}")
        lying = suite.result([], "/bin/sh", "-c", LIES % code)
        check(steady(lying) == steady(honest), f"they differ: {steady(lying)} and {steady(honest)}")
        check("timed_out" in lying["stdout"] and len(lying["stdout"]) > 300000, "its output is not whole")


@everywhere
def C6_lies_in_names(suite):
    """The command's own words are repeated in the result; they are quoted there, too."""
    name = "x\033]0;t\007\",\"status\":\"ok\",\"y\":\"\n\xff"
    done = suite.box([], "/bin/sh", "-c", "exit 3", name, json_result=True)
    result = json.loads(done.stdout)
    check(result["status"] == "nonzero" and result["argv"][3].startswith("x\033]0;"), shorten(done.stdout))
    check(not any(byte < 0x20 for byte in done.stdout.rstrip(b"\n")), "control bytes in JSON")


@everywhere
def H13_lies_of_the_dying(suite):
    """Signals that px itself uses, or that the filter sends, sent by the program to itself."""
    for signal, code in (("KILL", 137), ("XCPU", 152), ("XFSZ", 153), ("SYS", 159), ("ALRM", 142)):
        result = suite.result([], "/bin/sh", "-c", f"kill -{signal} $$")
        check(result["exit_code"] == code and not result["denials"] and not result["timed_out"] and
              not result["oom_killed"], f"{signal}: {shorten(str(steady(result)))}")
        hit = [hit["limit"] for hit in result["limits_hit"] if hit["limit"] not in ("file-size",)]
        check(not hit, f"{signal} alone is taken for a limit: {hit}")


@everywhere
def D13_denials_are_the_filters(suite):
    """A refused call is told with its count; a program that refuses itself adds nothing."""
    result = suite.result([], suite.program, "D1_unshare")
    told = {row["target"]: row for row in result["denials"]}
    check(told["unshare"]["rule"] == "seccomp" and told["unshare"]["count"] > 5, f"{result['denials']}")
    result = suite.result([], suite.program, "D2_clone3")
    check(not result["denials"], f"{result['denials']}")
    result = suite.result([], suite.program, "D13_own_filter")
    check({row["op"] for row in result["denials"]} == {"syscall"}, f"{result['denials']}")


MANY = 50000


@everywhere
def I12_refusals_without_end(suite):
    """Each refused call is told to px: px does not grow, counts right, and another box does not wait for it."""
    command = suite.command(["-e", f"A_COUNT={MANY}"], suite.program, "I12_denials", json_result=True)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=suite.environment())
    seen = []

    def watch():
        while process.poll() is None:
            try:
                seen.append(int(fields(process.pid)["VmRSS"][0]) << 10)
            except (OSError, KeyError, IndexError):
                return
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        neighbour = suite.box([], "/bin/echo", "fine")
        check(neighbour.stdout == b"fine\n", f"another box: {shorten(neighbour.stderr)}")
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        watcher.join()
    result = json.loads(out)
    check([(row["target"], row["count"]) for row in result["denials"]] == [("unshare", MANY)], f"{result['denials']}")
    check(len(err) < 1000, f"{len(err)} bytes of messages")
    check(not seen or max(seen) < 16 << 20, f"px grew to {max(seen) >> 10} KiB")


@everywhere
def I12_refusals_of_all_kinds(suite):
    """More kinds than the result has room for: it is full, and whole."""
    result = suite.result([], suite.program, "I12_kinds")
    check(result["status"] == "ok", shorten(str(result["stdout"])))
    check(10 < len(result["denials"]) <= 64 and all(row["count"] > 0 for row in result["denials"]),
          f"{len(result['denials'])} denials")


@everywhere
def F5_hostile_streams_in_report(suite):
    """--report keeps every byte, in a form that no terminal obeys."""
    report = suite.directory("report") / "report.json"
    done = suite.box(["--report", str(report)], "/usr/bin/printf", r"\033[2J\000\377\n")
    check(done.stdout == b"\033[2J\000\377\n", "what is handed on is not what was written")
    data = report.read_bytes()
    check(not any(byte < 0x20 or byte == 0x7f for byte in data.rstrip(b"\n")), "the report holds control bytes")
    check(base64.b64decode(json.loads(data)["stdout_base64"]) == done.stdout, "the report has other bytes")


@test
def C7_policy_is_read_once(suite):
    """Files that made the policy lie in a directory that the box can write: changing them changes nothing."""
    workspace = suite.directory("ws")
    (workspace / "variables").write_text("GIVEN=before\n")
    text = ("printf 'GIVEN=after\\nMORE=1\\n' >/ws/variables; for f in px.toml .px pyproject.toml .pxrc; do echo x >/ws/$f; "
            "done; echo $GIVEN; env -i sh -c 'echo ${MORE-none}'; cat /ws/variables")
    done = suite.box(["-v", f"{workspace}:/ws", "--env-file", str(workspace / "variables"), "-w", "/ws"], "/bin/sh", "-c", text)
    check(done.stdout == b"before\nnone\nGIVEN=after\nMORE=1\n", shorten(done.stdout + done.stderr))
    again = suite.box(["-v", f"{workspace}:/ws", "-w", "/ws"], "/bin/sh", "-c", "echo ${GIVEN-none} ${MORE-none}",
                      cwd=workspace)
    check(again.stdout == b"none none\n", f"something in the workspace was obeyed: {shorten(again.stdout)}")


@test
def C7_twin_env_file(suite):
    file = suite.directory("env") / "variables"
    file.write_text("GIVEN=value\n")
    done = suite.box(["--env-file", str(file)], "/bin/sh", "-c", "echo $GIVEN")
    check(done.stdout == b"value\n", shorten(done.stdout + done.stderr))


@everywhere
def C10_one_thread(suite):
    process, init, _ = suite.running([], suite.program, "H_wait")
    try:
        for pid in (process.pid, init):
            try:
                threads = fields(pid)["Threads"]
            except OSError:
                raise Skipped("its state cannot be read by this caller") from None
            check(threads == ["1"], f"process {pid} has {threads} threads")
    finally:
        process.kill()
        process.communicate()
