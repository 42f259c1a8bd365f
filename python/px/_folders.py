"""Directories of the host that a box can write: what lies there is reached by descriptors, and no link is followed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

from . import _px

StrPath = str | os.PathLike[str]
FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class Scratch:
    """A directory of our own below the host's temporary directory, locked as long as this process lives.

    The first one of a process removes those of processes that were killed.
    """

    _sweeps = True

    def __init__(self) -> None:
        path, self._lock = _px.scratch(tempfile.gettempdir(), Scratch._sweeps)
        self.path = Path(path)
        Scratch._sweeps = False

    def folder(self, name: str) -> Path:
        """A new directory in it, for a box to write."""
        os.mkdir(name, 0o700, dir_fd=self._lock)
        return self.path / name

    def close(self) -> None:
        """It goes with all that is in it; the box must be gone."""
        _px.drop_scratch(self.path)
        os.close(self._lock)


def absolute(path: StrPath) -> Path:
    """Where it is now, wherever the program goes later."""
    return Path(path).expanduser().absolute()


def write_new(folder: Path, name: str, text: str, mode: int) -> None:
    """Writes a file that is not there yet. The mode is that of the open file: its name can be a link by then."""
    place = os.open(folder, os.O_PATH | FOLDER)
    try:
        with open(os.open(name, NEW_FILE, mode, dir_fd=place), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
    finally:
        os.close(place)


# ---- removing ----


def opened(name: str, parent: int) -> int:
    """Opens the directory, not what a link leads to, and sets the mode that it takes to empty it."""
    place = os.open(name, os.O_PATH | FOLDER, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)  # fchmod() wants one that is open for reading
        return os.open(".", os.O_RDONLY | FOLDER, dir_fd=place)
    finally:
        os.close(place)


def empty(folder: int, top: int) -> None:
    """Removes what lies in the folder.

    Directories in it are moved up to the top first, so that a tree of any depth takes the same few descriptors.
    """
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
        elif folder != top:
            os.close(opened(name, folder))  # only a directory that we may write can be moved
            os.rename(name, uuid.uuid4().hex, src_dir_fd=folder, dst_dir_fd=top)
        else:
            inner = opened(name, top)
            try:
                empty(inner, top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def remove_at(parent: int, name: str) -> None:
    """Removes a directory with what is in it. The box must be gone."""
    top = opened(name, parent)
    try:
        while os.listdir(top):
            empty(top, top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


# ---- copying ----


def keep_times(source: StrPath, fd: int) -> None:
    """The copy has the mode and the times of its source."""
    found = os.stat(source, follow_symlinks=False)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))  # follow: a descriptor


def copy_file(source: StrPath, name: str, parent: int) -> None:
    """A regular file."""
    with open(source, "rb") as old, open(os.open(name, NEW_FILE, 0o600, dir_fd=parent), "wb") as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        keep_times(source, new.fileno())


def copy_tree(source: StrPath, name: str, parent: int) -> None:
    """A directory of px's store as a new one below the parent."""
    os.mkdir(name, 0o700, dir_fd=parent)
    here = os.open(name, os.O_RDONLY | FOLDER, dir_fd=parent)
    try:
        with os.scandir(source) as entries:
            for entry in entries:
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), entry.name, dir_fd=here)
                elif entry.is_dir():
                    copy_tree(entry.path, entry.name, here)
                else:
                    copy_file(entry.path, entry.name, here)
        keep_times(source, here)
    finally:
        os.close(here)


def has_something(folder: Path) -> bool:
    """Whether it is a directory that is not empty."""
    return folder.is_dir() and any(folder.iterdir())


def unpack(archive: Path, target: Path) -> None:
    """Fills the directory with what the archive holds; one that has something in it already is used as it is."""
    if has_something(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)  # follow: the caller's own path
    parent = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    place = f".{target.name}-{uuid.uuid4().hex}"
    try:
        _px.stored_root(archive, lambda found: copy_tree(found, place, parent))
        os.rename(place, target.name, src_dir_fd=parent, dst_dir_fd=parent)  # an empty directory is replaced
    except BaseException as error:
        if place in os.listdir(parent):
            remove_at(parent, place)
        if not isinstance(error, OSError) or not has_something(target):
            raise  # not just that somebody else was faster
    finally:
        os.close(parent)
