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
    for name in env or {}:
        if not isinstance(name, str) or not name or "=" in name:
            raise ValueError(f"env: {name!r} is no name of a variable: it has at least one character, and no '='")
    return [("env", f"{name}={value}") for name, value in (env or {}).items()]


def policy_of(preset: str, *groups: Iterable[Setting]) -> _px.Policy:
    """A policy with these settings; a later one wins, or adds where the field can be repeated."""
    policy = _px.Policy(preset)
    for group in groups:
        for field, value in group:
            policy.set(field, value)
    return policy


class Unasked(float):
    """The timeout of a command whose caller has named none."""


TIMEOUT = Unasked(10.0)


def checked_timeout(value: float | None) -> float | None:
    """Seconds that a command can be given; None: no bound."""
    if value is not None and not value > 0:
        raise ValueError(f"timeout: {value!r} seconds are not more than 0; None stands for no bound")
    return value


def seconds(value: float | None) -> str:
    """As the engine reads it."""
    return "unlimited" if value is None else f"{max(1, round(value * 1000))}ms"
