"""The root of a sandbox as an archive: what its own tar says of it, which is believed no more than any other output."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from ._core import SandboxBase
from ._errors import SandboxError
from ._folders import NEW_FILE, StrPath, absolute
from ._streams import CHUNK
from ._talk import Talk

MAX_BYTES = 4 << 30
NAMES = 1 << 20  # bytes of names in the directories above mounts
WORDS = 4096  # of what a failed command says, for the error


async def hear(process: Talk, take: Callable[[bytes], object], max_bytes: int) -> None:
    """Hands on what a command without input says; an error if it fails or says too much."""
    stderr, size = b"", 0
    process.close_stdin()
    bound = process._end_of(None)
    while found := await process._more(CHUNK, bound):
        for name, data in found:
            if name == "stderr":
                stderr = (stderr + data)[-WORDS:]
                continue
            size += len(data)
            if size > max_bytes:
                raise SandboxError(
                    f"the root of the sandbox is more than {max_bytes} bytes", fix="Give export() a larger max_bytes."
                )
            take(data)
    if await process._wait(None, False) != 0:
        raise SandboxError(
            "the root of the sandbox cannot be exported",
            why=stderr.decode("utf-8", "replace").strip(),
            fix="The root needs cat, find and tar, and what is in it must be readable for its user.",
        )


def mounts(text: bytes | bytearray) -> list[bytes]:
    """Where something else than the root is, by /proc/self/mountinfo."""
    places = [line.split(b" ")[4] for line in text.splitlines() if line.count(b" ") > 4]
    plain = [re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 255]), place) for place in places]
    return sorted({bytes(place) for place in plain if place != b"/"})


def parents(path: bytes) -> list[bytes]:
    """The directories above it, the root among them."""
    return [path[:at] or b"/" for at in range(len(path)) if path[at : at + 1] == b"/"]


def ways_to(places: list[bytes]) -> list[bytes]:
    """The directories of the root itself on the way to them."""
    ways = {way for place in places for way in parents(place)} | {b"/"}
    return sorted(way for way in ways if not {way, *parents(way)} & set(places))


async def parts(sandbox: SandboxBase[Any], timeout: float | None) -> list[bytes]:
    """What tar is told to take with all that is in it: the root without the places where something else is, and the ways there."""
    shown, listed = bytearray(), bytearray()
    await hear(sandbox._run(["cat", "/proc/self/mountinfo"], timeout), shown.extend, NAMES)
    places = mounts(shown)
    ways = ways_to(places)
    find = ["find", *map(os.fsdecode, ways), "-mindepth", "1", "-maxdepth", "1", "-print0"]
    await hear(sandbox._run(find, timeout), listed.extend, NAMES)
    left_out = {*places, *ways}
    return sorted(b"." + bytes(path) for path in listed.split(b"\0") if path and bytes(path) not in left_out)


async def export(sandbox: SandboxBase[Any], path: StrPath, timeout: float | None, max_bytes: int) -> None:
    """Writes the archive to a new file."""
    if not any(field == "overlay" for field, _ in sandbox._settings):
        raise SandboxError(
            "there is nothing to export",
            why="The root of this sandbox has no overlay: it is what it was made of.",
            fix="Make the sandbox with rootfs_overlay=True.",
        )
    words = ["tar", "-c", "-f", "-", "-C", "/", *map(os.fsdecode, await parts(sandbox, timeout))]
    target = absolute(path)
    with open(os.open(target, NEW_FILE, 0o600), "wb") as file:  # follow: the caller's own path, and no link at its end
        process = None
        try:
            process = sandbox._run(words, timeout)
            await hear(process, file.write, max_bytes)
        except BaseException:
            if process is not None:
                process.kill()
                process._discard()
            os.unlink(target)  # follow: the caller's own path, and a file that was not there before
            raise
