"""Limits at their edges, from one process with 200 MB of memory, which has to live on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CALLER = """
import json, sys
import px.sync
from px import SandboxError
memory = bytearray(b"x") * (200 << 20)
for words, command in json.load(sys.stdin):
    try:
        with px.sync.Sandbox(**words) as sandbox:
            process = sandbox.run(command, timeout=60)
            stdout, _ = process.communicate()
            answer = {"code": process.returncode, "stdout": stdout.decode()}
    except SandboxError as e:
        answer = {"name": e.name, "fix": str(e.fix)}
    print(json.dumps(answer), flush=True)
assert memory.count(b"x") == 200 << 20
"""

REFUSED = [
    ({"memory": "64"}, "64m"),
    ({"memory": 64}, "64m"),
    ({"memory": "256k"}, "256m"),
    ({"memory": 0}, "unlimited"),
    ({"memory": -1}, ""),
    ({"memory": 2**64}, ""),
    ({"cpus": 0.001}, "0.01"),
    ({"cpus": -1}, ""),
    ({"pids": 0}, "unlimited"),
    ({"pids": -1}, ""),
    ({"disk": 0}, "unlimited"),
    ({"policy": {"nofile": -1}}, ""),
    ({"policy": {"file-size": 0}}, "unlimited"),
    ({"policy": {"cpu-time": "0s"}}, "unlimited"),
]
TAKEN = [
    {"memory": "64m"},
    {"memory": 2**64 - 2},
    {"cpus": "0.05"},
    {"cpus": 10**12},
    {"pids": 2**64 - 2},
    {"disk": 1},
    {"disk": 2**64 - 2},
    {"policy": {"nofile": 2**64 - 2}},
    {"policy": {"file-size": 1}},
    {"policy": {"cpu-time": "1ms"}},
]
EATEN = ["4m", "8m", "16m"]


def wanted(words):
    return {**words, "policy": {"limits": "try", **words.get("policy", {})}}


@pytest.fixture(scope="module")
def answers():
    """What each of the three tables came to; a caller that dies gives no answers."""
    asked = [(words, "echo here") for words, _ in REFUSED]
    asked += [(wanted(words), "echo here") for words in TAKEN]
    asked += [({"memory": size}, "exec tail /dev/zero") for size in EATEN]
    done = subprocess.run(
        [sys.executable, "-c", CALLER], input=json.dumps(asked), capture_output=True, text=True, timeout=600
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"the caller ended with {done.returncode} at {asked[len(lines) :][:1]}: {done.stderr}"
    return lines[: len(REFUSED)], lines[len(REFUSED) : -len(EATEN)], lines[-len(EATEN) :]


def test_refused_with_words(answers):
    for (words, hint), answer in zip(REFUSED, answers[0], strict=True):
        assert answer.get("name") == "PX002", (words, answer)
        assert answer["fix"] and hint in answer["fix"], (words, answer)


def test_taken(answers):
    for words, answer in zip(TAKEN, answers[1], strict=True):
        assert answer == {"code": 0, "stdout": "here\n"}, words


def test_the_caller_outlives_a_box_that_eats_its_memory(answers):
    for size, answer in zip(EATEN, answers[2], strict=True):
        if answer.get("name") == "PX013":
            pytest.skip("no cgroup here")
        assert "name" in answer or answer["code"] != 0, (size, answer)
