"""Exceptions: what happened, why, and what to do now.

The engine's own errors arrive through from_engine() with the number that px-errors(7) explains.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from typing import Any


class SandboxError(RuntimeError):
    """Something that px could not do.

    code:    the stable number, 17 for PX017; 0 if the error is not the engine's
    sys:     errno at the moment of failure; 0 if there is none
    what:    what happened, in the names that were given
    why:     the cause
    fix:     what to do now, one action per line
    details: the same for machines
    """

    code: int = 0
    sys: int = 0
    what: str = ""
    why: str = ""
    fix: str = ""
    details: Mapping[str, Any] = {}

    def __init__(self, what: str = "", *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.fix = what, why, fix

    @property
    def name(self) -> str:
        """ "PX017", or "" if the error is not the engine's."""
        return f"PX{self.code:03d}" if self.code else ""

    def _fill(self, code: int, sys: int, what: str, why: str, fix: str, details: str) -> None:
        self.code, self.sys, self.what, self.why, self.fix = code, sys, what, why, fix
        self.details = json.loads("{" + details + "}") if details else {}

    def __str__(self) -> str:
        head = f"{self.name}  {self.what}" if self.code else self.what
        why = f"\nWhy: {self.why}" if self.why else ""
        fix = "".join(f"\nFix: {line}" for line in self.fix.splitlines())
        return head + why + fix


class RootNotFoundError(SandboxError, FileNotFoundError):
    """There is no such archive or directory to be the root."""


class SandboxTimeout(SandboxError, TimeoutError):
    """A command ran longer than it may; it was killed with everything that it started.

    stdout, stderr: the output so far that nobody else has got.
    """

    def __init__(self, seconds: float, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(f"Command execution exceeded {seconds:g} seconds")
        self.seconds, self.stdout, self.stderr = seconds, stdout, stderr


class CommandError(SandboxError):
    """A command that was to succeed (check=True) ended with another exit code."""

    def __init__(self, returncode: int, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(f"Command failed with exit code {returncode}")
        self.args = (self.what, stdout, stderr)
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


# ---- the file sandbox ----


class FileSandboxError(SandboxError):
    """An operation on files was refused or failed; the text is for a model and says what is allowed."""

    retryable = False

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class PathNotInSandboxError(FileSandboxError):
    """The path is outside every root."""

    def __init__(self, path: str, readable_roots: Sequence[str]) -> None:
        super().__init__(
            f"Cannot access '{path}': path is outside sandbox.\nReadable paths: {', '.join(readable_roots) or 'none'}"
        )


class PathNotWritableError(FileSandboxError):
    """The path may only be read."""

    def __init__(self, path: str, writable_roots: Sequence[str]) -> None:
        super().__init__(
            f"Cannot write to '{path}': path is read-only.\nWritable paths: {', '.join(writable_roots) or 'none'}"
        )


class SuffixNotAllowedError(FileSandboxError):
    """The root does not take files of that kind."""

    def __init__(self, path: str, allowed: Sequence[str]) -> None:
        super().__init__(f"Cannot access '{path}': suffix not allowed.\nAllowed suffixes: {', '.join(allowed)}")


class FileTooLargeError(FileSandboxError):
    """The file is larger than its root allows."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(f"Cannot read '{path}': file too large ({size} bytes).\nMaximum allowed: {limit} bytes")


class EditError(FileSandboxError):
    """The text to replace is not there, or there more than once."""

    retryable = True


class SandboxFileNotFoundError(FileSandboxError, FileNotFoundError):
    """There is no such file."""

    retryable = True


class SandboxFileExistsError(FileSandboxError, FileExistsError):
    """There is something at the target already."""

    retryable = True


class NotAFileError(FileSandboxError):
    """It is a directory or something else that is no regular file."""


class NotTextError(FileSandboxError):
    """It is no UTF-8 text: hand it on as an attachment."""


class PatternError(FileSandboxError):
    """That is no pattern for files: it is absolute, or leads upwards."""


_FILE_CLASSES: dict[str, type[FileSandboxError]] = {
    "PathNotInSandboxError": PathNotInSandboxError,
    "PathNotWritableError": PathNotWritableError,
    "SuffixNotAllowedError": SuffixNotAllowedError,
    "FileTooLargeError": FileTooLargeError,
    "FileNotFoundError": SandboxFileNotFoundError,
    "NotAFileError": NotAFileError,
    "NotTextError": NotTextError,
    "EditError": EditError,
    "FileExistsError": SandboxFileExistsError,
    "PatternError": PatternError,
}


_ROOTFS = 34  # PX034


def from_engine(
    code: int, sys: int, what: str, why: str, fix: str, details: str, kind: str | None, message: str | None
) -> SandboxError:
    """The exception for an error of the engine; kind and message only if it is one of files."""
    missing = code == _ROOTFS and sys == errno.ENOENT
    plain = RootNotFoundError if missing else SandboxError
    cls: type[SandboxError] = _FILE_CLASSES.get(kind, FileSandboxError) if kind else plain
    # Classes for users have constructors of their own, so an object is made without those; which of the built-in ones
    # does it is decided by the layout of the class.
    error = OSError.__new__(cls) if issubclass(cls, OSError) else RuntimeError.__new__(cls)
    assert isinstance(error, SandboxError)
    error._fill(code, sys, what, why, fix, details)
    if isinstance(error, FileSandboxError):
        error.message = message or what
        error.args = (error.message,)
    return error
