"""What px-net costs: a start, a connection and bytes through it, beside the host's plain loopback and those who do the same
with packets. The server is a process of this host; boxes reach it at 10.0.2.2."""

import contextlib
import os
import shutil
import socket
import subprocess

import measure
import report
from rows import TRUE, Row

BULK_GBIT = 64 * (1 << 20) * 8 / 1e9
THROUGH_GOALS = [("gbit_s", ">=", 12)]
START_GOALS = [("extra_ms", "<=", 2)]


def default_gateway():
    """Its address, or an empty text."""
    with open("/proc/net/route", encoding="ascii") as file:
        found = [words[2] for words in map(str.split, file) if words[1] == "00000000"]
    return socket.inet_ntoa(bytes.fromhex(found[0])[::-1]) if found else ""


class Place:
    """The server, and the namespace that slirp4netns serves."""

    def __init__(self, site, stack):
        self.site, self.program = site, os.path.join(site.out, "net")
        self.stack = stack
        self.port = self.start([self.program, "serve"]).stdout.readline().strip()

    def start(self, command, **more):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
        self.stack.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.stdin.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
        process.stdout.close()

    def px_row(self, mode):
        options = ["--net", "outbound", "--host-port", self.port, "-v", f"{self.program}:/net:ro", "-i"]
        return Row("px exec --net outbound", [self.site.px, "exec", *options, "--", "/net", mode, "10.0.2.2", self.port], serves=True,
                   goals=[] if mode == "connect" else THROUGH_GOALS)

    def pasta_row(self, name, mode, options, address):
        note = "not installed (passt)" if not shutil.which("pasta") else "" if os.path.exists("/dev/net/tun") else "needs /dev/net/tun"
        if not note and os.geteuid() == 0:
            note = "left out: as root it becomes nobody; run this as an ordinary user"
        return Row(name, ["pasta", "--config-net", *options, "--", self.program, mode, address, self.port], note=note, serves=True)

    def pasta_rows(self, mode):
        """Its own way for loopback, where it splices as px-net does, and the way of packets to every other server; the address of
        the gateway leads to this host."""
        gateway = default_gateway()
        splice = self.pasta_row("pasta, loopback", mode, ["-T", self.port], "127.0.0.1")
        splice.note = splice.note or ("left out: that of Debian 12 hangs" if mode == "up" else "")
        tap = self.pasta_row("pasta, tap", mode, [], gateway)
        tap.note = tap.note or ("" if gateway else "needs a default route")
        return [splice, tap]

    def slirp_row(self, mode):
        row = Row("slirp4netns", note="" if shutil.which("slirp4netns") else "not installed", serves=True)
        if not row.note and os.geteuid() != 0:
            row.note = "needs root"
        if not row.note and not os.path.exists("/dev/net/tun"):
            row.note = "needs /dev/net/tun"
        if not row.note:
            holder = self.start(["unshare", "--net", "--", "sh", "-c", "echo up; read end"])
            holder.stdout.readline()
            ready, tell = os.pipe()
            self.start(["slirp4netns", "--configure", "--ready-fd", str(tell), str(holder.pid), "tap0"], pass_fds=(tell,))
            os.close(tell)
            if not os.read(ready, 1):
                row.note = "fails: it does not come up"
            os.close(ready)
            row.command = ["nsenter", "-t", str(holder.pid), "-n", "--", self.program, mode, "10.0.2.2", self.port]
        return row

    def rows(self, mode):
        return [Row("loopback of the host", [self.program, mode, "127.0.0.1", self.port], serves=True), self.px_row(mode), *self.pasta_rows(mode),
                self.slirp_row(mode)]


def over_first(rows, results):
    """What each costs beyond the first row; for bytes also how many a second."""
    for row, result in zip(rows, results):
        if "p50_ms" in result and "p50_ms" in results[0]:
            result["extra_ms"] = result["p50_ms"] - results[0]["p50_ms"]
            result["gbit_s"] = BULK_GBIT / (result["p50_ms"] / 1e3)
            result["verdict"] = report.verdict(row.goals, result)
    return results


def bench_one(site, rows, rounds, head, *columns):
    results = over_first(rows, report.latency_results(rows, measure.latency(rows, site, rounds)))
    report.table(results, [("p50 ms", "p50_ms", 3), ("p99 ms", "p99_ms", 3), *columns], head)
    return results


def bench(site, rounds):
    with contextlib.ExitStack() as stack:
        place = Place(site, stack)
        start = [site.px_row(TRUE, "--net", "loopback"), site.px_row(TRUE, "--net", "outbound", goals=START_GOALS),
                 site.px_row(TRUE, "--allow-net", "example.org", goals=START_GOALS), site.px_row(TRUE, "--net", "loopback", "--memory", "64m"),
                 site.px_row(TRUE, "--net", "outbound", "--memory", "64m")]
        if os.geteuid() != 0:
            start[-1].note = start[-2].note = "needs root"
        more, bulk = ("more ms", "extra_ms", 3), ("Gbit/s", "gbit_s", 1)
        return {"start": bench_one(site, start, rounds, "start, busybox true", more),
                "connect": bench_one(site, place.rows("connect"), rounds, "a connection, a line and a byte back", more),
                "bulk": bench_one(site, place.rows("bulk"), max(10, rounds // 5), "64 MiB to the box", bulk),
                "up": bench_one(site, place.rows("up"), max(10, rounds // 5), "64 MiB from the box", bulk)}
