"""What the sandboxes with and without an event loop share: the box that stays, and its directories."""

from __future__ import annotations

import contextlib
import os
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypedDict, TypeVar

from . import _px
from ._errors import SandboxError
from ._folders import Scratch, StrPath, absolute, unpack, write_new
from ._loop import Loop
from ._policy import Setting, Value, checked_timeout, environment, policy_of, settings_of
from ._process import Home, Pipes
from ._streams import step_out
from ._talk import Talk
from ._words import SANDBOX, spoken

Command = str | Sequence[str]
Process = TypeVar("Process", bound="Talk")
PRESET = "session"
BASE = "debian-12"
NO_BASE = 900  # PX900
HOME = "/home/sandbox"
LOOPBACK = "127.0.0.1"
ROWS, COLS = 24, 80


class CommandOptions(TypedDict, total=False):
    """Of one command: variables, working directory, the size of its terminal."""

    env: Mapping[str, str] | None
    cwd: str | None
    rows: int
    cols: int


# ---- the box ----


def end_box(box: _px.Box) -> None:
    """Ends it, and returns when it is gone."""
    box.kill()
    step_out(box)


def kill_all(processes: Iterable[Talk]) -> None:
    """Ends commands that have a box of their own."""
    for process in list(processes):
        with contextlib.suppress(SandboxError):
            process.kill()


def release(
    box: _px.Box | None,
    scratch: Scratch,
    owner: int,
    watchers: list[Callable[[], None]],
    apart: Iterable[Talk] = (),
    ports: Sequence[_px.Box] = (),
) -> None:
    """What is left of a sandbox goes; in a forked child it is not ours. No loop may watch a closed descriptor."""
    if owner != os.getpid():
        return
    while watchers:
        watchers.pop()()
    kill_all(apart)
    try:
        for one in (*ports, *([] if box is None else [box])):
            end_box(one)
    finally:
        scratch.close()


def of_process(pid: int) -> str:
    """The network of the box with this process, as a policy says it."""
    return f"pid:{int(pid)}"


def default_base() -> str | None:
    """What an overlay is laid over if nothing was named: the base that `px sandbox base build` makes, if it is there."""
    try:
        return BASE if _px.stored_root(BASE, bool, True) else None
    except SandboxError as error:
        if error.code != NO_BASE:
            raise
    return None


class SandboxNetwork:
    """The network of a sandbox: a namespace of its own, which all of its commands share."""

    def __init__(self, mode: str, sandbox: SandboxBase[Any]) -> None:
        self.mode = mode
        self._sandbox = weakref.proxy(sandbox)  # so that both may be freed without a search for cycles

    def namespace_pid(self, override: int | None = None) -> int:
        """A process of the host's count that is in the namespace."""
        return int(self._sandbox._home_pid()) if override is None else override


class SandboxBase(Generic[Process]):
    """A box that stays, with a home and a /tmp that are directories of the host."""

    _kind: Callable[[_px.Box, Pipes, Home, float | None, Loop], Process]
    work_dir: Path
    tmp_dir: Path
    network: SandboxNetwork | None

    def __init__(
        self,
        rootfs: StrPath | None = None,
        work_dir: StrPath | None = None,
        rootfs_path: StrPath | None = None,
        rootfs_overlay: bool = False,
        rootfs_overlay_path: StrPath | None = None,
        persist_overlayfs: bool = False,
        enable_network: bool = True,
        enable_outbound: bool = False,
        allow_host_loopback: bool = False,
        *,
        base: str | None = None,
        memory: str | int | None = None,
        cpus: float | None = None,
        pids: int | None = None,
        disk: str | int | None = None,
        env: Mapping[str, str] | None = None,
        policy: Mapping[str, Value] | None = None,
        ns_pid_override: int | None = None,
    ) -> None:
        """See docs/python.md.

        base:   a base of px's store instead of the host's programs
        memory, cpus, pids, disk: bounds on everything in the sandbox together: "512m", 1.5, 100, "1g"
        env:    variables of every command
        policy: any other field of px-policy(5): {"seccomp": "strict", "bind": ["/data:/data:ro"]}
        ns_pid_override: join the network of another sandbox: its network.namespace_pid()
        """
        self._closed = False
        if persist_overlayfs and rootfs_overlay_path is None:
            raise ValueError("persist_overlayfs needs rootfs_overlay_path: the directory that keeps the changes")
        if (persist_overlayfs or rootfs_overlay_path is not None) and not rootfs_overlay:
            raise ValueError("persist_overlayfs and rootfs_overlay_path have no meaning without rootfs_overlay=True")
        if (enable_outbound or allow_host_loopback) and not enable_network:
            raise ValueError("enable_outbound and allow_host_loopback need enable_network=True")
        if allow_host_loopback and not enable_outbound:
            raise ValueError("allow_host_loopback needs enable_outbound=True")
        if ns_pid_override is not None and (enable_outbound or not enable_network):
            raise ValueError("ns_pid_override is the network of another sandbox, which says whether it is outbound")
        self._rootfs = self._find_root(rootfs, rootfs_path)
        if rootfs_overlay and self._rootfs is None and base is None and not {"base", "rootfs"} & set(policy or {}):
            base = default_base()
        net = "outbound" if enable_outbound else "loopback" if enable_network else "none"
        net = net if ns_pid_override is None else of_process(ns_pid_override)
        self._settings: list[Setting] = [
            ("timeout", "unlimited"),  # of each command: run() has one
            ("net", net),
            *settings_of(
                {
                    "allow-host-loopback": allow_host_loopback,
                    "base": base,
                    "rootfs": self._rootfs,
                    "memory": memory,
                    "cpus": cpus,
                    "pids": pids,
                    "disk": disk,
                    "persist": persist_overlayfs,
                }
            ),
            *(
                [("overlay", str(absolute(rootfs_overlay_path)) if rootfs_overlay_path else None)]
                if rootfs_overlay
                else []
            ),
            *environment(env),
            *settings_of(policy or {}),
        ]
        self._commands: dict[bool, _px.Policy] = {}
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()
        self._apart: weakref.WeakSet[Process] = weakref.WeakSet()  # those of them with another network
        self._ports: list[_px.Box] = []  # that of forward_port(), if the box has none itself
        self._start(work_dir)
        self.network = SandboxNetwork(self._net(), self) if enable_network else None
        if persist_overlayfs:
            warnings.warn(f"the overlay in {rootfs_overlay_path} stays after close()", stacklevel=2)

    @staticmethod
    def _find_root(rootfs: StrPath | None, rootfs_path: StrPath | None) -> Path | None:
        """The archive or directory that becomes the root."""
        if rootfs_path is None:
            return None if rootfs is None else absolute(rootfs)
        if rootfs is not None:
            unpack(absolute(rootfs), absolute(rootfs_path))
        return absolute(rootfs_path)

    def _start(self, work_dir: StrPath | None) -> None:
        scratch = Scratch()
        try:
            self.tmp_dir = scratch.folder("tmp")
            if work_dir is None:
                self.work_dir = scratch.folder("work")
            else:
                self.work_dir = absolute(work_dir)
                self.work_dir.mkdir(parents=True, exist_ok=True)  # follow: the caller's own path
            self._places: list[Setting] = [("work-dir", str(self.work_dir)), ("bind", f"{self.tmp_dir}:/tmp:rw")]
            with spoken(SANDBOX):
                self._home: _px.Box | None = _px.stay(policy_of(PRESET, self._settings, self._places))
        except BaseException:
            release(None, scratch, os.getpid(), [])
            raise
        self._owner = os.getpid()
        self._watchers: list[Callable[[], None]] = []
        self._release = weakref.finalize(self, release, self._home, scratch, self._owner, self._watchers, self._apart, self._ports)

    def _home_pid(self) -> int:
        return self._alive().pid()

    def _alive(self) -> _px.Box:
        if self._home is None:
            raise SandboxError(
                "the sandbox is closed",
                why="close() was called, or its with block was left.",
                fix="Make another Sandbox.",
            )
        return self._home

    def _command(self, tty: bool, env: Mapping[str, str] | None, cwd: str | None) -> _px.Policy:
        """The policy of a command. Commands without wishes of their own share one."""
        plain = not env and cwd is None
        found = self._commands.get(tty) if plain else None
        if found is None:
            found = policy_of(PRESET, self._settings, environment(env), settings_of({"tty": tty, "workdir": cwd}))
            if plain:
                self._commands[tty] = found
        return found

    def _loop(self) -> Loop:
        """That of a command which is about to start."""
        raise NotImplementedError

    def _run(
        self,
        command: Command,
        timeout: float | None,
        use_pty: bool = False,
        ns_pid_override: int | None = None,
        *,
        rows: int = ROWS,
        cols: int = COLS,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Process:
        """run(), which begins without waiting."""
        home = self._alive()
        checked_timeout(timeout)
        loop = self._loop()
        argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
        pipes = Pipes(use_pty)
        try:
            with spoken(SANDBOX):
                if ns_pid_override is None:
                    box = home.exec(self._command(use_pty, env, cwd), argv, *pipes.theirs(), rows, cols)
                else:
                    policy = self._elsewhere(ns_pid_override, use_pty, env, cwd)
                    box = _px.start(policy, argv, *pipes.theirs(), rows, cols)
        except BaseException:
            pipes.close()
            raise
        finally:
            pipes.close_theirs()
        process = self._kind(box, pipes, self, timeout, loop)
        self._processes.add(process)
        if ns_pid_override is not None:
            self._apart.add(process)
        return process

    def _elsewhere(self, pid: int, tty: bool, env: Mapping[str, str] | None, cwd: str | None) -> _px.Policy:
        """The policy of a command with the network of another sandbox, and so with a box of its own on our directories."""
        if any(field == "overlay" for field, _ in self._settings):
            raise SandboxError(
                "ns_pid_override: a command with another network has a root of its own, not the overlay of this sandbox",
                fix="Let all commands join: Sandbox(ns_pid_override=...).",
            )
        own = settings_of({"tty": tty, "workdir": cwd, "net": of_process(pid)})
        return policy_of(PRESET, self._settings, self._places, environment(env), own)

    def _write_script(self, code: str, run_command: str, extension: str) -> str:
        """The command that runs the code, which now lies in the box's /tmp."""
        self._alive()
        if "/" in extension:
            raise ValueError(f"extension: '{extension}' has a slash in it")
        name = f"script_{uuid.uuid4().hex}.{extension}"
        try:
            write_new(self.tmp_dir, name, code, 0o644)
        except OSError as error:
            raise SandboxError(
                f"the script cannot be written to the sandbox's /tmp: {error.strerror}",
                why="Commands of the sandbox can fill that directory and change its mode.",
                fix="Remove files there, or make another Sandbox.",
            ) from error
        if run_command == "python":  # some roots, Debian's among them, have it by its longer name only
            run_command = "$(command -v python || echo python3)"
        return f"{run_command} /tmp/{name}"

    @property
    def rootfs_dir(self) -> Path | None:
        """The directory that is the root of the box; None if there is none.

        That is so for the host's programs, for a base, and for an overlay, whose files export() gives.
        """
        if any(field == "overlay" for field, _ in self._settings):
            return None
        if self._rootfs is None or self._rootfs.is_dir():
            return self._rootfs
        return Path(_px.stored_root(self._rootfs, lambda found: found))

    def _net(self) -> str:
        """As the policy says it, where policy= has the last word."""
        return [value or "" for field, value in self._settings if field == "net"][-1]

    def _is_carried(self) -> bool:
        """Whether px-net serves the network of the box: of the outbound one, and of one with ports."""
        return self._net().startswith("outbound") or any(field == "publish" for field, _ in self._settings)

    def forward_port(self, sandbox_port: int, host_port: int = 0, proto: str = "tcp") -> dict[str, Any]:
        """Makes a port of the sandbox reachable at the host's loopback. host_port 0: one that is free; the answer names it.

        The host listens at once and until close(); who comes before something listens in the sandbox is hung up on.
        """
        home = self._alive()
        if self.network is None or self.network.mode.startswith(("pid:", "box:")):
            raise SandboxError(
                "forward_port needs a network of this sandbox's own",
                fix="Make the sandbox with enable_network=True, or ask the one that has made the network.",
            )
        if proto not in ("tcp", "udp"):
            raise ValueError(f"proto: '{proto}' is neither tcp nor udp")
        publish = f"{host_port}:{sandbox_port}/{proto}"
        with spoken(SANDBOX):
            if self._is_carried() or self._ports:
                carrier = home if self._is_carried() else self._ports[0]
                carrier.network("publish", publish)
            else:  # one more box in the same network, which has nothing but the ports
                own = [("net", of_process(home.pid())), ("publish", publish), ("timeout", "unlimited")]
                carrier = _px.stay(policy_of(PRESET, own))
                self._ports.append(carrier)
        address, port, guest, kind = carrier.ports()[-1]
        return {"proto": kind, "host_addr": address, "host_port": port, "guest_port": guest}

    def close(self) -> None:
        """Ends every command and removes what is temporary. May be called again."""
        home, self._home = self._home if not self._closed else None, None
        self._closed = True
        if home is None or self._owner != os.getpid():  # in a forked child it is not ours to end
            return
        try:
            kill_all(self._apart)
            for process in list(self._apart):  # the others go with the box, these use its directories
                process._lost()
            self._release()
        finally:
            self._watchers.clear()  # they have the box
            for process in list(self._processes):
                process._lost()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def __enter__(self) -> Self:
        self._alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
