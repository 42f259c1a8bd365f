"""How it is measured: rows in turns, launchers side by side, boxes side by side."""
import contextlib
import ctypes
import os
import random
import re
import signal
import statistics
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
NULL = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Launcher:
    """A process that answers the requests of bench.h; ends when its standard input does."""

    def __init__(self, row, site, threads=1):
        command = row.command if row.serves else [site.launch, *row.command]
        if row.threads:
            command = [*command[:2], "-j", str(threads), *command[2:]]
        self.process = subprocess.Popen([*row.prefix, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, bufsize=1)

    def ask(self, request):
        self.process.stdin.write(request + "\n")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise OSError("the launcher ended")
        return [int(word) for word in line.split()]

    def several(self, times):
        self.ask(f"run {times}")
        return [self.answer() for _ in range(times)]

    def once(self):
        return self.several(1)[0]

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def complaint(row):
    """The first words of a command that fails, so that the table says more than a number."""
    command = [*row.prefix, *(word.replace("{i}", "bench-complaint") for word in row.command)]
    try:
        result = subprocess.run(command, input=b"run 1\n" if row.serves else b"", capture_output=True, timeout=10,
                                check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    text = result.stderr.decode(errors="replace").strip().splitlines()
    return text[0][:100] if text else f"exit status {result.returncode}"


def warm(launcher, row):
    """Three runs that are not counted. Leaves a note on the row if it does not work."""
    try:
        statuses = [launcher.once()[1] for _ in range(3)]
    except OSError:
        statuses = [1]
    if statuses[-1] != 0:
        row.note = "fails: " + complaint(row)
    return not row.note


@contextlib.contextmanager
def launchers(rows, site, each=1):
    """{row's name: its launchers} of the rows that work."""
    with contextlib.ExitStack() as stack:
        ready = {}
        for row in rows:
            if row.note:
                continue
            made = [Launcher(row, site, each)] if row.threads else [Launcher(row, site) for _ in range(each)]
            for launcher in made:
                stack.callback(launcher.close)
            if warm(made[0], row):
                ready[row.name] = made
        yield ready


def latency(rows, site, rounds, times=1):
    """Every row once a round (or so many times in a row), in an order that changes: what one row leaves to the kernel to
    clean up falls on all the others alike. Returns {name: ([nanoseconds], failed)}."""
    order_of = random.Random(1)
    with launchers(rows, site) as ready:
        samples = {name: [] for name in ready}
        failed = dict.fromkeys(ready, 0)
        for _ in range(rounds):
            for name in order_of.sample(list(ready), len(ready)):
                for nsec, status in ready[name][0].several(times):
                    if status == 0:
                        samples[name].append(nsec)
                    else:
                        failed[name] += 1
    return {name: (samples[name], failed[name]) for name in samples}


def slice_rate(made, msec):
    """Good runs a second of these launchers side by side."""
    for launcher in made:
        launcher.ask(f"for {msec}")
    answers = [launcher.answer() for launcher in made]
    return sum((runs - failed) * 1e9 / nsec for runs, failed, nsec in answers)


def throughput(rows, site, jobs, slices, msec):
    """{name: runs a second}, the median of slices that take turns."""
    order_of = random.Random(jobs)
    with launchers(rows, site, jobs) as ready:
        rates = {name: [] for name in ready}
        for _ in range(slices):
            for name in order_of.sample(list(ready), len(ready)):
                rates[name].append(slice_rate(ready[name], msec))
                time.sleep(0.2)     # network namespaces are freed after the fact, by the kernel's own workers
    return {name: statistics.median(values) for name, values in rates.items()}


def descendants():
    """Of this process, which is their subreaper: a supervisor that detaches itself stays among them."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                parents[int(pid)] = int(file.read().rsplit(")", 1)[1].split()[1])
    found, fresh = set(), {os.getpid()}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh}
        found |= fresh
    return found


def split_payload(payload):
    """(the payloads, the processes that supervise them)"""
    wanted = "\0".join(payload).encode() + b"\0"
    inside, outside = [], []
    for pid in descendants():
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                (inside if file.read() == wanted else outside).append(pid)
    return inside, outside


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        found = re.search(r"^Pss:\s+(\d+)", file.read(), re.MULTILINE)
    return int(found.group(1)) if found else 0


def kill_all(pids):
    for pid in pids:
        with contextlib.suppress(OSError):      # gone already, or another user's: its supervisor ends it
            os.kill(pid, signal.SIGKILL)


def end_boxes(started, payload):
    """Payloads first, so that supervisors end as they would in life; then whatever is left. All by id, all reaped."""
    kill_all(split_payload(payload)[0])
    deadline = time.monotonic() + 10
    for process in started:
        try:
            process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    deadline = time.monotonic() + 10
    while (left := descendants()) and time.monotonic() < deadline:
        kill_all(left)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        time.sleep(0.02)


def memory(row, payload, count):
    """Supervisors' memory with this many boxes at once: {pss_kib, processes}, each per box."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = []
    try:
        for _ in range(count):
            started.append(subprocess.Popen(row.command, start_new_session=True, **NULL))
        deadline = time.monotonic() + 30
        while len(split_payload(payload)[0]) < count and time.monotonic() < deadline:
            if any(process.poll() is not None for process in started):
                break               # a box that is gone already will not come back
            time.sleep(0.2)
        time.sleep(0.5)             # the last of them settle
        inside, outside = split_payload(payload)
        if len(inside) < count:
            row.note = f"fails: only {len(inside)} of {count} boxes run"
            return None
        return {"pss_kib": sum(map(pss_kib, outside)) / count, "processes": len(outside) / count}
    except OSError as error:
        row.note = "needs root to read it" if isinstance(error, PermissionError) else f"fails: {error}"
        return None
    finally:
        end_boxes(started, payload)


def living(row, count):
    """Boxes that stay, all of one engine: what they take, engine and pid 1 of each, and how fast they come. The program
    that uses them is counted by itself."""
    process = subprocess.Popen(row.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        words = process.stdout.readline().split()
        if len(words) != 2 or int(words[1]) != count:
            row.note = f"fails: {words[1] if len(words) == 2 else 0} of {count} boxes answer"
            return None
        supervisors = [pid for pid in descendants() if pid != process.pid]
        return {"pss_kib": sum(map(pss_kib, supervisors)) / count, "processes": len(supervisors) / count,
                "user_kib": pss_kib(process.pid) / count, "per_s": count * 1e9 / int(words[0])}
    except OSError as error:
        row.note = "needs root to read it" if isinstance(error, PermissionError) else f"fails: {error}"
        return None
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def steps_table(px, payload, runs=21):
    """What each step of a start cost: of several tables the one whose sum is in the middle, as px prints it."""
    tables = []
    for _ in range(runs):
        result = subprocess.run([px, "exec", "--timings", "--", *payload], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=30, check=False)
        if result.returncode == 0:
            numbers = re.findall(r"^\s+\S.*?\s([\d.]+)\s*$", result.stderr, re.MULTILINE)
            tables.append((sum(map(float, numbers)), result.stderr))
    return sorted(tables)[len(tables) // 2][1] if tables else ""
