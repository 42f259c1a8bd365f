#!/usr/bin/python3
"""python.py [--as UID] [--only WORD...] BUILD - the tests of the Python package and its examples, with Debian's python3 and pytest.

The package is put together as a wheel would install it, where any user can reach it, and tested there. Prints `ok NAME`,
`not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from cases import parser, publish, start_again, tell  # noqa: E402

LIMIT_S = 1500
PROGRAMS = ("px-main", "px-layer")      # beside px, for what has to be in its store


def skip(why):
    """The whole of it, which is no failure."""
    tell([("python", "skip", why)])
    return 0


def missing(build):
    if importlib.util.find_spec("pytest") is None:
        return "python3-pytest is not installed"
    if not (build / "glibc" / "python" / "_px.abi3.so").exists():
        return "the package was not built (python3-dev)"
    return ""


def prepare(build, options):
    repo = HERE.parent
    top = publish("px-python", [build / "px", *(build / "glibc" / name for name in PROGRAMS)], [HERE / "python.py"], options.uid)
    subprocess.run(
        [
            sys.executable,
            str(repo / "python" / "build_backend.py"),
            "stage",
            str(build / "glibc"),
            str(top / "site"),
        ],
        check=True,
    )
    backend = [sys.executable, str(repo / "python" / "build_backend.py")]
    subprocess.run([*backend, "wheel", str(build / "glibc"), str(top)], check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(
        repo / "python" / "tests",
        top / "cases",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copytree(
        repo / "examples" / "python",
        top / "examples",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(repo / "python" / "pyproject.toml", top / "site")
    subprocess.run(["chmod", "-R", "go+rX", str(top)], check=True)
    return top


# ---- pytest ----


def verdict(case):
    """(name, verdict, why) of one case of the report."""
    name = f"{case.get('classname', '').rpartition('.')[2]}/{case.get('name')}"
    for kind, word in (("failure", "not ok"), ("error", "not ok"), ("skipped", "skip")):
        found = case.find(kind)
        if found is not None:
            text = (
                found.get("message", "")
                if word == "skip"
                else f"{found.get('message', '')}\n{(found.text or '')[-1500:]}"
            )
            return name, word, text.replace("\n", "\n    | ")
    return name, "ok", ""


def pytest(top, only):
    report = top / "work" / "report.xml"
    words = ["-k", " or ".join(only)] if only else []
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            str(top / "work" / "pytest"),
            "--junitxml",
            str(report),
            *words,
            str(top / "cases"),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=top / "work",
    )
    if not report.exists():
        return [("pytest", "not ok", (done.stdout + done.stderr)[-1500:])]
    return [verdict(case) for case in xml.parse(report).iter("testcase")]


# ---- examples and tools ----


def example(path):
    done = subprocess.run(
        [sys.executable, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode == 77:
        return f"example/{path.name}", "skip", done.stdout.strip().rpartition("\n")[2]
    return (
        f"example/{path.name}",
        "ok" if done.returncode == 0 else "not ok",
        "" if done.returncode == 0 else done.stderr[-1500:],
    )


def tool(top, name, *words):
    if not shutil.which(name):
        return name, "skip", f"{name} is not installed"
    done = subprocess.run(
        [name, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=top / "site",
        env={**os.environ, "MYPY_CACHE_DIR": os.devnull, "RUFF_NO_CACHE": "1"},
    )
    return (
        name,
        "ok" if done.returncode == 0 else "not ok",
        "" if done.returncode == 0 else (done.stdout + done.stderr)[-1500:],
    )


def wheel(top):
    """What pip installs of the wheel works without the repository."""
    if importlib.util.find_spec("pip") is None:
        return "wheel", "skip", "python3-pip is not installed"
    target = top / "work" / "installed"
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target),
                           *map(str, top.glob("*.whl"))], check=False, capture_output=True, text=True, timeout=300)
    code = ("import px, px.sync; s = px.sync.Sandbox(); assert s.run('echo in').communicate()[0] == b'in\\n'; s.close(); print(px.__file__)")
    if done.returncode == 0:
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120, cwd="/",
                              env={**os.environ, "PYTHONPATH": str(target)})
    good = done.returncode == 0 and str(target) in done.stdout
    return "wheel", "ok" if good else "not ok", "" if good else (done.stdout + done.stderr)[-1500:]


def everything(top, only):
    yield from pytest(top, only)
    if not only:
        yield from (example(path) for path in sorted((top / "examples").glob("*.py")))
        yield wheel(top)
        yield tool(top, "mypy")
        yield tool(top, "ruff", "check", "px")


def main():
    options = parser("build").parse_args()
    if not options.published:
        why = missing(options.build)
        if why:
            return skip(why)
        return start_again(
            prepare(options.build.resolve(), options), "python.py", options
        )
    os.environ["PYTHONPATH"] = str(options.build / "site")
    os.environ["PX"] = str(options.build / "px")
    return tell(everything(options.build, options.only))


if __name__ == "__main__":
    sys.exit(main())
