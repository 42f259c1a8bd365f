"""Sections H and I with a hand on the host: how a box ends, and what it may use until then."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from suite import (LIMIT, Failed, Skipped, check, children, ended, everywhere, fields, landlock_only, marked, needs_root, shorten,
                   test)


# ---- H: life and death ----------------------------------------------------------------------------------------------


@everywhere
def H1_daemon(suite):
    mark = suite.mark()
    done = suite.box([], suite.program, "H1_daemon", mark)
    left = marked(mark)
    check(done.returncode == 0 and not left, f"exit status {done.returncode}, {len(left)} processes outlive the box")


@everywhere
def H1_nohup(suite):
    mark = suite.mark()
    suite.box([], "/bin/sh", "-c", f"nohup setsid sh -c 'sleep 50; : {mark}' >/dev/null 2>&1 & sleep 0.1")
    check(not marked(mark), "a process outlives the box")


@everywhere
def H2_px_killed(suite):
    for options in ([], ["-m", "64m"] if suite.root else ["--net", "loopback"]):
        mark = suite.mark()
        process, _, _ = suite.running(options, suite.program, "H2_daemons", mark)
        check(len(marked(mark)) >= 7, "the daemons are not there")
        process.kill()
        process.communicate()
        left = ended(mark)
        check(not left, f"{left} processes live on after px was killed")


@everywhere
def H2_px_killed_stopped(suite):
    mark = suite.mark()
    process, _, _ = suite.running([], suite.program, "H4_stopped", mark)
    process.kill()
    process.communicate()
    check(not ended(mark), "stopped processes live on after px was killed")


@everywhere
def H5_px_killed_during_start(suite):
    """kill -9 at many moments of the start, also before pid 1 has its orders: nothing may be left waiting for ever."""
    mark = suite.mark()
    options = [] if suite.landlock else ["-v", f"{suite.directory('ws')}:/ws"]
    for step in range(120):
        process = suite.start(options, suite.program, "H_wait", mark,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep((step % 60) * 0.00005)
        process.kill()
        process.wait()
    left = ended(mark)
    check(not left, f"{left} half-made boxes are left waiting for ever")


@test
def H2_cgroup_swept(suite):
    needs_root(suite)
    process, init, _ = suite.running(["-m", "64m"], suite.program, "H_wait")
    name = re.search(r"px-[0-9a-f]+", Path(f"/proc/{init}/cgroup").read_text())
    process.kill()
    process.communicate()
    check(name, "the box has no cgroup")

    def left():
        return [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{name.group()}")]

    for _ in range(50):         # the group is busy until its last process is reaped
        suite.box(["-m", "64m"], "/bin/true")
        if not left():
            return
        time.sleep(0.1)
    raise Failed(f"{left()} are left")


@everywhere
def H3_term_ignored(suite):
    mark = suite.mark()
    process, _, _ = suite.running([], suite.program, "H3_ignore", mark)
    process.terminate()
    process.communicate(timeout=LIMIT)
    check(process.returncode == 137 and not marked(mark),
          f"exit status {process.returncode}, {len(marked(mark))} left")


@everywhere
def H3_timeout(suite):
    ends_in_time(suite, "H3_ignore", "H2_daemons")


@everywhere
def H4_timeout(suite):
    ends_in_time(suite, "H4_hop", "H4_stopped")


def ends_in_time(suite, *rows):
    for row in rows:
        mark = suite.mark()
        done = suite.box(["--timeout", "250ms"], suite.program, row, mark)
        left = marked(mark)
        check(done.returncode == 124 and not left, f"{row}: exit status {done.returncode}, {len(left)} left")


@test
def H4_hop_cgroup(suite):
    needs_root(suite)
    mark = suite.mark()
    done = suite.box(["--timeout", "250ms", "-m", "128m"], suite.program, "H4_hop", mark)
    check(done.returncode == 124 and not marked(mark), f"exit status {done.returncode}")


@everywhere
def H6_pipe_held(suite):
    mark = suite.mark()
    done = suite.box([], suite.program, "H6_pipe_held", mark)
    check(done.returncode == 0 and not marked(mark), f"exit status {done.returncode}")


@everywhere
def H6_pipe_held_json(suite):
    result = suite.result([], suite.program, "H6_pipe_held")
    check(result["status"] == "ok", result["status"])


@everywhere
def H10_timeout_races_exit(suite):
    for _ in range(30):
        result = suite.result(["--timeout", "20ms"], "/bin/sleep", "0.012")
        answer = (result["status"], result["exit_code"], result["timed_out"])
        check(answer in (("ok", 0, False), ("timeout", 124, True)), f"a mixed answer: {answer}")


@everywhere
def H13_forged_verdict(suite):
    done = suite.box([], suite.program, "H13_forge", json_result=True)
    result = json.loads(done.stdout)
    check((result["status"], result["exit_code"], done.returncode) == ("nonzero", 3, 3),
          f"{result['status']} {result['exit_code']} {done.returncode}")


@test
def H13_start_failure_forged(suite):
    """A payload that ran must not be able to make px say that it never started."""
    for _ in range(30):
        done = suite.box([], suite.program, "H13_starve_init")
        check(done.returncode != 125, f"the payload ran, and px answers: {shorten(done.stderr)}")


@everywhere
def H13_twin_status(suite):
    for code in (0, 1, 42, 255):
        check(suite.box([], "/bin/sh", "-c", f"exit {code}").returncode == code, f"status {code} did not come out")
    check(suite.box([], "/bin/sh", "-c", "kill -TERM $$").returncode == 143, "the signal did not come out")


@test
def H9_never_by_number(suite):
    """px ends boxes where kill, tkill and tgkill are refused to it: it knows processes by descriptors alone."""
    for number in ("62", "200", "234"):
        mark = suite.mark()
        done = suite.box(["--timeout", "1s"], suite.program, "H2_daemons", mark,
                         prefix=(suite.bin / "fault", number, "1"))
        check(done.returncode == 124 and not marked(mark), f"call {number}: exit status {done.returncode}")


def timer_clocks(pid):
    clocks = []
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        text = Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
        clocks += re.findall(r"^clockid: (\d+)$", text, re.M)
    return clocks


@test
def H11_clock_jump(suite):
    """The deadline is on a clock that nobody can set: number 7 is CLOCK_BOOTTIME."""
    needs_root(suite)           # px is not dumpable, so nobody else can look
    process, _, _ = suite.running(["--timeout", "50s"], suite.program, "H_wait")
    try:
        check(timer_clocks(process.pid) == ["7"], f"timers run on clocks {timer_clocks(process.pid)}")
    finally:
        process.kill()
        process.communicate()


@test
def H12_suspend(suite):
    """A clock that counts the time asleep: an offset in a time namespace stands in for it, the timeout is the same."""
    needs_root(suite)
    prefix = ("unshare", "--time", "--boottime", "1000000", "--fork")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        raise Skipped("no time namespace can be made")
    result = suite.result(["--timeout", "300ms"], "/bin/sleep", "30", prefix=prefix)
    check(result["timed_out"], f"{result['status']} after {result['wall_s']} s")
    result = suite.result(["--timeout", "30s"], "/bin/true", prefix=prefix)
    check(result["status"] == "ok", result["status"])


@test
def H14_frozen(suite):
    """A process that cannot die: px gives up after its bound and says so, and never calls it a success."""
    needs_root(suite)
    freezer = Path("/sys/fs/cgroup/freezer")
    if not (freezer / "cgroup.procs").exists():
        raise Skipped("there is no freezer (cgroup v1) to hold a process with")
    group = freezer / f"{os.environ.get('PX_TEST_RUN', 'px')}-frozen-{os.getpid()}"
    process, init, payload = suite.running([], suite.program, "H_wait")
    try:
        group.mkdir()
        for pid in (payload, init):
            (group / "cgroup.procs").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        end = time.monotonic() + LIMIT
        while (group / "freezer.state").read_text() != "FROZEN\n":
            check(time.monotonic() < end, "it does not freeze")
            (group / "freezer.state").write_text("FROZEN")
        process.terminate()
        _, err = process.communicate(timeout=LIMIT + 30)
        check(process.returncode == 125 and b"PX021" in err, f"exit status {process.returncode}: {shorten(err)}")
    except OSError as error:
        raise Skipped(f"the freezer cannot be used: {error}") from None
    finally:
        thaw(group)
        process.kill()
        process.communicate()


def thaw(group):
    try:
        (group / "freezer.state").write_text("THAWED")
    except OSError:
        pass
    for _ in range(400):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


@test
def C5_init_killed(suite):
    """The one helper that a box has is pid 1: with it goes the box, and the answer is no success."""
    mark = suite.mark()
    process, init, _ = suite.running([], suite.program, "H2_daemons", mark)
    try:
        fd = os.pidfd_open(init)
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        os.close(fd)
    except PermissionError:
        process.kill()
        process.communicate()
        raise Skipped("this caller may not signal pid 1") from None
    process.communicate(timeout=LIMIT)
    left = ended(mark)
    check(process.returncode != 0 and not left, f"exit status {process.returncode}, {left} processes left")


# ---- I: limits ------------------------------------------------------------------------------------------------------


@test
def I2_no_cgroup_fails_closed(suite):
    if suite.root:
        raise Skipped("root has cgroups")
    for preset in (["-m", "64m"], ["--cpus", "0.5"], ["--preset", "untrusted"]):
        done = suite.box(preset, "/bin/echo", "RAN", json_result=True)
        if done.returncode == 0:
            check("memory=cgroup" in done.stdout.decode() or "cpus=cgroup" in done.stdout.decode(),
                  f"{preset}: ran without the limit")
        else:
            check(done.returncode == 125 and b"RAN" not in done.stdout, f"{preset}: exit status {done.returncode}")


@test
def I2_verdict(suite):
    """Who is ended for memory is told so, every time."""
    needs_root(suite)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:     # several at once: who is faster differs then
        run = lambda _: suite.result(["-m", "64m"], suite.program, "I2_anonymous")  # noqa: E731
        results = list(pool.map(run, range(24)))
    for result in results:
        hit = [hit["limit"] for hit in result["limits_hit"]]
        check(result["status"] == "memory" and result["oom_killed"] and "memory" in hit,
              f"status {result['status']}, oom_killed {result['oom_killed']}, limits_hit {result['limits_hit']}")


@test
def I3_disk_bind(suite):
    """--disk speaks of all writable directories: a writable bind is watched, and the box ended."""
    result = suite.result(["--disk", "16m", "-v", f"{suite.directory('ws')}:/ws"], suite.program,
                          "I3_disk_bind")
    check(result["status"] == "disk" and result["limits_hit"][0]["limit"] == "disk",
          f"status {result['status']}: {shorten(result['stdout'])}")


@landlock_only
def I9_others(suite):
    """Without namespaces the processes around a box have its id; it changes none of them."""
    done = suite.box([], suite.program, "I9_others")
    check(done.returncode == 0, f"exit status {done.returncode}: {shorten(done.stdout + done.stderr)}")


def in_memory(suite):
    """A directory of its own in /dev/shm, whose free space few others change."""
    if not os.access("/dev/shm", os.W_OK) or shutil.disk_usage("/dev/shm").free < 512 << 20:
        raise Skipped("no room in /dev/shm")
    return tempfile.TemporaryDirectory(prefix="px-attack-", dir="/dev/shm")


@test
def I3_disk_hidden(suite):
    """Files without a name count whoever holds them: a descriptor, a mapping, a socket, a thread with a table of its own."""
    for way in ("plain", "mmap", "scm", "thread"):
        with in_memory(suite) as ws:
            result = suite.result(["--disk", "8m", "-e", f"A_WAY={way}", "-v", f"{ws}:/ws"], suite.program, "I3_disk_hidden")
        check(result["status"] == "disk" and result["limits_hit"][0]["limit"] == "disk",
              f"{way}: status {result['status']}: {shorten(result['stdout'])}")


@test
def I3_twin_disk_of_others(suite):
    """Who fills the same file system beside a box that keeps to its bound does not end the box."""
    script = "head -c 1m /dev/zero >/ws/own; echo ready; while [ ! -e /ws/done ]; do sleep 0.1; done; echo finished"
    ws, other = suite.directory("ws"), suite.directory("other")
    process = suite.start(["--disk", "8m", "-v", f"{ws}:/ws"], "sh", "-c", script)
    try:
        check(process.stdout.readline() == b"ready\n", "the box did not start")
        (other / "file").write_bytes(b"x" * (48 << 20))
        time.sleep(1)                                          # several looks; fewer would only show less
        (ws / "done").touch()
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.wait()
        (other / "file").unlink(missing_ok=True)
    check(process.returncode == 0 and out == b"finished\n", f"exit status {process.returncode}: {shorten(out + err)}")


def resident(pid):
    return int(fields(pid)["VmRSS"][0]) << 10


def sample(process, seconds=LIMIT):
    """The supervisor's memory while its box floods, from its first answers to its last."""
    seen, end = [], time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        try:
            seen.append(resident(process.pid))
        except (OSError, KeyError):
            break
        time.sleep(0.003)
    return seen


@everywhere
def I7_flood(suite):
    for json_result in (False, True):
        command = suite.command(("--output-limit", "256k") if json_result else (), suite.program,
                                "I7_flood", json_result=json_result)
        with open(os.devnull, "wb") as null:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=null, stderr=null,
                                       env=suite.environment())
            seen = sample(process)
        check(process.wait(timeout=LIMIT) == 0, f"exit status {process.returncode}")
        check(len(seen) > 3, "the flood was over before it could be watched")
        check(max(seen) < 24 << 20, f"px grew to {max(seen) >> 20} MiB")


@everywhere
def I7_flood_kept_whole(suite):
    """What px keeps is what the limit says, head and tail, whatever the box writes."""
    result = suite.result(["--output-limit", "64k"], suite.program, "I7_flood")
    told = result["truncated"]
    check(len(result["stdout"]) < 300000 and told["stdout"] and told["stdout_bytes"] >= 100 << 20,
          f"{len(result['stdout'])} kept of {told}")


@everywhere
def I7_unread(suite):
    """Nobody reads: the box ends at its time all the same, and px does not grow."""
    mark = suite.mark()
    process = suite.start(["--timeout", "400ms"], suite.program, "I7_flood", mark)
    try:
        process.stdout.read(1)  # it runs
        end = time.monotonic() + 10
        while time.monotonic() < end and children(process.pid):
            time.sleep(0.02)
        check(not children(process.pid), "the box lives on because nobody reads")
        check(resident(process.pid) < 24 << 20, "px grew")
    finally:
        process.stdout.close()
        process.stderr.close()
    check(process.wait(timeout=LIMIT) == 124, f"exit status {process.returncode}")


@everywhere
def I7_end_at_limit(suite):
    result = suite.result(["--output-limit", "64k", "--output-end"], suite.program, "I7_flood")
    check(result["status"] == "output" and len(result["stdout"]) <= 65536,
          f"{result['status']}, {len(result['stdout'])} bytes")


@everywhere
def I8_endless(suite):
    check(suite.box(["--timeout", "200ms"], suite.program, "I8_spin").returncode == 124, "no timeout")
    done = suite.box(["--cpu-time", "1s"], suite.program, "I8_spin")
    check(done.returncode in (128 + signal.SIGXCPU, 137), f"processor time: exit status {done.returncode}")


@test
def I11_deep(suite):
    workspace = suite.directory("ws")
    suite.row("I11_deep", ["-v", f"{workspace}:/ws"])
    check(not (workspace / ".px-hoisted-0").exists(), "px moved directories of the caller's tree")


@everywhere
def I12_denials(suite):
    done = suite.box([], suite.program, "I12_denials")
    check(done.returncode == 0 and len(done.stderr) < 1000,
          f"exit status {done.returncode}, {len(done.stderr)} bytes of messages")
