"""A command in a sandbox: its descriptors, its signals, and how its end is told. What both kinds of sandboxes share."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from typing import Any, Protocol

from . import _px
from ._errors import CommandError, SandboxError

INTERNAL = 125  # the exit code where the engine itself failed
_POLITE = (signal.SIGTERM, signal.SIGHUP)


class Home(Protocol):
    """The sandbox that a command is in."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""


class Pipes:
    """The descriptors between us and the engine, which copies between them and the box."""

    def __init__(self, pty: bool) -> None:
        self.stdin = self.stdout = self.stderr = -1  # ours
        self._theirs: list[int] = []
        self._socket: socket.socket | None = None
        self.pty = pty
        try:
            if pty:
                self._socket, theirs = socket.socketpair()
                self._theirs = [theirs.detach()]
                self._socket.setblocking(False)
                self.stdin = self.stdout = self._socket.fileno()
            else:
                read, self.stdin = os.pipe2(os.O_CLOEXEC)
                self._theirs.append(read)
                self.stdout, write = os.pipe2(os.O_CLOEXEC)
                self._theirs.append(write)
                self.stderr, write = os.pipe2(os.O_CLOEXEC)
                self._theirs.append(write)
                for fd in (self.stdin, self.stdout, self.stderr):
                    os.set_blocking(fd, False)
        except BaseException:
            self.close()
            self.close_theirs()
            raise

    def theirs(self) -> tuple[int, int, int]:
        """stdin, stdout and stderr for the engine."""
        return (
            (self._theirs[0], self._theirs[0], -1) if self.pty else (self._theirs[0], self._theirs[1], self._theirs[2])
        )

    def close_theirs(self) -> None:
        """The engine has copies."""
        while self._theirs:
            os.close(self._theirs.pop())

    def close_stdin(self) -> None:
        """Ends the input; on a terminal the engine types the character that means it."""
        fd, self.stdin = self.stdin, -1
        if fd >= 0 and self._socket is not None:
            with contextlib.suppress(OSError):  # the other side is gone
                self._socket.shutdown(socket.SHUT_WR)
        elif fd >= 0:
            os.close(fd)

    def close_output(self, fd: int) -> None:
        """What was read to its end; a terminal stays for close_pty(), whoever holds its descriptor."""
        if self.pty or fd not in (self.stdout, self.stderr):
            return
        if fd == self.stdout:
            self.stdout = -1
        else:
            self.stderr = -1
        os.close(fd)

    def close(self) -> None:
        """All of ours."""
        fds = {self.stdin, self.stdout, self.stderr} - {-1}
        self.stdin = self.stdout = self.stderr = -1
        if self._socket is not None:
            self._socket.close()
            return
        for fd in fds:
            os.close(fd)

    def __del__(self) -> None:  # neither the command's object nor a loop that reads has them any more
        self.close()


class ProcessBase:
    """A command in a sandbox."""

    def __init__(self, box: _px.Box, pipes: Pipes, sandbox: Home, timeout: float | None) -> None:
        self._box: _px.Box | None = box
        self._pipes = pipes
        self._sandbox: Home | None = sandbox  # it must not go out of scope before its commands
        self._timeout = timeout
        self._sent = 0  # the last signal that we asked for
        self._status: tuple[str, str, int, int, bytes, bytes] | None = None
        self._json = ""
        self._pid = box.pid()

    @property
    def pid(self) -> int:
        """The process as the host counts, 0 if it was gone at once. To end it use kill(): that cannot hit another."""
        return self._pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; its exit code; 128 + N if a signal N ended it, -N if that came from here."""
        if self._status is None:
            return None
        _, _, exit_code, number, _, _ = self._status
        ours = {self._sent, signal.SIGKILL} if self._sent in _POLITE else {self._sent}  # SIGKILL follows a polite one
        return -number if number and number in ours else exit_code

    @property
    def result(self) -> dict[str, Any] | None:
        """All that is known of the run, as px-exec(1) describes it; None while it runs."""
        found: dict[str, Any] | None = json.loads(self._json) if self._json else None
        return found

    @property
    def raw(self) -> _px.Box | None:
        """The engine's object; None once the command has ended."""
        return self._box

    @property
    def master_fd(self) -> int | None:
        """In PTY mode a socket to the terminal, not blocking and no terminal itself; None otherwise and at its end."""
        return self._pipes.stdout if self._pipes.pty and self._pipes.stdout >= 0 else None

    def terminate(self) -> None:
        """SIGTERM, and SIGKILL two seconds later."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it now, with everything that it started."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """To the command's process group, SIGKILL to everything that it started; nothing if it has ended."""
        if self._box is None:
            return
        self._sent = int(number)
        try:
            self._box.signal(int(number))
        except SandboxError:
            if self._box.step():  # it was not just that the command had ended before we knew
                raise

    def set_terminal_size(self, rows: int, cols: int) -> None:
        """Of the terminal, in PTY mode."""
        if not self._pipes.pty:
            raise SandboxError("PTY mode is not enabled", fix="Start the command with use_pty=True.")
        if self._box is not None:
            self._box.resize(rows, cols)

    def _checked(self, check: bool, stdout: bytes = b"", stderr: bytes = b"") -> int:
        """The exit code of a command that has ended; check: any other than 0 is an error."""
        code = self.returncode
        assert code is not None
        if check and code != 0:
            raise CommandError(code, stdout, stderr)
        return code

    def _take_end(self, error: Exception | None = None) -> None:
        """The engine says that the command is gone and its result final, or that it cannot say."""
        box, self._box = self._box, None
        if box is None:
            return
        if error is None:
            self._status, self._json = box.result(), box.json()
        else:
            self._status = ("internal", str(error), INTERNAL, 0, b"", b"")
        if self._sandbox is not None and self._sandbox.closed:
            self._sent, self._status = (
                signal.SIGKILL,
                ("signalled", "the sandbox was closed", 137, signal.SIGKILL, b"", b""),
            )
        self._sandbox = None
        box.close()

    def _lost(self) -> None:
        """The sandbox was closed under it."""
        raise NotImplementedError
