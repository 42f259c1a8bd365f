"""Configurations that are objects here, for an engine that reads files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ._errors import SandboxError
from .executor import memory_file

T = TypeVar("T")


def as_yaml(value: Any) -> str:
    """A value as the engine reads it. Numbers have at most three decimals."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{as_yaml(name)}: {as_yaml(item)}" for name, item in value.items()) + "}"
    return "[" + ", ".join(as_yaml(item) for item in value) + "]"


def loaded(fields: Mapping[str, Any], load: Callable[[str], T]) -> T:
    """What load makes of a file with these fields, one on each line; errors speak of SandboxConfig."""
    text = "".join(f"{name}: {as_yaml(value)}\n" for name, value in fields.items())
    fd = memory_file(text.encode())
    place = f"/proc/self/fd/{fd}"
    try:
        return load(place)
    except SandboxError as error:
        for name in (place, str(fd)):
            if error.what.startswith(name + ","):
                error.what = "SandboxConfig" + error.what[len(name) :]
        raise
    finally:
        os.close(fd)
