"""Policies from keywords."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from . import _px

Value = str | int | float | bool | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
Setting = tuple[str, str | None]


def settings_of(fields: Mapping[str, Value]) -> list[Setting]:
    """The fields of px-policy(5) as words: memory="512m", binds by a list, True for a flag, None for nothing."""
    found: list[Setting] = []
    for name, value in fields.items():
        field = name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            found.append((field, None))
        elif isinstance(value, (str, int, float)):
            found.append((field, str(value)))
        elif isinstance(value, os.PathLike):
            found.append((field, os.fspath(value)))
        else:
            found.extend((field, os.fspath(item)) for item in value)
    return found


def environment(env: Mapping[str, str] | None) -> list[Setting]:
    """Variables as settings."""
    return [("env", f"{name}={value}") for name, value in (env or {}).items()]


def policy_of(preset: str, *groups: Iterable[Setting]) -> _px.Policy:
    """A policy with these settings; a later one wins, or adds where the field can be repeated."""
    policy = _px.Policy(preset)
    for group in groups:
        for field, value in group:
            policy.set(field, value)
    return policy


def seconds(value: float | None) -> str:
    """As the engine reads it."""
    return "unlimited" if value is None else f"{max(1, round(value * 1000))}ms"
