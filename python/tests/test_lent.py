"""Root on a file system where owners cannot be mapped (overlayfs: the root of every container): all fronts work there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from conftest import PATIENCE_S

MOUNT = """
mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work m 2>/dev/null || exit 77
cd m && mkdir tmp home && TMPDIR=$PWD/tmp PX_HOME=$PWD/home exec "$@"
"""
FRONTS = """
import asyncio, json, os, pathlib
from px.executor import SandboxConfig, SandboxExecutor
from px.sync import Sandbox
from px.tasks import SandboxConfig as TasksConfig, apply_action, prepare_workspace
from px.worker import Sandbox as WorkerSandbox, SandboxConfig as WorkerConfig, ShellRule, shell

told = {}
with Sandbox() as sandbox:
    done = sandbox.run("echo kept >f; cat f; echo x >/tmp/x && cat /tmp/x").communicate()
    script = sandbox.run_script("print(6 * 7)").communicate()
    told["sandbox"] = [done[0].decode(), script[0].decode(), (sandbox.work_dir / "f").read_text()]

place = pathlib.Path("mine")
place.mkdir()
(place / "here").write_text("of the caller\\n")
with Sandbox(work_dir=place) as sandbox:
    told["work_dir"] = sandbox.run("cat here; echo more >>here; id -u").communicate()[0].decode()
told["work_dir_after"] = [(place / "here").read_text(), os.stat("mine").st_uid, os.stat("mine/here").st_uid]


async def execute():
    async with SandboxExecutor(SandboxConfig(workspace_path=place, limits="try")) as box:
        return (await box.execute("echo y >/workspace/y; cat /workspace/y")).stdout


told["executor"] = [asyncio.run(execute()), os.stat("mine/y").st_uid]

config = TasksConfig(allowed_binaries=["sh"])
workspace = prepare_workspace("t", {"a": "1\\n", "b": "2\\n"}, config=config)
for command in ("cat a b; echo 3 >>a; echo new >c", "cat a c"):
    result = apply_action(workspace, {"command": ["sh", "-c", command]}, config=config)
    told.setdefault("tasks", []).append([result.stdout, sorted(result.changed_files or [])])
told["tasks_after"] = [(workspace / "a").read_text(), os.stat(workspace / "a").st_uid, os.stat(workspace / "c").st_uid]

rules = [ShellRule(word, approval_required=False) for word in ("cat", "touch")]
for name in ("rw", "ro"):
    pathlib.Path(name).mkdir()
    pathlib.Path(name, "f").write_text(f"of {name}\\n")
worker = WorkerSandbox(WorkerConfig({"rw": {"root": "rw", "mode": "rw"}, "ro": {"root": "ro"}}, require_os_sandbox=True, shell_rules=rules))
told["worker"] = [shell(words, worker).exit_code for words in ("touch rw/new", "touch ro/new")]
told["worker"] += [shell("cat rw/f ro/f", worker).stdout, os.stat("rw").st_uid, os.stat("rw/new").st_uid]
print(json.dumps(told))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount an overlay")
def test_fronts_on_overlayfs(tmp_path):
    for name in ("low", "up", "work", "m"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", MOUNT, "sh", sys.executable, "-c", FRONTS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE_S,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("no overlay can be mounted here")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "sandbox": ["kept\nx\n", "42\n", "kept\n"],
        "work_dir": "of the caller\n1000\n",
        "work_dir_after": ["of the caller\nmore\n", 0, 0],
        "executor": ["y\n", 0],
        "tasks": [["1\n2\n", ["a", "c"]], ["1\n3\nnew\n", []]],
        "tasks_after": ["1\n3\n", 0, 0],
        "worker": [0, 1, "of rw\nof ro\n", 0, 0],
    }
