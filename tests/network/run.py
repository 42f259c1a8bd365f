#!/usr/bin/python3
"""network/run.py [--as UID] [--only NAME...] PX - what a box reaches of the network, and what it does not.

No outside is needed: px runs in a network namespace of this test's own, joined by a cable to another one in which the servers of
servers.py live (203.0.113.10, 2001:db8:1::10, a name server at 203.0.113.53). Making these needs root; px itself then runs as
root or as the user of --as. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
import leaks  # noqa: E402
from cases import TESTS, Skip, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402

LIMIT_S = 60
DNS = ("--dns", "203.0.113.53")
GOOD = (*DNS, "--allow-net", "good.test")
OPEN = ("--net", "outbound", *DNS)
FOUR, SIX = "203.0.113.10", "2001:db8:1::10"

# What the programs in the boxes share: get() one answer of a web server, try_to() what a call says.
HELPERS = """
import json, socket, sys, urllib.request
def try_to(act):
    try: return act()
    except OSError as error: return "failed: " + (error.strerror or str(error))
def get(url): return try_to(lambda: urllib.request.urlopen(url, timeout=30).read().decode())
def raw(host, port, data=b"GET /raw HTTP/1.0\\r\\n\\r\\n"):
    def act():
        s = socket.create_connection((host, port), timeout=30)
        s.sendall(data); got = s.recv(100)
        return got.decode("latin-1") if got else "failed: closed"
    return try_to(act)
def resolve(name):
    return try_to(lambda: sorted({r[4][0] for r in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)}))
def say(*values): print(json.dumps(values))
"""


def until(condition, why):
    end = time.monotonic() + LIMIT_S
    while not condition():
        check(time.monotonic() < end, why)
        time.sleep(0.02)


class World:
    def __init__(self, px, top, far):
        self.px, self.top, self.far = px, Path(top), Path(far)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(top), "TMPDIR": str(top), "PX_HOME": str(self.top / "px-home"), "LANG": "C.UTF-8"}
        self.children = []

    def run(self, *words, status=0):
        done = subprocess.run([self.px, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=2 * LIMIT_S, check=False, cwd=self.top,
                              env=self.environment, text=True)
        if status is not None:
            check(done.returncode == status, f"px {' '.join(words)[:160]}: exit {done.returncode}: {(done.stdout + done.stderr)[-400:]}")
        return done

    def result(self, options, *command):
        """The whole result of one command."""
        done = self.run("--json", "exec", "--timeout", "60s", *options, "--", *command, status=None)
        check(done.stdout.startswith("{"), f"no result: {(done.stdout + done.stderr)[-400:]}")
        return json.loads(done.stdout)

    def python(self, options, code):
        """(what it said, the result) of a program that ends with say(...)."""
        result = self.result(options, "python3", "-c", HELPERS + code)
        check(result["status"] == "ok", f"{result['status']}: {result['stderr'][-400:]}{result['stdout'][-200:]} {result.get('error', '')}")
        return json.loads(result["stdout"]), result

    def spawn(self, *words):
        process = subprocess.Popen([self.px, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.top,
                                   env=self.environment, text=True)
        self.children.append(process)
        return process

    def asked(self):
        return [line.split()[0] for line in (self.far / "asked").read_text(encoding="latin-1").splitlines()]

    def close(self):
        for process in self.children:
            if process.poll() is None:
                process.terminate()
            process.communicate()
        self.run("box", "stop", "--all", status=None)


def denial(result, op, target):
    found = [d for d in result["denials"] if d["op"] == op and d["target"] == target]
    check(len(found) == 1, f"no denial of {op} {target}: {result['denials']}")
    return found[0]


def fails(value, what):
    check(isinstance(value, str) and value.startswith("failed"), f"{what}: {value!r}")


# ---- modes ----------------------------------------------------------------------------------------------------------


@test
def none_has_only_lo(world):
    """A38, B28"""
    (devices, found, connect), _ = world.python(("--net", "none"), """
devices = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
say(devices, resolve("good.test"), raw("203.0.113.10", 80))""")
    check(devices == ["lo"], devices)
    fails(found, "a name resolves")
    fails(connect, "it connects")


@test
def loopback_is_the_box_alone(world):
    """B26, B27"""
    (own, out), _ = world.python(("--net", "loopback"), """
listener = socket.create_server(("127.0.0.1", 0))
own = socket.create_connection(listener.getsockname()) and "connected"
say(own, raw("203.0.113.10", 80))""")
    check(own == "connected", own)
    check("unreachable" in out, out)


@test
def host_is_said(world):
    (page,), result = world.python(("--net", "host"), f'say(get("http://{FOUR}/x"))')
    check(page == f"host={FOUR} /x\n", page)
    check(any(text.startswith("net") for text in result["isolation"]["missing"]), "the result does not say that the network is shared")


@test
def outbound_reaches_names_and_addresses(world):
    (named, four, six, alias, only6, own), result = world.python(OPEN, f"""
listener = socket.create_server(("127.0.0.1", 0))
say(get("http://good.test/a"), get("http://{FOUR}/b"), get("http://[{SIX}]/c"), get("http://alias.test/d"), get("http://six.test/e"),
    try_to(lambda: socket.create_connection(listener.getsockname()) and "connected"))""")
    check(named == "host=good.test /a\n" and four == f"host={FOUR} /b\n" and six == f"host=[{SIX}] /c\n", (named, four, six))
    check(alias == "host=alias.test /d\n" and only6 == "host=six.test /e\n" and own == "connected", (alias, only6, own))
    check("net=relay" in result["isolation"]["mechanisms"] and not any("net" in m for m in result["isolation"]["missing"]), result["isolation"])
    rows = {row["name"]: row for row in result["network"]}
    check({"good.test", FOUR, SIX, "alias.test", "six.test"} <= set(rows), rows)
    check(rows["good.test"]["connections"] == 1 and rows["good.test"]["received_bytes"] > 20, rows["good.test"])


@test
def programs_of_all_kinds(world):
    """curl, urllib, plain sockets, over both kinds of addresses; a server that speaks first."""
    page = world.result(OPEN, "curl", "-sS", "-4", "http://good.test/curl4")
    check(page["stdout"] == "host=good.test /curl4\n", page["stdout"] + page["stderr"])
    page = world.result(OPEN, "curl", "-sS", "-6", "http://good.test/curl6")
    check(page["stdout"] == "host=good.test /curl6\n", page["stdout"] + page["stderr"])
    (greeting, echoed), _ = world.python(OPEN, """
s = socket.create_connection(("good.test", 7002), timeout=30)
greeting = s.makefile("rb").readline().decode()
t = socket.create_connection(("good.test", 7000), timeout=30)
t.sendall(b"y" * 3000000); t.shutdown(socket.SHUT_WR)
total = 0
while part := t.recv(65536): total += len(part)
say(greeting, total)""")
    check(greeting == "hello first\n" and echoed == 3000000, (greeting, echoed))


@test
def last_words_arrive(world):
    """A program that sends and ends at once has sent, though its box is gone."""
    log = world.far / "swallowed"
    before = log.read_text().splitlines() if log.exists() else []
    world.python(OPEN, 'socket.create_connection(("good.test", 7003)).sendall(b"z" * 200000); say(1)')
    until(lambda: log.exists() and log.read_text().splitlines()[len(before):] == ["200000"], "the last bytes were lost")


@test
def special_ranges_are_refused(world):
    """Metadata, private, the host's own and its loopback: by address, and by whatever name leads there."""
    values, result = world.python(OPEN, """
say(*(raw(*to) for to in (("169.254.169.254", 80), ("10.9.9.9", 80), ("203.0.113.1", 22), ("127.1.2.3", 80), ("fd00:ec2::254", 80),
    ("::ffff:10.9.9.9", 80), ("64:ff9b::a9fe:a9fe", 80), ("private.test", 80), ("meta.test", 80), ("loop.test", 80), ("own.test", 80),
    ("mapped.test", 80), ("10.0.2.2", 80), ("198.18.77.77", 80), ("224.0.0.1", 80))))""")
    for value in values:
        fails(value, "it was reached")
    check(denial(result, "connect", "169.254.169.254:80")["grant"] == "--allow-net 169.254.169.254:80", result["denials"])
    check(denial(result, "connect", "meta.test:80 (169.254.169.254:80)")["grant"] == "--allow-net 169.254.169.254:80", "no grant")
    check(denial(result, "connect", "10.0.2.2:80")["grant"] == "--host-port 80", "no grant")
    denial(result, "connect", "203.0.113.1:22")
    denial(result, "connect", "own.test:80 (203.0.113.1:80)")


@test
def named_ranges_are_reached(world):
    with socket.create_server(("203.0.113.1", 0)) as listener:
        port = listener.getsockname()[1]
        values, _ = world.python((*DNS, "--allow-net", f"203.0.113.1:{port}"), f"""
say(try_to(lambda: socket.create_connection(("203.0.113.1", {port}), timeout=30).sendall(b"x") or "sent"))""")
        check(values == ["sent"], values)
        listener.settimeout(LIMIT_S)
        connection, _ = listener.accept()
        check(connection.recv(1) == b"x", "nothing came")
        connection.close()


# ---- what is not TCP --------------------------------------------------------------------------------------------------


@test
def other_protocols_fail_at_once(world):
    values, result = world.python(OPEN, f"""
def send(family, kind, to, protocol=0):
    return try_to(lambda: socket.socket(family, kind, protocol).sendto(b"x" * 20, to) and "sent")
say(send(socket.AF_INET, socket.SOCK_DGRAM, ("{FOUR}", 443)), send(socket.AF_INET6, socket.SOCK_DGRAM, ("{SIX}", 443)),
    send(socket.AF_INET, socket.SOCK_DGRAM, ("{FOUR}", 0), socket.IPPROTO_ICMP), send(socket.AF_INET, socket.SOCK_RAW, ("{FOUR}", 0), 1),
    try_to(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW) and "made"),
    try_to(lambda: socket.socket(40, socket.SOCK_STREAM) and "made"),
    send(socket.AF_INET, socket.SOCK_DGRAM, ("224.0.0.251", 5353)))""")
    for value in values:
        fails(value, "it was sent")
    check(denial(result, "send", f"udp {FOUR}:443")["rule"] == "only TCP and name queries", result["denials"])
    denial(result, "send", f"udp [{SIX}]:443")
    denial(result, "send", "udp 224.0.0.251:5353")


@test
def udp_within_the_box(world):
    (got,), result = world.python(OPEN, """
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0)); a.settimeout(30)
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); b.sendto(b"inside", a.getsockname())
say(a.recv(10).decode())""")
    check(got == "inside" and result["denials"] == [], result["denials"])


@test
def rules_stay(world):
    """The box has no privilege over its network."""
    (route, rules), _ = world.python(OPEN, """
import subprocess
def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    return "done" if done.returncode == 0 else "failed: " + done.stderr
import struct
def netfilter():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    def message(kind, flags, family, resource): return struct.pack("=IHHII", 20, kind, 1 | flags, 1, 0) + struct.pack(">BBH", family, 0, resource)
    s.send(message(16, 0, 0, 10) + message(10 << 8 | 2, 4, 1, 0) + message(17, 0, 0, 10))
    s.settimeout(5)
    answer = s.recv(4096)
    code = struct.unpack("=i", answer[16:20])[0]
    return "done" if code == 0 else "failed: %d" % code
say(ip("addr", "add", "192.0.2.1/32", "dev", "lo"), try_to(netfilter))""")
    fails(route, "an address was added")
    fails(rules, "the rules were changed")


# ---- the allow-list ---------------------------------------------------------------------------------------------------


@test
def listed_names_pass_and_no_others(world):
    before = len(world.asked())
    (good, upper, other, direct, direct6, port, found), result = world.python(GOOD, f"""
say(get("http://good.test/in"), get("http://GOOD.test./in"), get("http://other.test/in"), get("http://{FOUR}/in"), get("http://[{SIX}]/in"),
    raw("good.test", 8080), resolve("other.test"))""")
    check(good == "host=good.test /in\n" and "/in" in upper, (good, upper))
    for value in (other, direct, direct6, port, found):
        fails(value, "it was reached")
    check("good.test" in world.asked()[before:] and "other.test" not in world.asked()[before:], "a name that is not listed was asked for outside")
    check(denial(result, "resolve", "other.test")["grant"] == "--allow-net other.test", result["denials"])
    check(denial(result, "connect", f"{FOUR}:80") == {"op": "connect", "target": f"{FOUR}:80", "rule": "allow-net", "grant": f"--allow-net {FOUR}:80", "count": 1},
          result["denials"])
    check(denial(result, "connect", f"[{SIX}]:80")["grant"] == f"--allow-net [{SIX}]:80", result["denials"])
    check(denial(result, "connect", "good.test:8080")["grant"] == "--allow-net good.test:8080", result["denials"])
    check("net=relay, allow-list" in result["isolation"]["mechanisms"], result["isolation"])


@test
def grants_grant(world):
    """What a denial says would allow it does."""
    for code, want in ((f'say(get("http://{FOUR}/x"))', "/x"), ('say(raw("good.test", 8080))', "HTTP/1.1 200"), ('say(get("http://other.test/y"))', "/y"),
                       (f'say(get("http://[{SIX}]:8080/z"))', "/z")):
        grants = ["--allow-net", "third.test"]
        for _ in range(4):
            (value,), result = world.python((*DNS, *grants), code)
            if not str(value).startswith("failed"):
                break
            check(result["denials"], f"refused without a word: {value}")
            grants += result["denials"][0]["grant"].split()
        check(want in value, f"{code} with {grants}: {value}")


@test
def rules_by_pattern(world):
    rows = (("*.good.test", {"a.good.test": True, "good.test": False, "evilgood.test": False}), ("*", {"good.test": True, "third.test": True}),
            (f"{FOUR}/32", {FOUR: True, "203.0.113.11": False}), ("203.0.113.0/24", {FOUR: True, "203.0.113.11": True}),
            ("2001:db8:1::/48", {f"[{SIX}]": True, FOUR: False}), ("good.test:8080", {"good.test": False, "good.test:8080": True}),
            ("good.test:*", {"good.test": True, "good.test:8080": True}))
    for rule, places in rows:
        values, _ = world.python((*DNS, "--allow-net", rule), f"say(*(get('http://' + place + '/') for place in {list(places)!r}))")
        for (place, allowed), value in zip(places.items(), values):
            check(value.startswith("failed") != allowed, f"--allow-net {rule}: {place}: {value}")
    values, result = world.python((*OPEN, "--deny-net", "*.good.test", "--deny-net", "203.0.113.11"), f"""
say(get("http://good.test/"), get("http://a.good.test/"), get("http://third.test/"), get("http://203.0.113.11/"), get("http://{FOUR}/"))""")
    check([v.startswith("failed") for v in values] == [False, True, True, True, False], values)
    check(denial(result, "resolve", "a.good.test")["rule"] == "deny-net", result["denials"])


def asking(host):
    return f"GET /v HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


@test
def denied_names_are_not_said(world):
    """A connection by address, by another name or by a translated address does not ask for a name that is denied."""
    places = (FOUR, SIX, "good.test", "203.0.113.11", "64:ff9b::cb00:710b", "2002:cb00:710b::1")
    for options in (OPEN, (*DNS, "--allow-net", "*:*")):
        values, result = world.python((*options, "--deny-net", "other.test"), f"""
say(resolve("other.test"), [raw(place, 80, {asking("other.test")!r}) for place in {places!r}], [raw(place, 80, {asking("Good.test")!r}) for place in {places!r}],
    [raw("{FOUR}", 80, data) for data in {(asking("OTHER.test:80"), asking("other.test.").replace(b"T ", b"T" + bytes([0x1c])), b"PROXY UNKNOWN" + bytes([13, 10]))!r}],
    get("http://{FOUR}/a"), get("http://[{SIX}]/b"), get("http://good.test/c"), raw("{FOUR}", 7000, b"EHLO other.test\\n"), raw("{FOUR}", 80))""")
        for value in (values[0], *values[1], *values[3]):
            fails(value, "a denied name was asked for")
        check([value[:12] for value in values[2]] == ["HTTP/1.1 200"] * len(places), values[2])
        check(values[4:8] == [f"host={FOUR} /a\n", f"host=[{SIX}] /b\n", "host=good.test /c\n", "EHLO other.test\n"], values[4:])
        check(values[8].startswith("HTTP/1.1 200"), values[8])
        check(denial(result, "connect", f"{FOUR}:80 as other.test") | {"count": 1} ==
              {"op": "connect", "target": f"{FOUR}:80 as other.test", "rule": "deny-net", "grant": None, "count": 1}, result["denials"])
        denial(result, "connect", "good.test:80 as other.test")
        denial(result, "connect", f"{FOUR}:80")
    values, _ = world.python((*OPEN, "--deny-net", "other.test:443"), f'say(raw("{FOUR}", 80, {asking("other.test")!r}))')
    check(values[0].startswith("HTTP/1.1 200"), f"the rule is of another port: {values}")


@test
def denied_names_and_hellos(world):
    if not (world.far / "cert.pem").exists() or not shutil.which("openssl"):
        raise Skip("openssl is not installed")
    for name, passes in (("good.test", True), ("other.test", False), (None, True)):
        words = ["-servername", name] if name else ["-noservername"]
        done = world.result((*OPEN, "--deny-net", "other.test"), "sh", "-c", f'echo Q | openssl s_client -connect {FOUR}:443 "$@" 2>&1', "sh", *words)
        check(("BEGIN CERTIFICATE" in done["stdout"]) == passes, f"server name {name}: {done['stdout'][-300:]}")
        if not passes:
            denial(done, "connect", f"{FOUR}:443 as {name}")


@test
def denied_names_at_the_host(world):
    """A proxy of the host's that the box may use is not asked for a denied name either."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer():
            for _ in range(2):
                with listener.accept()[0] as connection:
                    try:
                        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" if connection.recv(1000) else b"")
                    except OSError:     # the relay has refused it
                        continue
        threading.Thread(target=answer, daemon=True).start()
        values, result = world.python((*OPEN, "--deny-net", "other.test", "--host-port", str(port)), f"""
say(raw("10.0.2.2", {port}, b"CONNECT other.test:443 HTTP/1.1\\r\\n\\r\\n"), raw("10.0.2.2", {port}, b"CONNECT good.test:443 HTTP/1.1\\r\\n\\r\\n"))""")
        fails(values[0], "a denied name was asked for")
        check(values[1].startswith("HTTP/1.1 200"), values)
        denial(result, "connect", f"10.0.2.2:{port} as other.test")


@test
def translated_addresses_are_one(world):
    """An address is denied, and is the host's own, in every spelling; it is allowed as it is written."""
    places = ("203.0.113.11", "64:ff9b::cb00:710b", "2002:cb00:710b::1", "64:ff9b::cb00:7101")
    for options, reached in ((OPEN, [True, True, True, False]), ((*OPEN, "--deny-net", "203.0.113.11"), [False] * 4),
                             ((*OPEN, "--deny-net", "64:ff9b::cb00:710b"), [False] * 4), ((*DNS, "--allow-net", "203.0.113.11"), [True, False, False, False]),
                             ((*DNS, "--allow-net", "64:ff9b::cb00:7101"), [False, False, False, True])):
        values, _ = world.python(options, f"say(*(raw(place, 80) for place in {places!r}))")
        check([value.startswith("HTTP/1.1 200") for value in values] == reached, f"{options}: {values}")


@test
def names_are_pinned(world):
    """A name has one address of the pool, another name another one, though the server is the same; the address means nothing elsewhere."""
    (one, again, two, swapped), result = world.python((*GOOD, "--allow-net", "other.test"), f"""
one, again, two = resolve("good.test"), resolve("good.test"), resolve("other.test")
say(one, again, two, raw(two[0], 80, b"GET / HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n"))""")
    check(one == again and not set(one) & set(two), (one, two))
    check(all(a.startswith(("198.18.", "fd70:78:")) for a in one + two), (one, two))
    fails(swapped, "a request for another name went through")
    check(denial(result, "connect", "other.test:80 as good.test")["rule"] == "another server's name", result["denials"])


@test
def server_names_must_match(world):
    if not (world.far / "cert.pem").exists() or not shutil.which("openssl"):
        raise Skip("openssl is not installed")
    (world.top / "cert.pem").write_bytes((world.far / "cert.pem").read_bytes())
    options = (*GOOD, "-v", f"{world.top / 'cert.pem'}:/cert.pem:ro")
    page = world.result(options, "curl", "-sS", "--cacert", "/cert.pem", "https://good.test/tls")
    check(page["stdout"] == "host=good.test /tls\n", page["stdout"] + page["stderr"])
    (value,), _ = world.python(options, """
import ssl
say(urllib.request.urlopen("https://good.test/tls", timeout=30, context=ssl.create_default_context(cafile="/cert.pem")).read().decode())""")
    check(value == "host=good.test /tls\n", value)
    for name, passes in (("good.test", True), ("other.test", False), (None, True)):
        words = ["-servername", name] if name else ["-noservername"]
        done = world.result(options, "sh", "-c", 'echo Q | openssl s_client -connect good.test:443 "$@" 2>&1', "sh", *words)
        check(("BEGIN CERTIFICATE" in done["stdout"]) == passes, f"server name {name}: {done['stdout'][-300:]}")
        if not passes:
            denial(done, "connect", f"good.test:443 as {name}")


@test
def odd_hellos_are_refused(world):
    cases = {"two hosts": b"GET / HTTP/1.1\r\nHost: good.test\r\nHost: other.test\r\n\r\n", "folded": b"GET / HTTP/1.1\r\nHost:\r\n other.test\r\n\r\n",
             "absolute": b"GET http://other.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n", "connect": b"CONNECT other.test:443 HTTP/1.1\r\n\r\n",
             "bare": b"\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\n", "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "tls": b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
             "split": b"GET\x1c/ HTTP/1.1\r\nHost: other.test\r\n\r\n", "joined": b"GET/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
             "proxy": b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
             "nul": b"GET / HTTP/1.1\r\nHost: good.test\0.other.test\r\n\r\n", "space": b"GET / HTTP/1.1\r\nHost : other.test\r\n\r\n"}
    values, result = world.python(GOOD, f"say(*(raw('good.test', 80, data) for data in {list(cases.values())!r}))")
    for name, value in zip(cases, values):
        fails(value, name)
    check(sum(d["count"] for d in result["denials"]) == len(cases), result["denials"])
    (slow,), _ = world.python(GOOD, """
import time
s = socket.create_connection(("good.test", 80), timeout=30)
for part in (b"GE", b"T / HT", b"TP/1.1\\r\\nHo", b"st: good.test\\r\\n\\r\\n"):
    s.sendall(part); time.sleep(0.05)
say(s.recv(12).decode())""")
    check(slow == "HTTP/1.1 200", f"a request in pieces: {slow}")


@test
def requests_by_any_word(world):
    """Servers pass on methods they do not know, and skip what stands before a request or a hello."""
    cases = {"unknown": b"PURGE / HTTP/1.1\r\nHost: other.test\r\n\r\n", "lower": b"get / HTTP/1.1\r\nHost: other.test\r\n\r\n",
             "long": b"A" * 300 + b" / HTTP/1.1\r\nHost: other.test\r\n\r\n", "blank": b" GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
             "tabs": b"FOO\t/\tHTTP/1.1\r\nHost: other.test\r\n\r\n", "version": b"FOO / http/1.1\r\nHost: other.test\r\n\r\n",
             "alert": b"\x15\x03\x01\x00\x02\x01\x5a\x16\x03\x01", "vertical": b"GET / HTTP/1.1\r\nHost\v: other.test\r\n\r\n"}
    values, result = world.python(GOOD, f"say(*(raw('good.test', 80, data) for data in {list(cases.values())!r}))")
    for name, value in zip(cases, values):
        fails(value, name)
    check(sum(d["count"] for d in result["denials"]) == len(cases), result["denials"])
    values, result = world.python((*GOOD, "--allow-net", "good.test:7000"), """
say(raw("good.test", 80, b"PURGE / HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n"), raw("good.test", 80, b"A" * 300 + b" / HTTP/1.0\\r\\n\\r\\n"),
    raw("good.test", 7000, b"EHLO other.test\\r\\n"), raw("good.test", 7000, b"\\x15 other"), raw("good.test", 7000, b"PING\\n"))""")
    check(all(v.startswith("HTTP/1.1 200") for v in values[:2]) and values[2:] == ["EHLO other.test\r\n", "\x15 other", "PING\n"], values)
    check(result["denials"] == [], result["denials"])


@test
def second_requests(world):
    """Only the first request of a connection is looked at (docs/network.md): what follows goes to the same permitted server."""
    (pages, addressed), result = world.python(GOOD, """
s = socket.create_connection(("good.test", 80), timeout=30)
pages = []
for host in ("good.test", "good.test", "third.test"):
    s.sendall(b"GET /k HTTP/1.1\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
    pages.append(s.recv(1000).decode())
say(pages, raw("good.test", 80, b"GET / HTTP/1.1\\r\\nHost: third.test\\r\\n\\r\\n"))""")
    check(all(page.startswith("HTTP/1.1 200") for page in pages), pages)
    fails(addressed, "the first request may name another")
    check([row["name"] for row in result["network"]] == ["good.test"], result["network"])


@test
def hellos_in_pieces(world):
    """A server's name cut over segments and records is still one."""
    if not (world.far / "cert.pem").exists():
        raise Skip("openssl is not installed")
    values, result = world.python(GOOD, """
import ssl, time
def hello(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try: context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
def records(data, size):
    body = data[5:]
    return b"".join(b"\\x16\\x03\\x01" + len(part).to_bytes(2, "big") + part for part in (body[i:i + size] for i in range(0, len(body), size)))
def throw(data, size):
    def act():
        s = socket.create_connection(("good.test", 443), timeout=30)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(data), size):
            s.sendall(data[i:i + size]); time.sleep(0.01)
        return "answered" if s.recv(1) == b"\\x16" else "failed: closed"
    return try_to(act)
say(*(throw(data, size) for name in ("other.test", "good.test") for data in (hello(name), records(hello(name), 1), records(hello(name), 100))
      for size in (80, 10000)), throw(b"\\x15\\x03\\x01\\x00\\x02\\x01\\x5a" + hello("other.test"), 10000))""")
    for value in (*values[:6], values[-1]):
        fails(value, "another name got through")
    check(values[6:12] == ["answered"] * 6, f"{values} {result['denials']}")


@test
def other_ways_to_names(world):
    """Whoever is asked, and however, the answer is ours; servers of names by TLS are addresses like any other."""
    (codes, secure), result = world.python(GOOD, """
import struct
def ask(family, kind, server, name):
    query = b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(bytes([len(p)]) + p for p in name.split(b".")) + b"\\0" + struct.pack(">HH", 1, 1)
    s = socket.socket(family, kind); s.settimeout(30); s.connect((server, 53))
    s.sendall((struct.pack(">H", len(query)) if kind == socket.SOCK_STREAM else b"") + query)
    answer = s.recv(512)[2 if kind == socket.SOCK_STREAM else 0:]
    return [answer[3] & 15, list(answer[-4:])[:2] if answer[7] else []]
four, six = (socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:4860:4860::8888")
say([ask(family, kind, server, name) for family, server in (four, six) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)
     for name in (b"good.test", b"evil.test")], [raw("8.8.8.8", 853, b"x"), raw("8.8.8.8", 443, b"x"), raw("metadata.google.internal", 80)])""")
    check(codes == [[0, [198, 18]], [3, []]] * 4, codes)
    for value in secure:
        fails(value, "another server of names was reached")
    denial(result, "resolve", "metadata.google.internal")


@test
def places_that_mean_the_host(world):
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        places = ["0.0.0.0", "127.0.0.1", "localhost", "10.0.2.2", "10.0.2.3", "10.0.2.100", "198.18.77.77", "203.0.113.1", "::", "::1", "::ffff:127.0.0.1",
                  "::ffff:203.0.113.1", "::ffff:0.0.0.0", "fd70:78::c612:4d4d", "fd70:78:1::64", "64:ff9b::7f00:1", "2002:7f00:1::1"]
        values, _ = world.python((*GOOD, "--allow-net", "good.test:*", "--allow-net", f"*:{port}"), f"""
say(*(raw(place, {port}) for place in {places!r}), raw("127.0.0.1", 1), raw("::1", 1), raw("10.0.2.100", 1))""")
        for place, value in zip([*places, "port 1", "port 1", "port 1"], values):
            fails(value, place)
        listener.settimeout(0)
        try:
            listener.accept()
            check(False, "the host was reached")
        except BlockingIOError:
            pass
    (page,), _ = world.python(GOOD, 'say(raw("::ffff:" + [a for a in resolve("good.test") if "." in a][0], 80)[:12])')
    check(page == "HTTP/1.1 200", f"a permitted name in the other spelling: {page}")


@test
def names_that_turn(world):
    """A name that leads to the host the second time: it is kept as it was for a while, and checked whenever it is asked for again."""
    options = (*DNS, "--allow-net", "flip.test")
    (first, second), _ = world.python(options, 'say(get("http://flip.test/1"), get("http://flip.test/2"))')
    check((first, second) == ("host=flip.test /1\n", "host=flip.test /2\n"), (first, second))
    (third,), result = world.python(options, 'say(get("http://flip.test/3"))')
    fails(third, "it led to the host")
    check(any(d["target"].startswith("flip.test:80 (127.0.0.1") for d in result["denials"]), result["denials"])


@test
def names_without_end(world):
    """More names than have an address: those that have one keep it, the others fail."""
    (codes, page), result = world.python((*DNS, "--allow-net", "*.many.test"), """
import struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30); s.connect(("10.0.2.3", 53))
codes = []
for i in range(4200):
    name = b"n%d" % i
    s.send(b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + bytes([len(name)]) + name + b"\\4many\\4test\\0" + struct.pack(">HH", 1, 1))
    codes.append(s.recv(512)[3] & 15)
say([codes.count(0), codes.count(2), codes[0], codes[-1]], get("http://n7.many.test/old"))""")
    check(codes == [4096, 104, 0, 2] and page == "host=n7.many.test /old\n", (codes, page))
    check(any(d["rule"] == "limit of the relay" for d in result["denials"]), result["denials"])


@test
def names_are_no_tunnel(world):
    before = len(world.asked())
    (codes, answers), result = world.python(GOOD, """
import os, struct
def ask(name, kind=1, servers=("203.0.113.53", "8.8.8.8", "10.0.2.3")):
    query = os.urandom(2) + b"\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(bytes([len(p)]) + p for p in name.split(b".")) + b"\\0" + struct.pack(">HH", kind, 1)
    codes = set()
    for server in servers:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
        s.sendto(query, (server, 53)); codes.add(tuple(s.recv(4096)[3:8]))
    return sorted(c[0] & 15 for c in codes), sorted(c[4] for c in codes)
names = [(b"secret%d.evil.test" % i, 1) for i in range(20)] + [(b"x.good.test", 16), (b"exfil", 1), (b"a_b.test", 1)]
say([ask(*n)[0] for n in names], [ask(b"good.test", kind) for kind in (16, 15, 65, 33, 255)])""")
    check(all(code == [3] for code in codes), codes)
    check(all(answer == [[0], [0]] for answer in answers), answers)
    check(world.asked()[before:] == [], f"names went out: {world.asked()[before:]}")
    check(any(d["op"] == "resolve" for d in result["denials"]), result["denials"])


@test
def names_by_tcp(world):
    (value,), _ = world.python(GOOD, """
import struct
def ask(name):
    query = b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(bytes([len(p)]) + p for p in name.split(b".")) + b"\\0" + struct.pack(">HH", 1, 1)
    s = socket.create_connection(("203.0.113.53", 53), timeout=30)
    s.sendall(struct.pack(">H", len(query)) + query)
    answer = s.recv(512)
    return [answer[5] & 15, answer[9], list(answer[-4:])[:2]]
say([ask(b"good.test"), ask(b"evil.test")])""")
    check(value == [[0, 1, [198, 18]], [3, 0, [0, 1]]], value)


# ---- ports --------------------------------------------------------------------------------------------------------------

SERVER = """
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(("box " + self.path).encode())
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer.request_queue_size = 256
http.server.ThreadingHTTPServer(("0.0.0.0", PORT), Page).serve_forever()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def page_at(address, port, wait_s=5):
    try:
        with socket.create_connection((address, port), timeout=wait_s) as s:
            s.sendall(b"GET /p HTTP/1.0\r\n\r\n")
            data = b""
            while part := s.recv(4096):
                data += part
            return data.partition(b"\r\n\r\n")[2].decode()
    except OSError:
        return ""


@test
def ports_are_published(world):
    """B29: two ports, on loopback only, with either network; many visitors at once; gone with the box."""
    for mode in (("--net", "outbound"), ("--net", "loopback"), ()):
        one, two = free_port(), free_port()
        code = "import threading\nfor p in (8080, 8081): threading.Thread(target=exec, args=(SERVER.replace('PORT', str(p)),)).start()"
        process = world.spawn("exec", *mode, "-p", f"{one}:8080", "-p", f"127.0.0.1:{two}:8081", "--", "python3", "-c", f"SERVER = {SERVER!r}\n{code}")
        until(lambda: page_at("127.0.0.1", one) == "box /p" and page_at("127.0.0.1", two) == "box /p", "the ports of the box are not reached")
        check(page_at("203.0.113.1", one) == "", "it is published on every address")
        found = []
        visitors = [threading.Thread(target=lambda: found.append(page_at("127.0.0.1", one, LIMIT_S))) for _ in range(200)]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
        check(found.count("box /p") == 200, f"{found.count('box /p')} of 200 were served")
        process.terminate()
        process.wait(LIMIT_S)
        until(lambda: page_at("127.0.0.1", one) == "", "the port outlives the box")


@test
def taken_ports_are_said(world):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = world.run("exec", "-p", f"{port}:80", "--", "echo", "RAN", status=125)
        check("PX501" in done.stderr and str(port) in done.stderr and "RAN" not in done.stdout, done.stderr)
        check("\n  - Or end the program that listens there.\n" in done.stderr, done.stderr)


def greet_all(listener):
    try:
        while True:
            with listener.accept()[0] as visitor:
                visitor.sendall(b"the host\n")
                visitor.recv(1)
    except OSError:             # it was closed: the test is over
        return


@test
def host_loopback(world):
    """B30"""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as second:
        port, closed = listener.getsockname()[1], second.getsockname()[1]
        for server in (listener, second):
            threading.Thread(target=greet_all, args=(server,), daemon=True).start()
        code = f'say(raw("10.0.2.2", {port}, b"x"), raw("10.0.2.2", {closed}, b"x"), raw("127.0.0.1", {port}, b"x"), raw("203.0.113.1", {port}, b"x"))'
        values, result = world.python(OPEN, code)
        for value in values:
            fails(value, "the host was reached")
        check(denial(result, "connect", f"10.0.2.2:{port}")["grant"] == f"--host-port {port}", result["denials"])
        values, _ = world.python((*OPEN, "--host-port", str(port)), code)
        check(values[0] == "the host\n", values)
        for value in values[1:]:
            fails(value, "more than the port was reached")
        values, _ = world.python((*GOOD, "--allow-host-loopback"), code)
        check(values[:2] == ["the host\n"] * 2, values)
        fails(values[2], "its own loopback is the host's")
        fails(values[3], "another address of the host was reached")


@test
def details(world):
    """A36, A39"""
    out = world.result((*OPEN, "--dns", "203.0.113.54"), "cat", "/etc/resolv.conf")["stdout"]
    check(out == "nameserver 203.0.113.53\nnameserver 203.0.113.54\n", out)
    out = world.result(("--net", "outbound"), "cat", "/etc/resolv.conf", "/etc/hosts")["stdout"]
    check(out == "nameserver 10.0.2.3\n127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 sandbox\n", out)
    out = world.result(("--http-proxy", "http://proxy.test:3128"), "env")["stdout"].splitlines()
    check({f"{name}=http://proxy.test:3128" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")} <= set(out), out)
    check("proxy" not in world.result((), "env")["stdout"].lower(), "a proxy that nobody asked for")


@test
def what_contradicts_is_refused(world):
    for words, code in ((("--net", "none", "--allow-net", "good.test"), "PX001"), (("--allow-net", "good.test", "--net", "loopback"), "PX001"),
                        (("--allow-host-loopback",), "PX001"), (("--dns", "203.0.113.53"), "PX001"), (("-p", "1:1", "--net", "none"), "PX001"),
                        (("-p", "1:1/sctp"), "PX002"), (("--net", "box:other"), "PX041"),
                        (("--net", "box:"), "PX002"), (("--net", "pid:x"), "PX002"), (("--net", "pid:1"), "PX041"), (("--net", f"pid:{os.getpid()}"), "PX041"),
                        (("--net", "box:n", "--allow-net", "good.test"), "PX001"), (("--net", "box:n", "-p", "1:1"), "PX001"),
                        (("--dns", "203.0.113.53", "--net", "box:n"), "PX001"), (("--net", "box:n", "--require", "landlock", "--runtime", "runc"), "PX003"),
                        (("--allow-net", "127.1"), "PX002"), (("--allow-net", "good.test:99999"), "PX002"), (("--allow-net", "a@b"), "PX002"),
                        (("--allow-net", ""), "PX002"), (("--allow-net", "10.0.0.1/8"), "PX002"), (("--dns", "name.test"), "PX002"), (("-p", "80"), "PX002")):
        done = world.run("exec", *words, "--", "echo", "RAN", status=125)
        check(done.stderr.startswith(code) and "RAN" not in done.stdout, f"{words}: {done.stderr[:200]}")


# ---- UDP ports ---------------------------------------------------------------------------------------------------------------

# Answers in capitals, to whom it came from; "who" asks for its address, "to PORT" has it speak to that port of its loopback from another
# of its own, "out" has it speak to the world from the published one.
UDP_SERVER = """
import socket
here, other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
here.bind(("0.0.0.0", PORT))
print("ready", flush=True)
held = None
def tell(act):
    try: act(); return b"sent"
    except OSError as error: return (error.strerror or "").encode()
while True:
    data, sender = here.recvfrom(70000)
    words = data.decode("latin-1").split()
    if words[:1] == ["who"]: data = str(sender[1]).encode()
    elif words[:1] == ["to"]: data = tell(lambda: other.sendto(b"FORGED", ("127.0.0.1", int(words[1]))))
    elif words[:1] == ["out"]: data = tell(lambda: here.sendto(b"OUT", ("203.0.113.10", 443)))
    elif words[:1] == ["hold"]: held = sender
    elif words[:1] == ["late"]: data = tell(lambda: here.sendto(b"LATE", held))
    else: data = data.upper()
    here.sendto(data, sender)
"""


class Caller:
    """Somebody who speaks to a UDP port of the host."""

    def __init__(self, port, address="127.0.0.1"):
        self.socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((address, port))

    def hears(self, wait_s):
        self.socket.settimeout(wait_s)
        try:
            return self.socket.recv(70000)
        except OSError:
            return b""

    def says(self, data, wait_s=10):
        try:
            self.socket.send(data)
        except ConnectionRefusedError:
            return b""
        return self.hears(wait_s)


def udp_box(world, *options):
    process = world.spawn("exec", *options, "--", "python3", "-c", UDP_SERVER.replace("PORT", "5353"))
    check(process.stdout.readline() == "ready\n", f"the box did not start: {process.poll()}")
    return process


@test
def udp_ports_are_published(world):
    """Each sender has his own answers, on loopback only unless said otherwise, and by the address that he spoke to."""
    for mode in (("--net", "outbound"), ()):
        port, wide, six = free_port(), free_port(), free_port()
        process = udp_box(world, *mode, "-p", f"{port}:5353/udp", "-p", f"0.0.0.0:{wide}:5353/udp", "-p", f"[::1]:{six}:5353/udp")
        one, two = Caller(port), Caller(port)
        check(one.says(b"one") == b"ONE" and two.says(b"two") == b"TWO" and one.says(b"who") != two.says(b"who"), "answers that are not the sender's")
        check(one.says(b"") == b"" and one.says(b"x" * 65000) == b"X" * 65000, "an empty or a large datagram")
        for address in ("127.0.0.1", "203.0.113.1"):
            check(Caller(wide, address).says(b"wide") == b"WIDE", f"no answer from {address}, to which it was sent")
        check(Caller(six, "::1").says(b"six") == b"SIX", "no answer by IPv6")
        check(Caller(port, "203.0.113.1").says(b"one", 1) == b"", "it is published on every address")
        done = world.run("exec", "-p", f"{port}:1/udp", "--", "echo", "RAN", status=125)
        check("PX501" in done.stderr and f"{port}" in done.stderr and "RAN" not in done.stdout, done.stderr)
        process.terminate()
        process.wait(LIMIT_S)
        until(lambda: one.says(b"gone", 0.1) == b"", "the port outlives the box")
    result = world.result(("-p", f"{free_port()}:80", "-p", f"{free_port()}:5353/udp"), "true")
    check("ports=2 published" in result["isolation"]["mechanisms"], result["isolation"])


@test
def udp_ports_open_nothing_else(world):
    """No way out for UDP, no way to a sender but by the port that he spoke to, and only as many senders as there is room for."""
    port = free_port()
    process = udp_box(world, "--net", "outbound", "-p", f"{port}:5353/udp")
    victim = Caller(port)
    inside = victim.says(b"who").decode()
    other = Caller(port)
    check(other.says(b"to " + inside.encode()) == b"sent" and victim.hears(1) == b"", "another port of the box spoke to a sender")
    check(other.says(b"out") == b"Operation not permitted", "UDP left the box")
    check(victim.says(b"hold") == b"hold", "the twin that is remembered")
    crowd = [Caller(port) for _ in range(200)]
    check(all(caller.says(b"crowd") == b"CROWD" for caller in crowd), "one of a crowd had no answer")
    check(crowd[-1].says(b"late") == b"sent" and victim.hears(1) == b"" and all(caller.hears(0.001) == b"" for caller in crowd),
          "an answer went to somebody, long after its sender was forgotten")
    check(victim.says(b"again") == b"AGAIN", "who was forgotten may not come again")
    process.terminate()
    process.wait(LIMIT_S)


# ---- boxes that stay ------------------------------------------------------------------------------------------------------


@test
def living_boxes(world):
    port = free_port()
    world.run("box", "start", "--name", "n", *GOOD, "-p", f"{port}:8080")
    try:
        for _ in range(2):
            done = world.run("box", "exec", "n", "--", "python3", "-c", HELPERS + 'say(get("http://good.test/l"), get("http://other.test/l"))')
            good, other = json.loads(done.stdout)
            check(good == "host=good.test /l\n", good)
            fails(other, "it is not on the list")
        done = json.loads(world.run("--json", "box", "exec", "n", "--", "python3", "-c", HELPERS + 'say(get("http://third.test/"), get("http://good.test/"))').stdout)
        check([d["target"] for d in done["denials"]] == ["third.test"] and [row["name"] for row in done["network"]] == ["good.test"],
              f"a command's own: {done['denials']} {done['network']}")
        shown = json.loads(world.run("--json", "box", "show", "n").stdout)
        check({d["target"] for d in shown["denials"]} >= {"other.test", "third.test"}, f"all together: {shown['denials']}")
        server = world.spawn("box", "exec", "n", "--", "python3", "-c", SERVER.replace("PORT", "8080"))
        until(lambda: page_at("127.0.0.1", port) == "box /p", f"the port of the box is not reached: {server.poll()}")
    finally:
        world.run("box", "stop", "n")


# ---- boxes that share a network -----------------------------------------------------------------------------------------------


@test
def boxes_share_a_network(world):
    """The rules, names and ports are those of the box that is joined, for a command and for a box that stays."""
    port, udp = free_port(), free_port()
    world.run("box", "start", "--name", "n", *GOOD, "-p", f"{port}:8080", "-p", f"{udp}:5353/udp")
    values, result = world.python(("--net", "box:n"), 'say(get("http://good.test/j"), get("http://other.test/j"), raw("203.0.113.10", 80))')
    check(values[0] == "host=good.test /j\n", values)
    fails(values[1], "it is not on the list")
    fails(values[2], "an address that is not on the list")
    check("net=box:n" in result["isolation"]["mechanisms"] and any("other box" in text for text in result["isolation"]["missing"]), result["isolation"])
    server = world.spawn("exec", "--net", "box:n", "--", "python3", "-c", SERVER.replace("PORT", "8080"))
    until(lambda: page_at("127.0.0.1", port) == "box /p", f"the port of the network is not reached: {server.poll()}")
    page = HELPERS + 'say(get("http://127.0.0.1:8080/l"))'
    check(json.loads(world.run("box", "exec", "n", "--", "python3", "-c", page).stdout) == ["box /l"], "the loopback is not one")
    world.run("box", "start", "--name", "second", "--net", "box:n")
    check(json.loads(world.run("box", "exec", "second", "--", "python3", "-c", page).stdout) == ["box /l"], "a box that stays")
    check(world.python(("--net", "box:second"), 'say(get("http://127.0.0.1:8080/l"))')[0] == ["box /l"], "through the one that has joined")
    fails(world.python(("--net", "loopback"), 'say(get("http://127.0.0.1:8080/l"))')[0][0], "a box that has not joined")
    speaker = udp_box(world, "--net", "box:second")
    check(Caller(udp).says(b"both") == b"BOTH", "the UDP port of the network")
    speaker.terminate()


APART = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def seen(act):
    try: return act()
    except OSError as error: return "failed: " + (error.strerror or str(error))
def abstract():
    s = socket.socket(socket.AF_UNIX); s.connect("\\0shared"); return "reached"
def queue():
    return "reached" if libc.mq_open(b"/shared", 0) >= 0 else "failed: no queue"
names = [open(f"/proc/{p}/cmdline").read() for p in os.listdir("/proc") if p.isdigit() and p != "1"]
say(seen(abstract), queue(), "reached" if any("of-the-first" in n for n in names if "say(" not in n) else "failed: not seen",
    seen(lambda: open("/tmp/shared").read()), seen(lambda: os.listdir("/home/sandbox/.first")),
    [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")],
    "reached" if libc.setns(os.open("/proc/self/ns/net", os.O_RDONLY), 0) == 0 else "failed: setns",
    seen(lambda: open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w").write("1") and "reached"))
"""
CHANGE = """
import fcntl, struct
s, route = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
def flags(request): return struct.unpack("16sh", fcntl.ioctl(s, request, struct.pack("16sh14x", b"lo", 0))[:18])[1] & 1
def add_address():
    body = struct.pack("=BBBBI", 2, 32, 0, 0, 1) + struct.pack("=HH", 8, 2) + bytes([10, 9, 9, 9])
    route.send(struct.pack("=IHHII", 16 + len(body), 20, 0x605, 1, 0) + body)
    code = struct.unpack("=i", route.recv(4096)[16:20])[0]
    return "done" if code == 0 else f"failed: {code}"
say(try_to(lambda: flags(0x8914)), try_to(add_address), flags(0x8913))
"""
FIRST = """
import ctypes, os, socket, time
s = socket.socket(socket.AF_UNIX); s.bind("\\0shared"); s.listen()
ctypes.CDLL(None).mq_open(b"/shared", 0o100 | 2, 0o666, None)
open("/tmp/shared", "w").write("secret"); os.mkdir("/home/sandbox/.first")
c = socket.socket(socket.AF_UNIX); c.connect("\\0shared")
print("ready", flush=True); time.sleep(1000)
"""


@test
def joined_boxes_are_apart(world):
    """Of the other box there is nothing but the network: no process, no file, no queue, no abstract socket; and no privilege over that."""
    world.run("box", "start", "--name", "n", "--net", "loopback")
    first = world.spawn("box", "exec", "n", "--", "python3", "-c", FIRST, "of-the-first")
    check(first.stdout.readline() == "ready\n", "the first box did not start")
    values, result = world.python(("--net", "box:n"), APART)
    scoped = any(m.startswith("landlock=") and int(m[9:]) >= 6 for m in result["isolation"]["mechanisms"])
    check(scoped or any("abstract" in text for text in result["isolation"]["missing"]), result["isolation"])
    for value in values[0 if scoped else 1 : 5] + values[6:]:
        fails(value, f"the joined box reached something: {values}")
    check(set(values[5]) == {"0000000000000000"}, f"it has privileges: {values[5]}")
    down, address, up = world.python(("--net", "box:n"), CHANGE)[0]
    fails(down, "it has switched the loopback off")
    fails(address, "it has given the network an address")
    check(up == 1, "the loopback cannot be looked at, or is down")


@test
def joined_box_outlives_the_other(world):
    """The network goes, the process stays; who comes later is told, and so is who asks for a network that is the host's."""
    world.run("box", "start", "--name", "n", *GOOD)
    code = 'print(get("http://good.test/1"), end="", flush=True)\nsys.stdin.readline()\nsay(get("http://good.test/2"), raw("127.0.0.1", 9))'
    process = subprocess.Popen([world.px, "exec", "-i", "--net", "box:n", "--", "python3", "-c", HELPERS + code], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=world.top, env=world.environment, text=True)
    world.children.append(process)
    check(process.stdout.readline() == "host=good.test /1\n", "the network of the other box")
    world.run("box", "stop", "n")
    out, error = process.communicate("go\n", LIMIT_S)
    check(process.returncode == 0, f"it ended with the other: {process.returncode} {error[-300:]}")
    for value in json.loads(out):
        fails(value, "the network outlives its box")
    check("PX041" in world.run("exec", "--net", "box:n", "--", "true", status=125).stderr, "a box that has ended")
    world.run("box", "start", "--name", "wide", "--net", "host")
    done = world.run("exec", "--net", "box:wide", "--", "echo", "RAN", status=125)
    check(done.stderr.startswith("PX001") and "--net host" in done.stderr and "RAN" not in done.stdout, done.stderr)


@test
def boxes_of_others_are_not_joined(world):
    """By no name and by no number, not even by root; the twin is one's own."""
    if os.getuid() != 0:
        raise Skip("only root can be two users")
    home = world.top / "other"
    home.mkdir()
    os.chown(home, 12345, 12345)
    world.top.chmod(0o755)
    other = {**world.environment, "HOME": str(home), "TMPDIR": str(home), "PX_HOME": str(home / "px-home")}

    def as_other(*words):
        done = subprocess.run(["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", world.px, "--json", *words], capture_output=True,
                              check=False, cwd=home, env=other, text=True, timeout=LIMIT_S)
        check(done.returncode == 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    as_other("box", "start", "--name", "n", "--net", "loopback")
    try:
        pid = as_other("box", "show", "n")["pid"]
        check("PX041" in world.run("exec", "--net", f"pid:{pid}", "--", "echo", "RAN", status=125).stderr, "root joined a user's box by its number")
        world.environment["PX_HOME"] = other["PX_HOME"]
        done = world.run("exec", "--net", "box:n", "--", "echo", "RAN", status=125)
        check("another user" in done.stderr and "RAN" not in done.stdout, done.stderr)
        check(as_other("exec", "--net", f"pid:{pid}", "--", "true")["status"] == "ok", "its owner cannot join it")
    finally:
        world.environment["PX_HOME"] = str(world.top / "px-home")
        as_other("box", "stop", "n")


# ---- under attack -----------------------------------------------------------------------------------------------------------


@test
def many_connections(world):
    """More than the relay takes: the newcomers fail at once, the old ones live, and another box does not notice."""
    (reached, refused, alive), result = world.python((*GOOD, "--allow-net", "good.test:7000", "--nofile", "3000"), """
held, refused = [], 0
for i in range(1400):
    try: held.append(socket.create_connection(("good.test", 7000), timeout=30))
    except ConnectionResetError: refused += 1
for s in held:
    try: s.sendall(b"x\\n")
    except OSError: pass
alive = 0
for s in held:
    try: answered = s.recv(1) == b"x"
    except OSError: answered = False
    alive, refused = alive + answered, refused + (not answered)
say(1400, refused, alive)""")
    check(reached == 1400 and 900 <= alive <= 1024 and refused == reached - alive, (reached, refused, alive))
    check(any(d["rule"] == "limit of the relay" for d in result["denials"]), result["denials"])


@test
def slow_and_half_open(world):
    """Connections that say nothing, and hellos that never end, while another works."""
    (page, ended), _ = world.python((*GOOD, "--nofile", "3000"), """
idle = [socket.create_connection(("good.test", 80), timeout=60) for _ in range(300)]
slow = [socket.create_connection(("good.test", 80), timeout=60) for _ in range(100)]
for s in slow: s.sendall(b"GET / HTTP/1.1\\r\\nX: ")
page = get("http://good.test/beside")
ended = 0
for s in slow:
    try: ended += s.recv(1) == b""
    except OSError: ended += 1
say(page, ended)""")
    check(page == "host=good.test /beside\n" and ended == 100, (page, ended))


@test
def broken_queries(world):
    """Bytes that are no query are not answered, and the next one is."""
    (values,), _ = world.python(GOOD, """
import os, random
random.seed(9)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def throw(data):
    try: s.sendto(data, ("203.0.113.53", 53))
    except OSError: pass
for size in (0, 1, 11, 12, 13, 17, 300, 512, 4096, 4097, 60000):
    throw(os.urandom(size)); throw(b"\\0" * size); throw(b"\\xff" * size); throw(b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"\\xc0\\x0c" * (size // 2))
head = b"ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0"
for i in range(3000): throw(head + bytes(random.randrange(256) for _ in range(random.randrange(60))))
t = [socket.create_connection(("203.0.113.53", 53), timeout=30) for _ in range(40)]
for c in t:
    try: c.sendall(b"\\xff\\xff" + b"x" * 100)
    except OSError: pass
say(get("http://good.test/after"))""")
    check(values == "host=good.test /after\n", values)


@test
def limits_hold_the_relay(world):
    """px-net works for the box, and is in its groups; both are gone afterwards."""
    if os.getuid() != 0:
        raise Skip("an ordinary user has no control group here")
    process = world.spawn("exec", *OPEN, "--memory", "64m", "--cpus", "1", "--", "sleep", "1000")
    until(lambda: leaks_of("px-net"), "there is no px-net")
    pid = leaks_of("px-net")[0]
    held = Path(f"/proc/{pid}/cgroup")
    until(lambda: any("memory" in line and "/px-" in line or line.startswith("0::") and "/px-" in line for line in held.read_text().splitlines()),
          f"px-net is in no group of the box: {held.read_text()}")
    check(process.poll() is None, "the box has ended")
    process.terminate()
    process.communicate(timeout=LIMIT_S)
    check(not leaks_of("px-net"), "px-net outlives its box")
    done = world.result((*OPEN, "--memory", "32m", "--pids", "4"), "python3", "-c", "x = bytearray(1 << 28)")
    check(done["status"] == "limit" or done["limits_hit"], done["status"])
    check(not any("network" in hint for hint in done["hints"]), done["hints"])
    (page,), _ = world.python((*OPEN, "--memory", "64m", "--pids", "1"), 'say(get("http://good.test/p"))')
    check(page == "host=good.test /p\n", page)


@test
def relay_dies_with_box(world):
    """However the box or its maker ends, px-net ends, too."""
    def relays():
        return leaks_of("px-net")
    process = world.spawn("exec", *OPEN, "--", "sleep", "1000")
    until(relays, "there is no px-net")
    process.kill()
    process.wait()
    until(lambda: not relays(), f"px-net outlives its engine: {relays()}")
    world.result((*OPEN, "--timeout", "1s"), "python3", "-c", 'import socket, time; s = socket.create_connection(("good.test", 7000)); time.sleep(1000)')
    check(not relays(), f"px-net outlives its box: {relays()}")


@test
def relay_killed(world):
    """Without its relay a box has no network, and nothing else happens to it."""
    process = subprocess.Popen([world.px, "--json", "exec", *OPEN, "--", "python3", "-c", HELPERS + """
import time
before, after = get("http://good.test/before"), ""
open("/tmp/up", "w").close()
end = time.monotonic() + 50
while time.monotonic() < end and not after.startswith("failed"):
    after = raw("203.0.113.10", 80); time.sleep(0.05)
say(before, after)"""], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=world.top, env=world.environment, text=True)
    world.children.append(process)
    until(lambda: leaks_of("px-net"), "there is no px-net")
    time.sleep(0.5)
    for pid in leaks_of("px-net"):
        os.kill(pid, 9)
    out, _ = process.communicate(timeout=LIMIT_S)
    result = json.loads(out)
    before, after = json.loads(result["stdout"])
    fails(after, "the box still has a network")
    check(any("network" in hint for hint in result["hints"]), result["hints"])


def leaks_of(name):
    """Living processes of this user by that name. px-net shows nothing of itself to an ordinary user, so that its namespace is asked for
    only where that can be known: root must not count those of others."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            status = dict(line.split(":\t", 1) for line in Path(f"/proc/{entry}/status").read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if status["Name"] == name and status["State"][0] != "Z" and int(status["Uid"].split()[0]) == os.getuid() and same_network(entry):
            found.append(int(entry))
    return found


def same_network(pid):
    try:
        return os.getuid() != 0 or os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
    except OSError:
        return False


# ---- running ------------------------------------------------------------------------------------------------------------


def attempt(function, px, top, far):
    place = tempfile.mkdtemp(prefix=function.__name__[:12] + ".", dir=top)
    world = World(px, place, far)
    verdict, why = verdict_of(function, world)
    try:
        world.close()
    except Exception as error:
        verdict, why = "not ok", f"{why}; cleaning up: {error}"
    left = leaks.processes_left()
    if left and verdict != "not ok":
        verdict, why = "not ok", f"left {left}"
    subprocess.run(["rm", "-rf", "--", place], check=False)
    return verdict, why


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def join_networks(far):
    """This process moves into a network of its own, with a cable to that of the servers. The servers."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) < 0:
        raise Skip("no network namespace can be made")
    servers = subprocess.Popen(["unshare", "--net", "--", sys.executable, str(TOP / "network/servers.py"), far], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    ip("link", "set", "lo", "up")
    here = os.stat("/proc/self/ns/net").st_ino
    until(lambda: os.stat(f"/proc/{servers.pid}/ns/net").st_ino != here, "the servers have no network of their own")
    ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(servers.pid))
    ip("link", "set", "near", "up")
    ip("addr", "add", "203.0.113.1/24", "dev", "near")
    ip("addr", "add", "2001:db8:1::1/64", "dev", "near", "nodad")
    ip("route", "add", "default", "via", FOUR)
    ip("-6", "route", "add", "default", "via", SIX)
    Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647")
    print("go", file=servers.stdin, flush=True)
    if servers.stdout.readline() != "ready\n":
        raise Skip("the servers of the test did not start")
    return servers


def begin(options, script, scripts, before):
    before()
    far = tempfile.mkdtemp(prefix="network-far.")
    os.chmod(far, 0o755)
    servers = None
    try:
        servers = join_networks(far)
        px = options.px.resolve()
        programs = [px.with_name(name) for name in ("px", "px-main", "px-net", "px-pasta")]
        top = publish("network", programs, [TOP / name for name in ("network/run.py", "leaks.py", *scripts)], options.uid)
        return start_again(top, script, options, environment={**os.environ, "NETWORK_FAR": far})
    except Skip as why:
        print(f"skip network: {why}\n0 passed, 0 failed, 1 skipped")
        return 0
    finally:
        if servers:
            servers.communicate()
        subprocess.run(["rm", "-rf", "--", far], check=False)


def main(script="network/run.py", scripts=(), before=lambda: None):
    """Also of others that have cases for the same networks: their own script, all they need, and what is done first."""
    options = parser("px").parse_args()
    if options.published:
        leaks.become_subreaper()
        far = os.environ["NETWORK_FAR"]
        return tell((f.__name__, *attempt(f, str(options.px / "px"), str(options.px / "work"), far)) for f in chosen(TESTS, options.only))
    if os.geteuid() != 0:
        print("skip network: only root can make the networks of the test\n0 passed, 0 failed, 1 skipped")
        return 0
    return begin(options, script, scripts, before)


if __name__ == "__main__":
    sys.exit(main())
