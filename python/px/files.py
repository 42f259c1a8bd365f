"""A file sandbox: named directories, and what may be read and written below them. Errors tell a model what is allowed.

    from px.files import FileSandbox, FileSandboxConfig, PathConfig

    sandbox = FileSandbox(FileSandboxConfig(paths={
        "portfolio": PathConfig(root="./portfolio", mode="rw", suffixes=[".md", ".pdf"]),
        "pipeline": PathConfig(root="./pipeline"),
    }))
    text = sandbox.read("portfolio/a.md")

A path is `name/relative` or `name:relative`; `./name/relative` is the same, and a name alone is the root's directory.
The kernel keeps every access below that directory, which is held open: a link that leads out is refused, also when it
appears between the question and the access. One sandbox may be used by several threads.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from . import _px
from ._errors import (
    EditError,
    FileSandboxError,
    FileTooLargeError,
    NotAFileError,
    NotTextError,
    PathNotInSandboxError,
    PathNotWritableError,
    PatternError,
    SandboxError,
    SandboxFileExistsError,
    SandboxFileNotFoundError,
    SuffixNotAllowedError,
)
from ._folders import StrPath, absolute

__all__ = [
    "EditError",
    "FileSandbox",
    "FileSandboxConfig",
    "FileSandboxError",
    "FileSandboxProtocol",
    "FileSandboxToolset",
    "FileTooLargeError",
    "NotAFileError",
    "NotTextError",
    "PathConfig",
    "PathNotInSandboxError",
    "PathNotWritableError",
    "PatternError",
    "ReadResult",
    "SandboxFileExistsError",
    "SandboxFileNotFoundError",
    "SuffixNotAllowedError",
]

MAX_CHARS = 200_000
Approval = Literal["blocked", "needs_approval", "pre_approved"]


# ---- the configuration ----


@dataclass
class PathConfig:
    """One directory of the sandbox. With mode "rw" it is made if it is not there; with "ro" that is an error."""

    root: StrPath
    mode: Literal["ro", "rw"] = "ro"
    suffixes: list[str] | None = None
    max_file_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("ro", "rw"):
            raise ValueError(f"mode: '{self.mode}' is neither ro nor rw")
        if self.max_file_bytes is None:
            return
        if not isinstance(self.max_file_bytes, int):
            raise TypeError(f"max_file_bytes: a number of bytes is wanted, not {self.max_file_bytes!r}")
        if self.max_file_bytes <= 0:
            raise ValueError("max_file_bytes: a positive number is wanted")


@dataclass
class FileSandboxConfig:
    """The directories by their names; each a PathConfig, or a mapping with its fields.

    git_writable: whether git directories (.git, and what one leads to) can be written; the host's git obeys what lies
                  there: hooks, and programs that its settings name
    """

    paths: dict[str, PathConfig]
    git_writable: bool = False

    def __init__(self, paths: Mapping[str, PathConfig | Mapping[str, Any]], git_writable: bool = False) -> None:
        self.git_writable = git_writable
        self.paths = {
            name: path if isinstance(path, PathConfig) else PathConfig(**path) for name, path in paths.items()
        }


@dataclass
class ReadResult:
    """A part of a file: where it begins and how long it is, in characters."""

    content: str
    truncated: bool
    total_chars: int
    offset: int
    chars_read: int


@runtime_checkable
class FileSandboxProtocol(Protocol):
    """What a toolset needs of a file sandbox; FileSandbox is one."""

    def can_read(self, path: str) -> bool:
        """Check if path is readable."""

    def can_write(self, path: str) -> bool:
        """Check if path is writable."""

    def resolve(self, path: str) -> Path:
        """Resolve path within sandbox. Raises FileSandboxError if outside."""

    def read(self, path: str, max_chars: int = MAX_CHARS) -> str:
        """Read text file from sandbox."""

    def write(self, path: str, content: str) -> None:
        """Write text file to sandbox."""

    def list_files(self, path: str = ".", pattern: str = "**/*") -> list[str]:
        """List files matching pattern."""

    @property
    def readable_roots(self) -> list[str]:
        """List of readable path roots (for error messages)."""

    @property
    def writable_roots(self) -> list[str]:
        """List of writable path roots (for error messages)."""


# ---- the sandbox ----


class FileSandbox:
    """Files of named directories and nothing else."""

    _tools: Mapping[str, Approval] | None = None  # by tool_rules of a worker

    def __init__(self, config: FileSandboxConfig, base_path: StrPath | None = None) -> None:
        """Relative roots are below base_path (None: the working directory)."""
        base = absolute(base_path or ".")
        self._files = _px.Files(
            [
                (
                    name,
                    base / path.root,
                    path.mode == "rw",
                    path.suffixes,
                    path.max_file_bytes or 0,
                    config.git_writable is True,
                )
                for name, path in config.paths.items()
            ]
        )

    def _call(self, operation: str, **ask: Any) -> dict[str, Any]:
        request = json.dumps({name: value for name, value in ask.items() if value is not None})
        answer: dict[str, Any] = json.loads(self._files.call(operation, request))
        return answer

    # ---- questions ----

    def can_read(self, path: str) -> bool:
        """Whether the rules allow it; the file need not exist. Never raises."""
        return usable(path) and self._files.can_read(path)

    def can_write(self, path: str) -> bool:
        """Whether the rules allow it; the file need not exist. Never raises."""
        return usable(path) and self._files.can_write(path)

    def resolve(self, path: str) -> Path:
        """Where it leads on the host, links followed; nothing need be there.

        To read a file use open(): a name can change its meaning.
        """
        found, places = str(self._call("resolve", path=path)["path"]), self._files.places()
        name = max((name for name in places if found == name or found.startswith(name + "/")), key=len)
        return Path(places[name]) / found[len(name) + 1 :]

    def tool_approval(self, tool: str) -> Approval:
        """What the tool_rules of a worker say of a tool: shell, worker_call, read_file and others of px-worker(1)."""
        return "pre_approved" if self._tools is None else self._tools.get(tool, "blocked")

    def stat(self, path: str) -> dict[str, Any]:
        """kind, readable, writable, size, mode, modified, accessed, created."""
        return self._call("stat", path=path)

    @property
    def readable_roots(self) -> list[str]:
        """The names of all roots."""
        return [name for name, _ in self._files.roots()]

    @property
    def writable_roots(self) -> list[str]:
        """The names of the roots that may be written."""
        return [name for name, writable in self._files.roots() if writable]

    # ---- reading ----

    def read(self, path: str, max_chars: int = MAX_CHARS, offset: int = 0) -> str:
        """The text of a file, from the character `offset` on."""
        return self.read_part(path, max_chars, offset).content

    def read_part(self, path: str, max_chars: int = MAX_CHARS, offset: int = 0) -> ReadResult:
        """The same, with how much there is."""
        if max_chars < 0 or offset < 0:
            raise ValueError("max_chars and offset are counted from 0")
        found = self._call("read", path=path, max_chars=max_chars, offset=offset)
        return ReadResult(
            found["content"], found["truncated"], found["total_chars"], found["offset"], found["chars_read"]
        )

    def open(self, path: str) -> int:
        """A descriptor of the file, for reading; yours to close. For what is no text."""
        if not usable(path):
            raise PathNotInSandboxError(shown(path), self.readable_roots)
        return self._files.open(path)

    def list_files(self, path: str = ".", pattern: str = "**/*") -> list[str]:
        """Files below the path that match, as name/relative, sorted."""
        return [str(entry["path"]) for entry in self._call("list", path=path, pattern=pattern)["entries"]]

    def search(
        self,
        text: str,
        path: str = ".",
        pattern: str | None = None,
        *,
        ignore_case: bool = False,
        max_results: int | None = None,
    ) -> list[dict[str, Any]]:
        """Lines that hold the text: path, line, text."""
        found: list[dict[str, Any]] = self._call(
            "search", path=path, pattern=pattern, text=text, ignore_case=ignore_case or None, max_results=max_results
        )["matches"]
        return found

    def diff(self, path: str, content: str) -> str:
        """How the file differs from a text that might be written to it."""
        return str(self._call("diff", path=path, content=content)["diff"])

    # ---- writing: whole or not at all ----

    def write(self, path: str, content: str) -> None:
        """Writes the text, and makes the directories above it."""
        self._call("write", path=path, content=content)

    def edit(self, path: str, old_text: str, new_text: str, *, dry_run: bool = False) -> str:
        """Replaces a text that occurs exactly once; how the file changed."""
        return str(
            self._call(
                "edit", path=path, edits=[{"old_text": old_text, "new_text": new_text}], dry_run=dry_run or None
            )["diff"]
        )

    def delete(self, path: str) -> None:
        """A file or a link."""
        self._call("delete", path=path)

    def move(self, source: str, destination: str) -> None:
        """The destination must not exist."""
        self._call("move", path=source, to=destination)

    def copy(self, source: str, destination: str) -> None:
        """The destination must not exist."""
        self._call("copy", path=source, to=destination)

    def make_directory(self, path: str) -> None:
        """Fine if it is there."""
        self._call("make_directory", path=path)

    # ---- less ----

    def derive(
        self,
        allow_read: Sequence[str] | None = None,
        allow_write: Sequence[str] | None = None,
        readonly: bool = False,
        inherit: bool = False,
    ) -> FileSandbox:
        """One that can do less: the named directories of this one, or (inherit) all of them; never more.

        A directory of allow_write is made if it is not there, unless readonly is set.
        """
        child = FileSandbox.__new__(FileSandbox)
        child._tools = self._tools
        child._files = self._files.derive(
            None if allow_read is None else list(allow_read),
            None if allow_write is None else list(allow_write),
            inherit,
            readonly,
        )
        return child


def usable(path: object) -> bool:
    """Whether the text can be a path at all."""
    return isinstance(path, str) and "\0" not in path and not any(0xD800 <= ord(c) <= 0xDFFF for c in path)


def shown(path: str) -> str:
    """The path for a message."""
    return path.replace("\0", "\\0").encode("utf-8", "replace").decode()


# ---- tools of a model ----


class FileSandboxToolset:
    """Tools for a model: read_file, write_file, list_files, edit_file.

    The methods take a run context first, as toolsets of agent frameworks do, and ignore it. call() is for everybody
    else: it answers with a value, also when something is refused, so that the model can be told.
    """

    TOOLS = ("read_file", "write_file", "list_files", "edit_file")

    def __init__(
        self, sandbox: FileSandboxProtocol, approve: Callable[[str], bool | Awaitable[bool]] | None = None
    ) -> None:
        """approve: asked for a tool that needs approval by the tool_rules of a worker; True approves, nothing else."""
        self.sandbox = sandbox
        self.approve = approve

    async def _allow(self, tool: str, path: str) -> None:
        """By the tool_rules, if the sandbox is that of a worker."""
        verdict = self.sandbox.tool_approval(tool) if isinstance(self.sandbox, FileSandbox) else "pre_approved"
        if verdict == "needs_approval":
            answer = self.approve(f"{tool} {path}") if self.approve else False
            if (await answer if inspect.isawaitable(answer) else answer) is True:
                return
            raise FileSandboxError(f"the tool '{tool}' needs approval, which was not given: {shown(path)}")
        if verdict != "pre_approved":
            raise FileSandboxError(f"this worker does not have the tool '{tool}'")

    async def read_file(self, ctx: Any, path: str, max_chars: int = MAX_CHARS) -> str:
        """Read a text file from the sandbox.

        For binary files, use attachments instead.
        """
        await self._allow("read_file", path)
        return self.sandbox.read(path, max_chars=max_chars)

    async def write_file(self, ctx: Any, path: str, content: str) -> str:
        """Write a text file to the sandbox."""
        await self._allow("write_file", path)
        self.sandbox.write(path, content)
        return f"Written {len(content)} characters to {path}"

    async def list_files(self, ctx: Any, path: str = ".", pattern: str = "**/*") -> list[str]:
        """List files in the sandbox matching a glob pattern."""
        await self._allow("list_files", path)
        return self.sandbox.list_files(path, pattern)

    async def edit_file(self, ctx: Any, path: str, old_text: str, new_text: str) -> str:
        """Replace a text that occurs exactly once in a file of the sandbox."""
        await self._allow("edit_file", path)
        if not isinstance(self.sandbox, FileSandbox):
            raise FileSandboxError("this sandbox cannot edit files")
        return self.sandbox.edit(path, old_text, new_text)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """{"ok": true, "result": ...}, or {"ok": false, "error": {"class", "message", "code", "retryable"}}."""
        try:
            if name not in self.TOOLS:
                raise FileSandboxError(f"there is no tool '{name}'.\nTools: {', '.join(self.TOOLS)}")
            return {"ok": True, "result": await getattr(self, name)(None, **arguments)}
        except FileSandboxError as error:
            return refused(error, error.message, error.retryable)
        except (SandboxError, TypeError, ValueError) as error:
            return refused(error, str(error), True)


def refused(error: Exception, message: str, retryable: bool) -> dict[str, Any]:
    """An error as a value."""
    kind = type(error).__name__.removeprefix("Sandbox") if isinstance(error, OSError) else type(error).__name__
    return {
        "ok": False,
        "error": {"class": kind, "message": message, "code": getattr(error, "name", ""), "retryable": retryable},
    }
