"""The engine speaks of options of the command line; here they become the keywords that a Python program writes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from . import _px
from ._errors import SandboxError

NO_CGROUP = 13  # PX013
VALUE = r"[A-Z]{2,}|outbound|loopback|none|host|try|[\w-]*\d(?:[\w.*-]*\w)?"
OPTION = re.compile(rf"(?<!systemd-run )(?<!px exec )(?<![\w`-])--([a-z]+(?:-[a-z]+)*)(?:[ =]({VALUE})(?=[\s.,;:)]|$))?")
PORT = re.compile(r"(?<!\S)(?:-p|--publish) (\d+):(\d+)(?:/tcp|(/udp))?")
BIND = re.compile(r"(?<!\S)-v (\S*[^\s.,;:)])")
FIELDS = frozenset(field[0] for field in _px.fields())


class Names(NamedTuple):
    """What one class calls the fields of a policy.

    fields: by field, or by field and value; what has a '=' in it stands for both
    more:   what its user can do as well, by the code of an error
    """

    fields: Mapping[str, str]
    more: Mapping[int, str]


SANDBOX = Names(
    {
        "allow-host-loopback": "allow_host_loopback=True",
        "base": "base",
        "cpus": "cpus",
        "disk": "disk",
        "env": "env",
        "memory": "memory",
        "net loopback": "enable_network=True",
        "net none": "enable_network=False",
        "net outbound": "enable_outbound=True",
        "overlay": "rootfs_overlay=True",
        "overlay DIR": "rootfs_overlay_path=DIR",
        "persist": "persist_overlayfs=True",
        "pids": "pids",
        "rootfs": "rootfs",
        "work-dir": "work_dir",
    },
    {NO_CGROUP: 'Or go without a limit that this host cannot hold: policy={"limits": "try"}.'},
)
EXECUTOR = Names(
    {
        "base": "image",
        "cpus": "cpu_limit",
        "dns": "dns_servers",
        "memory": "memory_limit",
        "net none": 'network_mode="none"',
        "net outbound": 'network_mode="bridge"',
        "pids": "pids_limit",
        "runtime": "runtime",
        "timeout": "timeout",
    },
    {NO_CGROUP: 'Or go without a limit that this host cannot hold: SandboxConfig(limits="try").'},
)


def translated(text: str, names: Names) -> str:
    """The text with Python's names; a field that has none is one of policy=."""

    def named(found: re.Match[str]) -> str:
        field, value = found[1], found[2]
        name = names.fields.get(f"{field} {value}") or names.fields.get(field)
        shown = value if value and value.isupper() else f'"{value}"'
        if name is None and field not in FIELDS:
            return found[0]
        if name is None:
            return f'policy={{"{field}": {shown}}}' if value else f'policy["{field}"]'
        return name if "=" in name or not value else f"{name}={shown}"

    text = PORT.sub(lambda found: f"forward_port({found[2]}, {found[1]}" + (', "udp")' if found[3] else ")"), text)
    text = BIND.sub(lambda found: f'policy={{"bind": ["{found[1]}"]}}', text)
    return OPTION.sub(named, text).replace("px box start", "Sandbox()")


@contextlib.contextmanager
def spoken(names: Names) -> Iterator[None]:
    """Errors of the engine that leave the block have Python's names in them."""
    try:
        yield
    except SandboxError as error:
        error.what, error.why, error.fix = (translated(text, names) for text in (error.what, error.why, error.fix))
        if error.code in names.more:
            error.fix = f"{error.fix}\n{names.more[error.code]}" if error.fix else names.more[error.code]
        raise
