"""An engine's own options: read from a list or a mapping, layered over a profile's, written as argv."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from amdflow.errors import UsageError

Scalar = bool | int | float | str
Argument = Scalar | list[Scalar] | None
Arguments = dict[str, Argument]

OWNED = {
    "model": "--model",
    "model-path": "--model",
    "host": "--host",
    "port": "--port",
    "served-model-name": "--served-name",
}
SECRET = frozenset({"api-key", "admin-api-key"})
API_KEY_VARIABLE = "AMDFLOW_API_KEY"


def parse_arguments(value: Any) -> Any:
    """A mapping with option names as keys (no leading dashes), from a mapping or a list of words.

    In a list, ``name=value`` and ``--name=value`` set an option, a lone name is a switch, and a ``--name`` followed by
    a word without dashes takes it as its value. Anything else is handed back for the config model to refuse.
    """
    if isinstance(value, Mapping):
        return {_name(str(key)): item for key, item in value.items()}
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return value
    parsed: Arguments = {}
    words = list(value)
    while words:
        word = words.pop(0)
        name, equals, given = word.partition("=")
        if equals:
            parsed[_name(name)] = _scalar(given)
        elif word.startswith("-") and words and not words[0].startswith("-") and "=" not in words[0]:
            parsed[_name(name)] = _scalar(words.pop(0))
        else:
            parsed[_name(name)] = True
    return parsed


def check_arguments(arguments: Mapping[str, Argument]) -> None:
    """Refuse options that amdflow sets itself, and keys on a command line that every user of the machine can read."""
    for name in arguments:
        if name in OWNED:
            raise UsageError(
                f"engine option {name!r} is amdflow's to set",
                hint=f"use {OWNED[name]} (or its key in amdflow.yaml: serve)",
            )
        if name in SECRET:
            raise UsageError(
                f"engine option {name!r} would show the key to every user of this machine",
                hint=f"export {API_KEY_VARIABLE}=...",
            )


def render(arguments: Mapping[str, Argument]) -> list[str]:
    """Words of argv. True is a bare switch; False and None leave the option out; a list repeats the value."""
    words: list[str] = []
    for name, value in arguments.items():
        if value is None or value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words += [_text(item) for item in _items(value)]
    return words


def _items(value: Scalar | list[Scalar]) -> Iterable[Scalar]:
    return value if isinstance(value, list) else [value]


def _text(value: Scalar) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _name(word: str) -> str:
    return word.lstrip("-").replace("_", "-")


def _scalar(word: str) -> Scalar:
    return {"true": True, "false": False}.get(word.lower(), word)
