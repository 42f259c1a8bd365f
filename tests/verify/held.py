#!/usr/bin/python3
"""held.py PX - `px sandbox verify` tells the truth: green where boxes are whole, red where one mechanism is missing.

    presets     no check fails for the presets default, session, untrusted and task, and none of the network is skipped
    self-test   every check fails once what holds it is switched off, and the loss of every mechanism is noticed
    mechanisms  the same from outside, by --without and the exit status, for each mechanism of policy/without.def
    runtimes    with runc and crun it runs too, and says what differs
    landlock    where nobody can make a user namespace it runs in the landlock tier, and says what differs

As root all of it is done once more as an ordinary user, where that can have it. Prints `ok NAME`, `not ok NAME: why`,
`skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
USER = 1200
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
# A place where nobody can make a user namespace. Who sets it up keeps nothing of what that takes.
NOWHERE = ("unshare", "--user", f"--map-user={USER}", f"--map-group={USER}", "--keep-caps", "sh", "-c",
           'echo 0 >/proc/sys/user/max_user_namespaces && '
           'exec setpriv --ambient-caps -all --inh-caps -all --bounding-set -all "$@"', "sh")
LIMIT = 600                     # seconds after which something is broken; nothing is measured
COUNTS = {"ok": 0, "not ok": 0, "skip": 0}


def say(name, verdict, why=""):
    COUNTS[verdict] += 1
    print(f"{verdict} {name}" + (f": {why}" if why else ""), flush=True)


def verify(px, prefix, *options):
    """(exit status, report); the report is None if there was an error instead."""
    done = subprocess.run([*prefix, px, "--json", "sandbox", "verify", "--jobs", "4", *options], capture_output=True,
                          text=True, timeout=LIMIT, check=False, stdin=subprocess.DEVNULL)
    report = json.loads(done.stdout)
    return done.returncode, report if "schema" in report else None, report


def failed(report):
    return {check["name"]: check["reason"] for check in report["checks"] if check["result"] == "failed"}


def untried(report):
    """Checks of the network that were skipped, but for want of something in the base."""
    skipped = [check for check in report["checks"] if check["category"] == "network" and check["result"] == "skipped"]
    return {check["name"]: check["reason"] for check in skipped if "this base" not in check["reason"]}


def green(name, px, prefix, *options, tier="full", differs=False):
    status, report, answer = verify(px, prefix, *options)
    if report is None:
        say(name, "skip" if answer["details"]["code"] == "PX013" else "not ok", answer["message"])
    elif status != 0 or report["failed"]:
        say(name, "not ok", f"exit status {status}, {failed(report)}")
    elif report["tier"] != tier or report["passed"] < 100:
        say(name, "not ok", f"tier {report['tier']}, {report['passed']} passed")
    elif tier == "full" and untried(report):
        say(name, "not ok", f"what was not tried: {untried(report)}")
    elif bool(report["differs"]) != differs:
        say(name, "not ok", f"what differs: {report['differs']}")
    else:
        say(name, "ok")


def presets(px, prefix, who):
    for preset in ("default", "session", "untrusted", "task"):
        green(f"{who}/preset-{preset}", px, prefix, "--preset", preset)


def self_test(px, prefix, who):
    whole, noexec = ("--preset", "default"), ("--preset", "untrusted", "--only", "tmp_noexec")    # as no other has it
    for options in (whole, noexec) if who == "root" else (whole,):
        status, report, answer = verify(px, prefix, "--self-test", *options)
        if report is None or status != 0:
            say(f"{who}/self-test-{options[1]}", "not ok", f"exit status {status}, {failed(report) if report else answer}")
        else:
            say(f"{who}/self-test-{options[1]}", "ok")


def mechanisms():
    return re.findall(r'^PX_WITHOUT\(\w+, "([^"]+)"', (REPO / "src/core/policy/without.def").read_text(), re.M)


def rows(px):
    """{name: [layers]} of every check."""
    listing = subprocess.run([px, "sandbox", "verify", "--list"], capture_output=True, text=True, check=True).stdout
    return {line.split("\t")[0]: line.split("\t")[2].split("+") for line in listing.splitlines()}


def red(px, prefix, who):
    """Each mechanism is missed by a check that it alone holds, or by one of several layers when the others are gone too."""
    table = rows(px)
    for mechanism in mechanisms():
        alone = [name for name, layers in table.items() if layers == [mechanism]][:1 if mechanism == "timeout" else 3]
        shared = sorted((layers, name) for name, layers in table.items() if mechanism in layers and len(layers) > 1)
        without, names = ([mechanism], alone) if alone else (shared[0][0], [shared[0][1]])
        status, report, answer = verify(px, prefix, "--only", ",".join(names), "--without", ",".join(without))
        name = f"{who}/without-{mechanism}"
        if report is None:
            say(name, "not ok", answer["message"])
        elif failed(report) and status == 1:
            say(name, "ok")
        elif all(check["result"] == "skipped" for check in report["checks"] if check["name"] in names):
            say(name, "skip", "none of its checks can be tried by this caller")
        else:
            say(name, "not ok", f"exit status {status} and nothing failed of {names}")


def runtimes(px):
    for runtime in ("crun", "runc"):
        if not shutil.which(runtime):
            say(f"root/runtime-{runtime}", "skip", "it is not installed")
        else:
            green(f"root/runtime-{runtime}", px, (), "--runtime", runtime, tier=f"oci:{runtime}", differs=True)


def landlock(px):
    prefix = (*AS_USER, *NOWHERE) if os.geteuid() == 0 else NOWHERE
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        say("landlock", "skip", "no place without user namespaces can be made")
        return
    green("landlock", px, prefix, "--require", "landlock", tier="landlock", differs=True)


def publish(px, where):
    """Copies that any user can run, wherever the repository lies."""
    where.chmod(0o755)
    for name in ("px", "px-main", "px-attack", "px-layer", "px-net", "px-outside"):
        shutil.copyfile(Path(px).resolve().with_name(name), where / name)
        (where / name).chmod(0o755)
    return str(where / "px")


def main(words):
    if len(words) != 1:
        print(__doc__.split("\n\n")[0], file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="held.", dir="/tmp") as where:
        px = publish(words[0], Path(where))
        os.environ["TMPDIR"] = "/tmp"       # the user's runs write there, too
        who = "root" if os.geteuid() == 0 else "user"
        for prefix, name in [((), who)] + ([(AS_USER, "user")] if who == "root" else []):
            presets(px, prefix, name)
            self_test(px, prefix, name)
            red(px, prefix, name)
        if who == "root":
            runtimes(px)
        landlock(px)
    print("{ok} passed, {not ok} failed, {skip} skipped".format(**COUNTS))
    return 1 if COUNTS["not ok"] or not COUNTS["ok"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
