#!/usr/bin/python3
"""python.py [--as UID] [--real] [--only WORD...] BUILD - the tests of the Python package and its examples, with Debian's python3 and pytest.

The package is put together as a wheel would install it, where any user can reach it, and tested there. Prints `ok NAME`,
`not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped". --real: those of the adapters for agent frameworks, with
the frameworks of the package index; the others skip what needs them.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import real  # noqa: E402
from cases import Skip, parser, publish, start_again, tell, verdict_of  # noqa: E402

LIMIT_S = 1500
PROGRAMS = ("px-main", "px-layer", "tests/swapper")     # beside px, for what has to be in its store, and for races
FRAMEWORKS = ("pydantic-ai-slim==2.66.0", "deepagents==0.7.32", "smolagents==1.26.0", "openai-agents==0.24.0")  # langchain-core comes with the second


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
    top = publish("px-python", [build / "px", *(build / "glibc" / name for name in PROGRAMS)], [HERE / "python.py", HERE / "real.py"],
                  options.uid)
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
    shutil.copy(HERE / "race.py", top / "cases")
    shutil.copytree(
        repo / "examples" / "python",
        top / "examples",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(repo / "python" / "pyproject.toml", top / "site")
    subprocess.run(["chmod", "-R", "go+rX", str(top)], check=True)
    return top


# ---- frameworks ----


def frameworks(top):
    """The directory that they are in, for all users of a run; Skip where they cannot be had."""
    target = real.place(top) / "frameworks"
    if (target / "whole").exists():
        return target
    if importlib.util.find_spec("pip") is None:
        raise Skip("python3-pip is not installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input"]
    with tempfile.TemporaryDirectory() as probe:
        found = subprocess.run([*pip, "download", "--no-deps", "--dest", probe, "iniconfig"], check=False, capture_output=True, text=True)
    if found.returncode != 0:
        raise Skip(f"the package index cannot be reached: {found.stderr.strip().splitlines()[-1:]}")
    done = subprocess.run([*pip, "install", "--no-compile", "--only-binary", ":all:", "--target", str(target), *FRAMEWORKS],
                          check=False, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise Skip(f"the frameworks cannot be had: {done.stderr[-500:]}")
    (target / "whole").touch()
    subprocess.run(["chmod", "-R", "go+rX", str(target)], check=True)
    return target


# ---- pytest ----


def verdict(case):
    """(name, verdict, why) of one case of the report."""
    name = f"{case.get('classname', '').rpartition('.')[2]}/{case.get('name')}"
    for kind, word in (("failure", "not ok"), ("error", "not ok"), ("skipped", "skip")):
        found = case.find(kind)
        if found is not None:
            text = found.get("message", "") if word == "skip" else f"{found.get('message', '')}\n{(found.text or '')[-1500:]}"
            if text == "collection skipped":  # of a whole file; the reason is elsewhere
                text = (found.text or "").rpartition("Skipped: ")[2].rstrip("')\n")
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
    code = ("import px, px.sync, px.adapters.mcp; s = px.sync.Sandbox(); assert s.run('echo in').communicate()[0] == b'in\\n'; s.close(); print(px.__file__)")
    if done.returncode == 0:
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120, cwd="/",
                              env={**os.environ, "PYTHONPATH": str(target)})
    good = done.returncode == 0 and str(target) in done.stdout
    return "wheel", "ok" if good else "not ok", "" if good else (done.stdout + done.stderr)[-1500:]


def adapters(top):
    """What the others skip: nothing of it may be skipped here for want of a framework."""
    examples = (example(path) for path in sorted((top / "examples").glob("agent_*.py")))
    for name, word, why in (*pytest(top, ["adapters"]), *examples):
        yield name, "not ok" if word == "skip" and "not installed" in why else word, why


def everything(top, only):
    yield from pytest(top, only)
    if not only:
        yield from (example(path) for path in sorted((top / "examples").glob("*.py")))
        yield wheel(top)
        yield tool(top, "mypy")
        yield tool(top, "ruff", "check", "px")


def main():
    words = parser("build")
    words.add_argument("--real", action="store_true")
    options = words.parse_args()
    if not options.published:
        why = missing(options.build)
        if why:
            return skip(why)
        top = prepare(options.build.resolve(), options)
        verdict, why = verdict_of(lambda: os.environ.update(PX_FRAMEWORKS=str(frameworks(top)) if options.real else ""))
        if verdict != "ok":
            shutil.rmtree(top)
            tell([("frameworks", verdict, why)])
            return verdict != "skip"
        return start_again(top, "python.py", options, *(["--real"] if options.real else []))
    found = os.environ.pop("PX_FRAMEWORKS")
    os.environ["PYTHONPATH"] = f"{options.build / 'site'}:{found}".rstrip(":")
    os.environ["PX"] = str(options.build / "px")
    return tell(adapters(options.build) if options.real else everything(options.build, options.only))


if __name__ == "__main__":
    sys.exit(main())
