"""What a box puts into a directory that it shares with the host: links, and directories that nobody can open."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
from pathlib import Path

import pytest
import race

from px import SandboxError, _px
from px._folders import copy_tree, remove_at
from px.sync import Sandbox


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("for its owner alone\n")
    path.chmod(0o600)
    yield path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "for its owner alone\n"


@contextlib.contextmanager
def swapped(tmp_path, folder, *patterns):
    """A neighbour swaps what the patterns fit in the folder with links to a directory outside."""
    program, away, outside = Path(os.environ["PX"]).with_name("swapper"), tmp_path / "away", race.outside_of(tmp_path)
    away.mkdir()
    with race.Race(race.words_of(program, away, outside, *patterns), outside, cwd=folder) as found:
        yield found


def test_a_script_follows_no_link(tmp_path):
    with Sandbox() as sandbox, swapped(tmp_path, sandbox.tmp_dir, "script_*") as neighbour:
        for _ in neighbour.rounds():
            process = sandbox.run_script("#", None, "cat")
            scripts = list(sandbox.tmp_dir.glob("script_*"))
            neighbour.look(scripts[0])
            neighbour.seen["worked"] += process.communicate()[0] == b"#"
            for script in scripts:
                script.unlink()


def make_tree(folder):
    """Directories that are to be opened before they can be removed."""
    for i in range(6):
        (folder / f"tree/d{i}/sub").mkdir(parents=True)
        (folder / f"tree/d{i}").chmod(0o300)


def test_a_home_that_goes_follows_no_link(tmp_path):
    """A directory of the host in TMPDIR that its sandbox removes, and one that a killed process has left for the next to remove."""
    shared, trees = tmp_path / "shared", tmp_path / "trees"
    shared.mkdir()
    with swapped(tmp_path, shared, "px-homes-*", "px-homes-*/home-*", "px-homes-*/home-*/tree/d*") as neighbour:
        for _ in neighbour.rounds():
            if not trees.exists():
                make_tree(trees)
            try:
                path, lock = _px.scratch(str(shared), True)
            except SandboxError:
                continue
            os.rename(trees / "tree", "tree", dst_dir_fd=lock)
            trees.rmdir()
            neighbour.look(Path(path) / "tree/d0")
            if neighbour.seen["round"] % 2:
                _px.drop_scratch(path)
                neighbour.seen["worked"] += not os.path.lexists(path)
            os.close(lock)
    subprocess.run(["chmod", "-R", "u+rwX", str(tmp_path)], check=True)


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
