"""What a box puts into a directory that it shares with the host: links, and directories that nobody can open."""

from __future__ import annotations

import os
import stat
import time

import pytest

from px import SandboxError
from px._folders import copy_tree, remove_at
from px.sync import Sandbox

RACE_S = 1.0

# In the box: as soon as a script appears in /tmp, a link to the victim takes its place.
SWAP = """
import os, sys
os.symlink(sys.argv[1], "/tmp/.link")
seen = set()
print("ready", flush=True)
while True:
    for name in os.listdir("/tmp"):
        if name.startswith("script_") and name not in seen:
            seen.add(name)
            os.rename("/tmp/.link", "/tmp/" + name)
            os.symlink(sys.argv[1], "/tmp/.link")
"""


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("for its owner alone\n")
    path.chmod(0o600)
    yield path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "for its owner alone\n"


def test_a_script_follows_no_link(victim):
    with Sandbox() as sandbox:
        attacker = sandbox.run(["python3", "-c", SWAP, str(victim)], None)
        assert next(iter(attacker.stream())) is not None
        end = time.monotonic() + RACE_S
        while time.monotonic() < end:
            sandbox.run_script("", None, "true").communicate()
            assert stat.S_IMODE(victim.stat().st_mode) == 0o600
        attacker.kill()


def test_a_script_is_a_new_file_that_the_box_reads():
    with Sandbox() as sandbox:
        process = sandbox.run_script("print('hi')")
        assert process.communicate()[0] == b"hi\n"
        (script,) = sandbox.tmp_dir.glob("script_*")
        assert stat.S_IMODE(script.stat().st_mode) == 0o644
        with pytest.raises(ValueError, match="extension"):
            sandbox.run_script("", extension="../../escape")


def test_a_script_that_cannot_be_written(tmp_path):
    with Sandbox() as sandbox:
        sandbox.run(["chmod", "0", "/tmp"]).communicate()
        if os.geteuid() == 0:  # whom a mode does not stop
            assert sandbox.run_script("", run_command="true").communicate()[1] == b""
        else:
            with pytest.raises(SandboxError, match="cannot be written"):
                sandbox.run_script("")
        place = sandbox.tmp_dir
    assert not place.exists()


def test_a_tree_with_closed_directories_and_links_goes(tmp_path, victim):
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    outside.chmod(0o500)
    with Sandbox() as sandbox:
        place = sandbox.tmp_dir
        script = (
            'mkdir -p /tmp/a/b /tmp/closed/in && : >/tmp/closed/in/file; ln -s "$1" /tmp/a/file;'
            ' ln -s "$2" /tmp/a/b/out; ln -s "$2" /tmp/out;'
            " chmod 0 /tmp/closed/in /tmp/closed; chmod 0500 /tmp/a/b /tmp/a"
        )
        sandbox.run(["sh", "-c", script, "sh", str(victim), str(outside)]).communicate()
    assert not place.exists()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o500
    assert (outside / "kept").is_dir()
    outside.chmod(0o700)


def test_a_tree_of_any_depth_goes():
    make = "import os\nfor _ in range(1500):\n os.mkdir('in'); os.chdir('in')\nopen('file', 'w'); os.chmod('.', 0)"
    with Sandbox() as sandbox:
        place = sandbox.tmp_dir
        assert sandbox.run(["python3", "-c", make], None, cwd="/tmp").communicate()[1] == b""
    assert not place.exists()


def remove_tree(path):
    parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        remove_at(parent, path.name)
    finally:
        os.close(parent)


def test_a_link_in_the_place_of_the_tree_stays(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / "link").symlink_to(kept)
    with pytest.raises(OSError, match="link"):
        remove_tree(tmp_path / "link")
    assert (kept / "file").exists()


def test_a_copied_tree_is_the_same(tmp_path):
    source = tmp_path / "source"
    (source / "d").mkdir(parents=True)
    (source / "d/run").write_bytes(b"#!/bin/sh\n" * 100_000)
    (source / "d/run").chmod(0o755)
    (source / "d/link").symlink_to("/nowhere")
    os.utime(source / "d/run", ns=(1_000, 2_000_000_001))
    (source / "d").chmod(0o555)
    target = tmp_path / "target"
    target.mkdir()
    here = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        copy_tree(source, "root", here)
        with pytest.raises(FileExistsError):
            copy_tree(source, "root", here)
    finally:
        os.close(here)
    copy = target / "root"
    assert (copy / "d/run").read_bytes() == (source / "d/run").read_bytes()
    assert stat.S_IMODE((copy / "d/run").stat().st_mode) == 0o755
    assert (copy / "d/run").stat().st_mtime_ns == 2_000_000_001
    assert stat.S_IMODE((copy / "d").stat().st_mode) == 0o555
    assert os.readlink(copy / "d/link") == "/nowhere"
    for tree in (source, copy):
        remove_tree(tree)
        assert not tree.exists()
