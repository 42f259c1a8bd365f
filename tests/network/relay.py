#!/usr/bin/python3
"""network/relay.py [--as UID] [--only NAME...] PX - px-net under attack from its box and from outside, and what clients see of an allow-list.

In the networks of run.py, which see. What is looked at: the attacker gets nowhere, px-net stays within a bound of memory, and a
box beside it works.
"""

import json
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
import run as network  # noqa: E402
from cases import TESTS, Skip, check, test  # noqa: E402
from run import FOUR, GOOD, HELPERS, LIMIT_S, SIX, denial, fails, leaks_of  # noqa: E402

TESTS.clear()                   # those of run.py are its own
RESIDENT_MAX_KB = 48 << 10      # its buffers are the kernel's: what it has itself is tables


def resident_kb():
    found = [0]
    for pid in leaks_of("px-net"):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        found += [int(line.split()[1]) for line in lines if line.startswith("VmRSS:")]
    return max(found)


def attack(world, options, code):
    """(what it said, its result) of an attacker that says `now` in the middle of it; meanwhile px-net is measured and another box works."""
    process = subprocess.Popen([world.px, "--json", "exec", "--timeout", "100s", *GOOD, *options, "-v", f"{world.top}:/mnt:rw", "--", "python3", "-c", HELPERS + code],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=world.top, env=world.environment, text=True)
    world.children.append(process)
    network.until(lambda: (world.top / "now").exists() or process.poll() is not None, "the attack does not get anywhere")
    size = resident_kb()
    (page,), _ = world.python(GOOD, 'say(get("http://good.test/beside"))')
    (world.top / "go").touch()
    out, err = process.communicate(timeout=2 * LIMIT_S)
    check(page == "host=good.test /beside\n", f"another box: {page}")
    result = json.loads(out)
    check(result["status"] == "ok", f"{result['status']}: {result['stderr'][-300:]} {err[-200:]}")
    check(0 < size < RESIDENT_MAX_KB, f"px-net has {size} KiB")
    check(not any("network" in hint for hint in result["hints"]), result["hints"])
    return json.loads(result["stdout"]), result


MIDDLE = """
import os, time
open("/mnt/now", "w").close()
while not os.path.exists("/mnt/go"): time.sleep(0.02)
"""


@test
def ten_thousand_connections(world):
    (tried, held, page), result = attack(world, ("--allow-net", "good.test:7000", "--nofile", "3000"), f"""
held, address = [], socket.getaddrinfo("good.test", 7000, type=socket.SOCK_STREAM)[0][4]
for i in range(10000):
    s = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    s.settimeout(30)
    try: s.connect(address)
    except OSError: continue
    held.append(s)
    if len(held) > 2000: held.pop().close()
{MIDDLE}
for s in held: s.close()
held.clear()
page = get("http://good.test/after")
for _ in range(100):
    if not page.startswith("failed"): break
    time.sleep(0.1); page = get("http://good.test/after")
say(10000, len(held), page)""")
    check(page == "host=good.test /after\n", page)
    check(any(d["rule"] == "limit of the relay" for d in result["denials"]), result["denials"])


@test
def slow_clients(world):
    """Hellos by the byte, requests that never end, connections closed half: each is bounded, and the relay stays small."""
    (page,), _ = attack(world, ("--allow-net", "good.test:7000", "--nofile", "3000"), f"""
held = [socket.create_connection(("good.test", port), timeout=30) for port in (80, 443, 7000) for _ in range(200)]
for i, s in enumerate(held):
    try:
        s.sendall((b"\\x16\\x03\\x01\\x02", b"GET / HTTP/1.1\\r\\nHost: good.test\\r\\nX: " + b"y" * 9000, b"\\0half")[i % 3])
        if i % 3 == 2: s.shutdown(socket.SHUT_WR)
    except OSError: pass
{MIDDLE}
say(get("http://good.test/after"))""")
    check(page == "host=good.test /after\n", page)


@test
def huge_names(world):
    """Answers as large as a datagram, queries as large as a message: bounded, and the next name works."""
    (found, page), _ = attack(world, ("--allow-net", "huge.test"), f"""
found = [resolve("huge.test") for _ in range(20)]
for size in (12, 600, 5000, 65535):
    for _ in range(10):
        try:
            s = socket.create_connection(("10.0.2.3", 53), timeout=30)
            s.sendall(size.to_bytes(2, "big") + b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"\\x3f" + b"n" * (size - 13)); s.settimeout(0.05); s.recv(10)
        except OSError: pass
{MIDDLE}
say(found[0], get("http://good.test/after"))""")
    check(page == "host=good.test /after\n", page)
    check(isinstance(found, str) and found.startswith("failed") or all(a.startswith(("198.18.", "fd70:")) for a in found), found)


@test
def broken_server_names(world):
    if not (world.far / "cert.pem").exists():
        raise Skip("openssl is not installed")
    values, result = world.python(GOOD, """
import ssl
def hello():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try: context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="good.test").do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
def changed(back, new):
    data = bytearray(hello()); at = data.index(b"good.test") - back
    data[at:at + len(new)] = new
    return bytes(data)
broken = [changed(0, b"good.tes\\0"), changed(0, b"good,test"), changed(0, b"evil.test"), changed(0, b"good..est"), changed(0, b"\\xff" * 9),
          changed(2, b"\\xff\\xff"), changed(2, b"\\0\\0"), changed(2, b"\\0\\4"), changed(5, b"\\xff\\xff"), changed(5, b"\\0\\1")]
say(*(raw("good.test", 443, data) for data in broken), raw("good.test", 443, hello())[:1])""")
    for number, value in enumerate(values[:-1]):
        fails(value, f"hello {number}")
    check(values[-1] == "\x16", f"a good hello: {values[-1]!r}")
    check(sum(d["count"] for d in result["denials"]) == len(values) - 1, result["denials"])


@test
def other_protocols_with_a_list(world):
    """UDP to the very address of a permitted name, and elsewhere, over both kinds; echo requests; another port; each is told."""
    values, result = world.python(GOOD, f"""
four, six = [a for a in resolve("good.test") if "." in a][0], [a for a in resolve("good.test") if ":" in a][0]
def send(to, port):
    return try_to(lambda: socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (to, port)) and "sent")
def ping(family, to, protocol): return try_to(lambda: socket.socket(family, socket.SOCK_DGRAM, protocol).sendto(bytes(8), (to, 0)) and "sent")
say(four, six, send(four, 443), send(six, 443), send("{FOUR}", 443), send("{SIX}", 443), ping(socket.AF_INET, four, socket.IPPROTO_ICMP),
    ping(socket.AF_INET6, six, socket.IPPROTO_ICMPV6), raw(four, 22), raw("{SIX}", 443))""")
    four, six, *tries = values
    for value in tries:
        fails(value, "it was sent")
    for target in (f"udp {four}:443", f"udp [{six}]:443", f"udp {FOUR}:443", f"udp [{SIX}]:443"):
        check(denial(result, "send", target)["rule"] == "only TCP and name queries", result["denials"])
    check(denial(result, "connect", "good.test:22")["grant"] == "--allow-net good.test:22", result["denials"])
    check(denial(result, "connect", f"[{SIX}]:443")["rule"] == "allow-net", result["denials"])


if __name__ == "__main__":
    sys.exit(network.main("network/relay.py", ("network/relay.py",)))
