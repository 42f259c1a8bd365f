# Run by python3 -I -c in a setup box, with what the box has and nothing else: one stage in the build of the source archive FILE in /px/in.
#
#     look FILE       what its [build-system] requires, as JSON: a list, or null if it has no such table
#     requires FILE   what its backend asks for besides (get_requires_for_build_wheel), as JSON
#     wheel FILE      the wheel's name on the first line of standard output, then its bytes
#
# The interpreter is the build's own environment's, or the base's with Debian's setuptools. What the archive's code says goes to a log; the
# line of it that tells why goes to standard error.
import importlib
import json
import os
import re
import shutil
import sys
import tomllib
import traceback

SOURCE, WHEELS, LOG, ANSWER = "/var/tmp/source", "/var/tmp/wheel", "/var/tmp/log", "/var/tmp/answer"
LEGACY = "setuptools.build_meta:__legacy__"
# Builds say much; what is missing is said first, by the compiler, the linker, a tool or Python.
TELLING = re.compile(r"fatal error: |cannot find -l|was not found in the pkg-config|Dependency \".*\" not found|executable not found"
                     r"|ModuleNotFoundError: |[a-zA-Z](Error|Unavailable): ")


def stop(words):
    print("error:", words, file=sys.stderr)
    sys.exit(1)


def unpack(file):
    """Always to the same directory: compilers write its name into what they make."""
    os.makedirs(SOURCE)
    os.chdir(SOURCE)
    try:
        shutil.unpack_archive("/px/in/" + file, ".")
    except Exception as why:  # noqa: BLE001
        stop(f"the archive cannot be unpacked: {why}")
    found = os.listdir(".")
    if len(found) == 1 and os.path.isdir(found[0]):
        os.chdir(found[0])


def build_system():
    """The table, or None."""
    try:
        with open("pyproject.toml", "rb") as file:
            table = tomllib.load(file).get("build-system")
    except FileNotFoundError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        stop(f"its pyproject.toml cannot be read: {why}")
    if table is not None and not isinstance(table.get("requires", []), list):
        stop("its pyproject.toml has a [build-system] whose requires is no list")
    return table


def backend(table):
    """The object with the hooks."""
    sys.path[:0] = [os.path.abspath(path) for path in table.get("backend-path", [])]
    module, _, names = table.get("build-backend", LEGACY).partition(":")
    found = importlib.import_module(module)
    for name in names.split(".") if names else ():
        found = getattr(found, name)
    return found


def requires(table):
    hook = getattr(backend(table), "get_requires_for_build_wheel", None)
    return list(hook()) if hook else []


def wheel(table):
    os.makedirs(WHEELS)
    return backend(table).build_wheel(WHEELS)


def logged(work, *words):
    """What it gives; in a process of its own, whose output is the log."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            answer = work(*words)
            with open(ANSWER, "w", encoding="utf-8") as file:
                json.dump(answer, file)
            status = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    if os.waitpid(child, 0)[1] == 0:
        with open(ANSWER, encoding="utf-8") as file:
            return json.load(file)
    with open(LOG, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    print("\n".join([line for line in lines if TELLING.search(line)][:1] or lines[-5:]), file=sys.stderr)
    sys.exit(1)


def show_wheel(name):
    found = os.listdir(WHEELS)
    if found != [name] or not name.endswith(".whl"):
        stop("the archive did not become one wheel")
    with open(os.path.join(WHEELS, name), "rb") as file:
        sys.stdout.buffer.write(name.encode() + b"\n")
        shutil.copyfileobj(file, sys.stdout.buffer)


def main(stage, file):
    os.umask(0o022)
    unpack(file)
    table = build_system()
    if stage == "look":
        print(json.dumps(None if table is None else table.get("requires", [])))
    elif stage == "requires":
        print(json.dumps(logged(requires, table or {})))
    else:
        show_wheel(logged(wheel, table or {}))


main(*sys.argv[1:])
