#!/usr/bin/python3
"""network/pasta.py [--as UID] [--only NAME...] PX - what a box reaches by --net outbound:pasta, and what it does not.

In the networks of run.py, which see. pasta opens /dev/net/tun as an id without rights: where the host's node does not let it,
the test makes one of its own, in a mount namespace of its own. Skips where pasta is not installed or neither can be opened.
"""

import ctypes

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
import run as network  # noqa: E402
from cases import TESTS, Skip, check, test  # noqa: E402
from run import DNS, FOUR, HELPERS, LIMIT_S, SERVER, SIX, fails, free_port, greet_all, page_at, until  # noqa: E402

TESTS.clear()                   # those of run.py are its own
PASTA = ("--net", "outbound:pasta", *DNS)
DATAGRAMS = """
def ask(host, port, data=b"ping", kind=socket.SOCK_DGRAM, protocol=0, wait=10):
    def act():
        family, _, _, _, to = socket.getaddrinfo(host, port)[0]
        s = socket.socket(family, kind, protocol); s.settimeout(wait); s.connect(to); s.send(data)
        return s.recv(2048).decode("latin-1")
    return try_to(act)
def echo(host):
    six = ":" in host
    got = ask(host, 0, (b"\\x80" if six else b"\\x08") + bytes(7) + b"echoed", protocol=socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP)
    return got[8:] if not got.startswith("failed") else got
"""


def python(world, options, code):
    return world.python(options, DATAGRAMS + code)


def tun_refuses():
    """Why an id without rights cannot open /dev/net/tun; "" if it can."""
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"] if os.geteuid() == 0 else []
    code = "import os\ntry: os.open('/dev/net/tun', os.O_RDWR)\nexcept OSError as error: print(error.strerror)"
    done = subprocess.run([*drop, "/usr/bin/python3", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or ("" if done.returncode == 0 else done.stderr.strip()[-200:] or f"exit {done.returncode}")


def make_tun():
    """A node that every id can open, in a mount namespace that this process and its children alone have."""
    why = tun_refuses()
    if not why or not os.path.isdir("/dev/net") or ctypes.CDLL(None, use_errno=True).unshare(0x20000) < 0:
        return
    for words in (("mount", "--make-rprivate", "/"), ("mount", "-t", "tmpfs", "-o", "mode=755", "px-test", "/dev/net"),
                  ("mknod", "-m", "666", "/dev/net/tun", "c", "10", "200")):
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            return


def usable():
    if not shutil.which("pasta"):
        raise Skip("pasta is not installed")
    why = tun_refuses()
    if why:
        raise Skip(f"an id without rights cannot open /dev/net/tun: {why}")


def case(function):
    def run(world):
        usable()
        function(world)
    run.__name__ = function.__name__
    return test(run)


def helpers():
    """Processes of px-pasta and pasta below this test: it is the one that orphans come to."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = Path(f"/proc/{entry}/stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except (OSError, IndexError):
            continue
        if name[0] in ("px-pasta", "pasta", "pasta.avx2", "passt", "passt.avx2") and name[1].split()[0] != "Z" and descends(entry):
            found.append(int(entry))
    return found


def descends(pid):
    while pid not in ("0", "1"):
        if int(pid) == os.getpid():
            return True
        try:
            pid = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            return False
    return False


# ---- what passes ------------------------------------------------------------------------------------------------------


@case
def all_protocols_pass(world):
    values, result = python(world, PASTA, f"""
big = ask("{FOUR}", 7004, b"x" * 1200)
say(get("http://good.test/p"), get("http://{FOUR}/four"), get("http://[{SIX}]/six"), ask("{FOUR}", 7004), ask("{SIX}", 7004), len(big),
    echo("{FOUR}"), echo("{SIX}"))""")
    check(values[:3] == ["host=good.test /p\n", f"host={FOUR} /four\n", f"host=[{SIX}] /six\n"], values)
    check(values[3:6] == ["ping", "ping", 1200], values)
    check(values[6:] == ["echoed", "echoed"], values)
    isolation = result["isolation"]
    check("net=pasta, fenced" in isolation["mechanisms"] and any(m.startswith("net: pasta") for m in isolation["missing"]), isolation)
    check(any(m.startswith("denials: pasta") for m in isolation["missing"]) and "network" not in result, isolation)


@case
def last_words_arrive(world):
    log = world.far / "swallowed"
    before = log.read_text().splitlines() if log.exists() else []
    python(world, PASTA, 'socket.create_connection(("good.test", 7003)).sendall(b"z" * 200000); say(1)')
    until(lambda: log.exists() and log.read_text().splitlines()[len(before):] == ["200000"], "the last bytes were lost")


@case
def boxes_that_stay(world):
    world.run("box", "start", "--name", "p", *PASTA)
    for _ in range(2):
        done = world.run("box", "exec", "p", "--", "python3", "-c", HELPERS + DATAGRAMS + f'say(ask("{FOUR}", 7004), get("http://good.test/s"))')
        check(json.loads(done.stdout) == ["ping", "host=good.test /s\n"], done.stdout)
    shown = json.loads(world.run("--json", "box", "show", "p").stdout)
    check(shown["denials"] == [], shown["denials"])
    world.run("box", "stop", "p")
    until(lambda: not helpers(), f"pasta outlives its box: {helpers()}")


@case
def ports_are_published(world):
    port, taken = free_port(), free_port()
    process = world.spawn("exec", *PASTA, "-p", f"{port}:8080", "--", "python3", "-c", SERVER.replace("PORT", "8080"))
    until(lambda: page_at("127.0.0.1", port) == "box /p", "the port of the box is not reached")
    check(page_at("203.0.113.1", port) == "", "it is published on every address")
    process.terminate()
    process.wait(LIMIT_S)
    until(lambda: page_at("127.0.0.1", port) == "", "the port outlives the box")
    with socket.create_server(("127.0.0.1", taken)):
        done = world.run("exec", *PASTA, "-p", f"{taken}:80", "--", "echo", "RAN", status=125)
        check("PX501" in done.stderr and "RAN" not in done.stdout, done.stderr)


# ---- what does not ------------------------------------------------------------------------------------------------------


@case
def host_loopback_is_closed(world):
    """By every name it could have, also for those who tie a socket to the device; and open by option, at one address."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        port = listener.getsockname()[1]
        threading.Thread(target=greet_all, args=(listener,), daemon=True).start()
        datagrams.bind(("0.0.0.0", port))
        datagrams.settimeout(0.2)
        code = f"""
def tied(host, kind):
    def act():
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind); s.settimeout(0.7)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"px0")
        s.connect((host, {port})); s.send(b"x")
        return s.recv(100).decode() if kind == socket.SOCK_STREAM else "sent"
    return try_to(act)
places = ("10.0.2.2", "127.0.0.1", "127.9.9.9", "203.0.113.1", "::1", "::ffff:127.0.0.1", "fd70:78:1::2", "2001:db8:1::1", "10.0.2.3")
out = [[place, raw(place, {port}, b"x") if place not in ("10.0.2.2", "10.0.2.3", "fd70:78:1::2") else tied(place, socket.SOCK_STREAM),
        tied(place, socket.SOCK_STREAM), ask(place, {port}, wait=0.3), tied(place, socket.SOCK_DGRAM)] for place in places]
say(*out)"""
        values, _ = python(world, PASTA, code)
        for place, *tries in values:
            for value in tries:
                check(value.startswith("failed") or value == "sent", f"{place}: {value}")
        try:
            check(False, f"the host got {datagrams.recvfrom(100)}")
        except TimeoutError:
            pass
        values, _ = python(world, (*PASTA, "--allow-host-loopback"), code)
        check(values[0][1] == "the host\n", f"the host's loopback, opened: {values[0]}")
        for place, *tries in values[1:]:
            check("the host\n" not in tries, f"more than 10.0.2.2: {place} {tries}")


@case
def what_is_not_open(world):
    """Private, metadata, shared, the host's own: refused at once, whatever name led there."""
    places = ["169.254.169.254", "10.9.9.9", "192.168.1.1", "172.16.0.1", "100.64.0.1", "203.0.113.1", "fd00:ec2::254", "fe80::1%px0", "2001:db8:1::1",
              "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "private.test", "meta.test", "own.test", "224.0.0.1"]
    values, _ = python(world, PASTA, f"""
say(*([place, ask(place, 80, kind=socket.SOCK_STREAM, wait=3), ask(place, 80, wait=0.3)] for place in {[p for p in places if not p.startswith("fe80")]!r}))""")
    for place, stream, datagram in values:
        check(stream.startswith("failed: Permission denied") and datagram.startswith("failed"), f"{place}: {stream}, {datagram}")
    values, _ = python(world, PASTA, f'say(ask("fe80::1%px0", 80, wait=1), ask("255.255.255.255", 80, wait=1), ask("{FOUR}", 7004))')
    check(values[0].startswith("failed") and values[1].startswith("failed") and values[2] == "ping", values)


@case
def the_fence_stays(world):
    values, _ = python(world, PASTA, """
import subprocess
def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    return "done" if done.returncode == 0 else "failed: " + done.stderr
say(ip("route", "del", "prohibit", "10.0.0.0/8"), ip("link", "set", "px0", "down"), try_to(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW) and "made"),
    try_to(lambda: open("/dev/net/tun", "rb") and "opened"))""")
    for value in values:
        fails(value, "the network was changed")


@case
def what_pasta_cannot_do(world):
    for words in (("--allow-net", "good.test"), ("--deny-net", "good.test"), ("--host-port", "80"), ("--dns", "127.0.0.53"), ("--publish", "203.0.113.1:8080:80")):
        done = world.run("exec", "--net", "outbound:pasta", *words, "--", "echo", "RAN", status=125)
        check(done.stderr.startswith("PX001") and words[0] in done.stderr and "RAN" not in done.stdout, f"{words}: {done.stderr[:300]}")


# ---- its end ------------------------------------------------------------------------------------------------------------


@case
def pasta_ends_with_the_box(world):
    """However the box, px or px-pasta ends."""
    def sleeper(*options):
        process = world.spawn("exec", *PASTA, *options, "--", "sleep", "1000")
        until(lambda: len(helpers()) == 2, f"there is no pasta: {helpers()} {process.poll()}")
        return process
    process = sleeper()
    process.kill()
    process.wait()
    until(lambda: not helpers(), f"pasta outlives px: {helpers()}")
    process = sleeper("--timeout", "1s")
    process.communicate(timeout=LIMIT_S)
    check(not helpers(), f"pasta outlives its box: {helpers()}")
    process = sleeper()
    time.sleep(0.5)             # it is up, and not being made
    for pid in leaks_of_any("px-pasta"):
        os.kill(pid, 9)
    until(lambda: not helpers(), f"pasta outlives px-pasta: {helpers()}")
    check(process.poll() is None, "the box has ended with its network")
    process.terminate()
    process.communicate(timeout=LIMIT_S)


def leaks_of_any(name):
    return [pid for pid in helpers() if Path(f"/proc/{pid}/stat").read_text().split("(", 1)[1].startswith(name + ")")]


@case
def limits_hold_pasta(world):
    if os.getuid() != 0:
        raise Skip("an ordinary user has no control group here")
    values, result = python(world, (*PASTA, "--memory", "64m", "--pids", "1"), f'say(ask("{FOUR}", 7004))')
    check(values == ["ping"] and result["status"] == "ok", values)
    process = world.spawn("exec", *PASTA, "--memory", "64m", "--", "sleep", "1000")
    until(lambda: len(helpers()) == 2, f"there is no pasta: {helpers()}")
    time.sleep(0.1)
    for pid in helpers():
        held = Path(f"/proc/{pid}/cgroup").read_text()
        check("/px-" in held, f"{pid} is in no group of the box: {held}")
    process.terminate()
    process.communicate(timeout=LIMIT_S)


if __name__ == "__main__":
    sys.exit(network.main("network/pasta.py", ("network/pasta.py",), make_tun))
