"""real.py - one PX_HOME with the base of the real distribution, for all parts of a run that need it.

It is built by whoever comes first, in the directory that tests/run names; a driver that is started by hand has one of its own. Who only
adds to it uses it as it is: packages that were fetched, and layers that were built, are there for the next one.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from cases import Problem, Skip

LIMIT_S = 1800


def place(top):
    """The directory that the parts share."""
    return Path(os.environ.get("PX_TEST_REAL") or Path(top) / "real")


def environment():
    """What says how this machine reaches the world."""
    kept = ("PX_APT_", "PIP_", "UV_", "SSL_CERT", "REQUESTS_CA", "CURL_CA")
    return {name: value for name, value in os.environ.items() if name.startswith(kept) or name.lower().endswith("_proxy")}


def reachable():
    """Whether the first archive that this machine's apt would ask answers."""
    asked = subprocess.run(["apt-get", "--print-uris", "update"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"^'([^']+/InRelease)'", asked.stdout, re.MULTILINE)
    if not found:
        return False
    try:
        with urllib.request.urlopen(found[1], timeout=30):
            return True
    except (urllib.error.URLError, OSError):
        return False


def home(px, top):
    """(PX_HOME, what `px sandbox base build` says); Skip where it cannot be had."""
    shared = place(top)
    shared.mkdir(exist_ok=True)
    if not shutil.which("apt-get"):
        raise Skip("there is no apt-get here")
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = shared / "home"
        if not found.exists() and not os.environ.get("PX_APT_MIRROR") and not reachable():
            raise Skip("Debian's archive cannot be reached")
        done = subprocess.run([px, "--json", "sandbox", "base", "build", "debian-12"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=LIMIT_S, cwd=shared,
                              env={"PATH": os.environ["PATH"], "HOME": str(shared), "TMPDIR": str(shared), "PX_HOME": str(found)} | environment())
    if done.returncode != 0:
        raise Problem(f"the base cannot be built: {(done.stdout + done.stderr)[-400:]}")
    return found, json.loads(done.stdout)
