"""px mcp in the configuration of a client: files and commands for an agent, by the Model Context Protocol.

    from px.adapters import mcp

    entry = mcp.server({"project": mcp.Root(".", "rw")}, options=["--memory", "2g", "--limits", "try"])
    print(json.dumps(mcp.config({"project": entry})))       # Claude Desktop, Claude Code, Cursor
    print(json.dumps(mcp.config({"project": entry}, "servers")))    # VS Code

An entry is what starts the server, so it also is the params of MCPServerStdio (OpenAI Agents) and the arguments of
StdioServerParameters. Its boundaries are on this command line, out of the agent's reach; px-mcp(1) tells the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from ..files import PathConfig as Root

__all__ = ["Entry", "Root", "StrPath", "config", "server"]

StrPath: TypeAlias = str | os.PathLike[str]


class Entry(TypedDict):
    """What starts a server."""

    command: str
    args: list[str]


def root_word(name: str, root: Root) -> str:
    """NAME=DIR:RULES, as px mcp reads it. Clients start servers wherever they like, so the directory is absolute."""
    place = os.path.abspath(root.root)
    for text, taken in ((name, "=:"), (place, ":"), *((suffix, ",:") for suffix in root.suffixes or ())):
        if any(char in text for char in f"{taken}\n\0"):
            raise ValueError(f"'{text}' cannot be written as a part of a root's rules")
    rules: list[str] = [root.mode]
    if root.suffixes is not None:
        rules.append("suffixes=" + ",".join(root.suffixes))
    if root.max_file_bytes is not None:
        rules.append(f"max={root.max_file_bytes}")
    return f"{name}={place}:{':'.join(rules)}"


def server(
    roots: Mapping[str, Root | StrPath],
    *,
    read_only: bool = False,
    execute: bool = True,
    git_writable: bool = False,
    options: Sequence[str] = (),
    px: str = "px",
) -> Entry:
    """The entry of a server.

    roots:        directories by their names; a plain path is one that is only read
    read_only:    no tool writes, and no command does
    execute:      whether there are commands at all
    git_writable: whether a .git in a writable root can be written
    options:      of px exec, for the box of the commands: ["--memory", "2g", "--limits", "try"]; without "try" each
                  command fails where there is no cgroup for the limit, as for most ordinary users
    px:           the program; give its whole path to a client that has another PATH
    """
    if not roots:
        raise ValueError("a server without a root has nothing to serve")
    words = ["mcp"]
    for name, root in roots.items():
        words += ["--root", root_word(name, root if isinstance(root, Root) else Root(root))]
    flags = (("--read-only", read_only), ("--no-execute", not execute), ("--git-writable", git_writable))
    return Entry(command=px, args=[*words, *(flag for flag, wanted in flags if wanted), *options])


def config(
    servers: Mapping[str, Entry], key: Literal["mcpServers", "servers"] = "mcpServers"
) -> dict[str, dict[str, Entry]]:
    """A client's configuration with these servers, to be written as JSON; for VS Code the key is "servers"."""
    return {key: dict(servers)}
