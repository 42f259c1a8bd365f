#!/usr/bin/python3
"""oracles.py ASK - our readers against others that answer the same questions: tomllib, python3-packaging, readelf.

Random questions from a fixed seed. Where the other is known to be wrong by the standard's words, the question is left out, here and
with the reason. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import datetime
import glob
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib

ASK = sys.argv[1]
COUNTS = {"ok": 0, "not ok": 0, "skip": 0}


def tell(verdict, name, why=""):
    COUNTS[verdict] += 1
    print(f"{verdict} {name}{': ' + why if why else ''}", flush=True)


def ask(*words, lines=None):
    text = None if lines is None else "".join(line + "\n" for line in lines)
    done = subprocess.run([ASK, *words], input=text, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout.splitlines()


def compare(name, questions, wanted, answers):
    wrong = [(q, w, a) for q, w, a in zip(questions, wanted, answers) if w != a]
    if len(answers) != len(questions):
        tell("not ok", name, f"{len(answers)} answers to {len(questions)} questions")
    elif wrong:
        tell("not ok", name, f"{len(wrong)} of {len(questions)} differ, such as {wrong[0]!r}")
    else:
        tell("ok", f"{name} ({len(questions)} questions)")


# ---- TOML ----

def random_key(rng):
    return rng.choice(["a", "b", "c-d", "e_f", "1", '"x y"', "'q.r'", "a.b", "b.c", '"\\u00e9"', "tool.px"])


def random_value(rng, depth=0):
    kind = rng.randrange(9 if depth > 2 else 12)
    plain = ["1", "-17", "0x1F", "1_000", "3.25", "1e3", "true", "false", '"text"', "'lit'", '"\\t\\"\\u00fc"', "1979-05-27", "07:32:00",
             "1979-05-27T07:32:00", "1979-05-27 07:32:00Z", "1979-05-27T00:32:00.5-07:00", '"""a\nb"""', "'''c\nd'''", "inf", "01", "1.", "tru",
             '"open', "1__0", "2021-02-30", "+5", "nan", "-0.0", "1e", "{", "[1, 2", '"\\x"']
    if kind < 9:
        return rng.choice(plain)
    if kind == 9:
        return "[" + rng.choice([", ", ",", " ,\n  "]).join(random_value(rng, depth + 1) for _ in range(rng.randrange(4))) + rng.choice(["]", ",]", "]"])
    return "{" + ", ".join(f"{random_key(rng)} = {random_value(rng, depth + 1)}" for _ in range(rng.randrange(3))) + "}"


def random_toml(rng):
    lines = []
    for _ in range(rng.randrange(1, 9)):
        r = rng.random()
        if r < 0.2:
            lines.append(f"[{random_key(rng)}]")
        elif r < 0.3:
            lines.append(f"[[{random_key(rng)}]]")
        elif r < 0.35:
            lines.append(rng.choice(["# remark", "", "   ", "junk", "= 1", "[", "\t# \u00e4"]))
        else:
            lines.append(f"{random_key(rng)} = {random_value(rng)}{rng.choice(['', ' # why', ''])}")
    return rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])


def typed(value):
    """The value as `ask toml` writes it."""
    if isinstance(value, dict):
        return {k: typed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [typed(v) for v in value]
    if isinstance(value, bool):
        return {"type": "bool", "value": str(value).lower()}
    if isinstance(value, str):
        return {"type": "string", "value": value}
    if isinstance(value, int):
        return {"type": "integer", "value": str(value)}
    if isinstance(value, float):
        return {"type": "float", "value": "nan" if math.isnan(value) else value}
    return {"type": "time", "value": value.isoformat()}


def same_types(ours):
    """What `ask toml` wrote, with floats and times as values."""
    if isinstance(ours, list):
        return [same_types(v) for v in ours]
    if set(ours) == {"type", "value"} and isinstance(ours["value"], str):
        kind, text = ours["type"], ours["value"]
        if kind == "float":
            number = float(text)
            return {"type": "float", "value": "nan" if math.isnan(number) else number}
        if kind.startswith(("date", "time")):
            text = text.upper().replace("Z", "+00:00")
            reader = {"date-local": datetime.date, "time-local": datetime.time}.get(kind, datetime.datetime)
            return {"type": "time", "value": reader.fromisoformat(text).isoformat()}
        return ours
    return {k: same_types(v) for k, v in ours.items()}


def toml():
    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as place:
        paths, wanted = [], []
        for i in range(4000):
            text = random_toml(rng)
            path = os.path.join(place, str(i))
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            paths.append(path)
            try:
                wanted.append(typed(tomllib.loads(text.replace("\r\n", "\n") if "'''" not in text and '"""' not in text else text)))
            except tomllib.TOMLDecodeError:
                wanted.append("no")
        answers = []
        for at in range(0, len(paths), 1000):
            answers += ask("toml", *paths[at:at + 1000])
        answers = [a if a == "no" else same_types(json.loads(a)) for a in answers]
        questions = [open(p, encoding="utf-8", newline="").read() for p in paths]
    if sum(w != "no" for w in wanted) < 300:
        tell("not ok", "toml", "too few of the random documents are valid")
    compare("toml", questions, wanted, answers)


# ---- versions, markers, wheels ----

def random_version(rng, local=True):
    text = ".".join(str(rng.choice([0, 0, 1, 2, 7, 10])) for _ in range(rng.randint(1, 4)))
    if rng.random() < 0.4:
        text += rng.choice(["", ".", "-", "_"]) + rng.choice(["a", "b", "rc", "c", "alpha", "beta", "pre", "preview", "RC"]) + rng.choice(["", "0", "1", ".2"])
    if rng.random() < 0.3:
        text += rng.choice([".post1", "-1", ".post", "post2", ".rev4"])
    if rng.random() < 0.3:
        text += rng.choice([".dev0", "dev1", "-dev", "_dev3"])
    if local and rng.random() < 0.3:
        text += "+" + rng.choice(["abc", "1", "1.2", "ubuntu-1", "A_b.007", "x.", "10", "9.z"])
    if rng.random() < 0.03:
        text += rng.choice(["x", "..", "!", "+"])
    return text


def random_range(rng):
    clauses = []
    for _ in range(rng.randint(1, 2)):
        op = rng.choice(["==", "!=", "<=", ">=", "<", ">", "~=", "=="])
        # With a suffix, ~= is read by the old name of the suffix there.
        version = ".".join(str(rng.choice([0, 1, 2, 10])) for _ in range(rng.randint(1, 3))) if op == "~=" else random_version(rng)
        clauses.append(op + rng.choice(["", " "]) + version + (".*" if op in ("==", "!=") and rng.random() < 0.4 else ""))
    return ",".join(clauses)


def versions():
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version
    rng, questions, wanted = random.Random(5), [], []
    for _ in range(8000):
        a, b = random_version(rng), random_version(rng)
        questions.append(f"{a}\t{b}")
        try:
            wanted.append(str((Version(a) > Version(b)) - (Version(a) < Version(b))))
        except InvalidVersion:
            wanted.append("-22")
    compare("versions", questions, wanted, ask("version", lines=questions))
    questions, wanted = [], []
    while len(questions) < 8000:
        version, text = random_version(rng), random_range(rng)
        try:
            parsed = Version(version)
        except InvalidVersion:
            continue
        questions.append(f"{version}\t{text}")
        try:
            wanted.append(str(int(SpecifierSet(text).contains(parsed, prereleases=True))))
        except (InvalidSpecifier, InvalidVersion):
            wanted.append("-22")
    compare("ranges", questions, wanted, ask("fits", lines=questions))


MARKER_ENV = {"implementation_name": "cpython", "implementation_version": "3.11.2", "os_name": "posix", "platform_machine": "x86_64",
              "platform_python_implementation": "CPython", "platform_release": "", "platform_version": "", "platform_system": "Linux",
              "python_full_version": "3.11.2", "python_version": "3.11", "sys_platform": "linux", "extra": "test-x"}


def random_marker(rng, depth=0):
    r = rng.random()
    if depth < 4 and r > 0.5:
        return f"({random_marker(rng, depth + 1)})" if r < 0.6 else \
            random_marker(rng, depth + 1) + rng.choice([" and ", " or "]) + random_marker(rng, depth + 1)
    name, quote = rng.choice(list(MARKER_ENV)), rng.choice("\"'")
    if name == "extra":
        return f"extra {rng.choice(['==', '!='])} {quote}{rng.choice(['test-x', 'Test.X', 'other', 'test_x'])}{quote}"
    value = rng.choice(["3.8", "3.11", "3.11.2", "3.*", "3.11.*", "linux", "win32", "Linux", "posix", "CPython", "x86_64", "4", "", "3.8 3.11"])
    op = rng.choice(["==", "!=", "<", "<=", ">", ">=", "~=", "in", "not in"])
    return f"{name} {op} {quote}{value}{quote}" if rng.random() < 0.8 else f"{quote}{value}{quote} {op} {name}"


def markers():
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison
    from packaging.version import InvalidVersion
    rng, questions, wanted = random.Random(7), [], []
    while len(questions) < 6000:
        text = random_marker(rng)
        try:
            wanted.append(str(int(Marker(text).evaluate(MARKER_ENV))))
        except (InvalidMarker, UndefinedComparison):
            wanted.append("-22")
        except InvalidVersion:
            continue            # it gives up where a text is compared with a version
        questions.append(text)
    compare("markers", questions, wanted, ask("marker", lines=questions))


def wheels():
    from packaging import tags
    places = [p.replace("2_36", "2_36") for p in tags.platform_tags()]
    if "manylinux_2_36_x86_64" not in places or "manylinux_2_37_x86_64" in places or sys.version_info[:2] != (3, 11):
        return tell("skip", "wheels", "this is not Python 3.11 on Debian 12, x86_64")
    questions = [f"a-1-{tag}.whl" for tag in tags.sys_tags()]
    compare("wheels", questions, [str(i) for i in range(len(questions))], ask("wheel", lines=questions))


# ---- ELF ----

def elf():
    if not shutil.which("readelf"):
        return tell("skip", "elf", "readelf is not installed")
    paths = [p for p in sorted(glob.glob("/usr/lib/*/*.so*") + glob.glob("/usr/bin/*")) if os.path.isfile(p)]
    paths = random.Random(9).sample(paths, min(len(paths), 200))
    wanted = []
    for path in paths:
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                wanted.append("-8")
                continue
        said = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=False).stdout.splitlines()
        names = {key: [line.split("[")[1].split("]")[0] for line in said if f"({key})" in line] for key in ("SONAME", "NEEDED")}
        wanted.append("\t".join(["0", names["SONAME"][0] if names["SONAME"] else ""] + names["NEEDED"]))
    compare("elf", paths, wanted, ask("elf", *paths))


def main():
    toml()
    try:
        import packaging  # noqa: F401
    except ImportError:
        tell("skip", "versions, markers, wheels", "python3-packaging is not installed")
    else:
        versions()
        markers()
        wheels()
    elf()
    print(f"{COUNTS['ok']} passed, {COUNTS['not ok']} failed, {COUNTS['skip']} skipped")
    return 1 if COUNTS["not ok"] else 0


sys.exit(main())
