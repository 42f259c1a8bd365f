"""The C half of the package, used as its Python half does not: lists that change while they are read, early results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import until

import px
from px import _px
from px._errors import SandboxError
from px._streams import step_out


def test_import_that_fails_names_every_library(tmp_path):
    """What the C half links, but for the C library, is what a machine may lack."""
    if not shutil.which("readelf"):
        pytest.skip("readelf is not installed")
    (tmp_path / "px").mkdir()
    shutil.copy(Path(px.__file__), tmp_path / "px")
    done = subprocess.run(
        [sys.executable, "-c", "import px"],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ImportError" in done.stderr, done.stderr
    linked = subprocess.run(["readelf", "-d", _px.__file__], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"NEEDED.*\[lib([a-z]+)", linked)
    assert "jansson" in names
    assert [name for name in names if name != "c" and name not in done.stderr.split("libraries", 1)[1]] == []


class Clears:
    """Empties the list that it is in as soon as it is looked at."""

    def __init__(self, rows, text=""):
        self.rows, self.text = rows, text

    def __fspath__(self):
        self.rows.clear()
        return self.text

    def __bool__(self):
        self.rows.clear()
        return True


def test_a_list_that_changes_while_it_is_read(tmp_path):
    for name in ("b", "d"):
        (tmp_path / name).mkdir()
    rows = []
    rows.append(("a" * 5, Clears(rows, str(tmp_path / "a")), True, None, 0, False))
    rows.append(("b", tmp_path / "b", False, None, 0, False))
    assert _px.Files(rows).roots() == [("aaaaa", True), ("b", False)]
    rows = []
    rows.append(("".join(["n"] * 5), tmp_path / "c", Clears(rows), [Clears(rows, ".md")], 0, Clears(rows)))
    rows.append(("d", tmp_path / "d", False, None, 0, False))
    assert _px.Files(rows).roots() == [("nnnnn", True), ("d", False)]
    words = []
    words += [Clears(words, "echo"), "hi"]
    box = _px.start(policy(), words)
    step_out(box)
    assert box.result()[4] == b"hi\n"
    box.close()


@pytest.mark.parametrize("row", [1, "text", ["a", "b", True, None, 0, False], ()])
def test_a_root_that_is_no_row(row):
    with pytest.raises(TypeError):
        _px.Files([row])


def policy():
    made = _px.Policy("default")
    made.set("net", "none")
    return made


def early(call):
    with pytest.raises(SandboxError, match="still runs"):
        call()


def test_no_result_before_the_end(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "w.yaml").write_text("sandbox: {paths: {r: {root: ./r}}}\n")
    worker = _px.Worker(tmp_path / "w.yaml", tmp_path)
    for box in (_px.start(policy(), ["sleep", "600"]), worker.start(["sleep", "600"], 300, [], worker)):
        early(box.result)
        early(box.json)
        assert box.step()
        early(lambda box=box: worker.result(box, 300))
        box.kill()
        step_out(box)
        assert box.result()[2] == 137
        assert '"exit_code":137' in worker.result(box, 300)
        box.close()


def test_no_result_of_an_action_before_its_end(tmp_path):
    (tmp_path / "c.yaml").write_text(f"work_root: {tmp_path / 'work'}\nallowed_binaries: [sleep]\n")
    tasks = _px.Tasks(tmp_path / "c.yaml")
    tasks.prepare("t", ())
    run = tasks.start("t", ["sleep", "0.2"], None, None, None, False, False, False)
    early(run.json)
    until(lambda: not run.step(), "the action goes on")
    assert '"exit_code":0' in run.json()
    run.close()
    tasks.cleanup("t")
