#!/usr/bin/python3
"""selftest.py SAMPLE - runs tests/harness/sample.c and checks that the harness noticed everything."""

import os
import re
import subprocess
import sys
import tempfile

DETAILS = {
    "fails_condition": "1 == 2 is not true",
    "fails_integers_of_other_sign": "-1 is -1, not 18446744073709551615",
    "fails_text": '"a" is "a", not NULL',
    "fails_errno": "-2 is -2 (No such file or directory)",
    "fails_in_child": "1 is 1, not 2",
    "fails_descriptor": "leaked descriptor",
    "fails_closed_descriptor": "closed descriptor 0",
    "fails_zombie": "unreaped",
    "fails_child": "left a child process running",
    "fails_orphan": "left process",
    "fails_exit": "ended its process with status 0",
    "fails_crash": "killed by signal 9",
    "fails_deadline": "still running after 1 s",
}


def run(program, *arguments):
    with tempfile.TemporaryDirectory() as top:
        environment = {**os.environ, "TMPDIR": top}
        done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines(), os.listdir(top)


def problems(program):
    names = run(program, "-l")[1]
    status, lines, left = run(program, "-v")
    verdicts = dict(re.findall(r"^(?:ok|FAIL|skip) (\w+)(.*)$", "\n".join(lines), re.MULTILINE))
    if sorted(verdicts) != sorted(names) or len(names) < len(DETAILS):
        yield f"the list is {names}, the verdicts are {sorted(verdicts)}"
    for name in names:
        skipped = name == "skips" or "PX_TEST_WRAP" in verdicts.get(name, "")
        word = "FAIL" if name.startswith("fails") else "skip" if skipped else "ok"
        if not any(line.split(":")[0] == f"{word} {name}" for line in lines):
            yield f"{name} is not {word}"
        if DETAILS.get(name, "") not in verdicts.get(name, ""):
            yield f"{name} says '{verdicts[name]}', not '{DETAILS[name]}'"
    if "skip skips: no luck here" not in lines:
        yield "the reason of a skip is missing"
    if "    | output is shown" not in lines or any("output is not shown" in line for line in lines):
        yield "output is not shown on failure and on failure only"
    totals = [sum(line.startswith(word + " ") for line in lines) for word in ("ok", "FAIL", "skip")]
    if lines[-1:] != ["{} passed, {} failed, {} skipped".format(*totals)] or status != 1:
        yield f"the last line is {lines[-1:]}, the status {status}"
    if left:
        yield f"left behind: {left}"
    if run(program, "passes_and")[:2] != (0, ["1 passed, 0 failed, 0 skipped"]):
        yield "a run of one passing test is not a success of one line"
    if run(program, "no such test")[0] != 1 or run(program, "-x")[0] != 2:
        yield "no test at all, or a wrong option, is taken for a success"


def main():
    found = list(problems(sys.argv[1]))
    for problem in found:
        print(f"FAIL harness: {problem}")
    print("{} passed, {} failed, 0 skipped".format(*((0, 1) if found else (1, 0))))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
