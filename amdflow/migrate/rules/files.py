"""Reads a rule file; what is wrong with it is said with file, line and what to write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from amdflow.config import Model, nearest, read_yaml_mapping
from amdflow.errors import UsageError
from amdflow.migrate.rules import model
from amdflow.migrate.rules.model import RuleFile


def read_rule_file(path: Path) -> RuleFile:
    """Raises UsageError with one line for each problem."""
    data = read_yaml_mapping(path)
    try:
        return RuleFile.model_validate(data)
    except ValidationError as error:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        problems = [_problem(path, root, data, detail) for detail in error.errors(include_url=False)]
        raise UsageError(
            "; ".join(problems), hint="`amdflow explain --list` has the shipped rules, docs/how-to/rules.md the format"
        ) from error


def _problem(path: Path, root: Any, data: dict[str, Any], detail: Any) -> str:
    location = tuple(detail["loc"])
    node, known = root, []
    for part in location:
        inner = _child(node, part)
        if inner is not None:
            node = inner
            known.append(part)
    line = node.start_mark.line + 1 if node is not None else 1
    where = ".".join(str(part) for part in known if part != "rules" and not isinstance(part, int))
    return f"{path}:{line}: {_owner(data, location)}{_words(where, location, detail)}"


def _child(node: Any, part: int | str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part]
    return None


def _owner(data: dict[str, Any], location: Sequence[int | str]) -> str:
    """``rule OUR001: `` when the problem lies in a rule that says its id."""
    if len(location) < 2 or location[0] != "rules" or not isinstance(location[1], int):
        return ""
    rule = data["rules"][location[1]]
    return f"rule {rule['id']}: " if isinstance(rule, dict) and "id" in rule else f"rule number {location[1] + 1}: "


def _words(where: str, location: Sequence[int | str], detail: Any) -> str:
    last = str(location[-1]) if location else ""
    if detail["type"] == "missing":
        return f"{where + ' ' if where else ''}needs the key {last!r}"
    if detail["type"] == "extra_forbidden":
        return f"unknown key {last!r}{nearest(last, _keys())}"
    message = detail["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(detail["input"], dict | list) else f", not {detail['input']!r}"
    close = _nearest_choice(detail)
    return f"{where}: {message[:1].lower()}{message[1:]}{shown}{close}"


def _nearest_choice(detail: Any) -> str:
    expected = str(detail.get("ctx", {}).get("expected", "") or detail.get("ctx", {}).get("expected_tags", ""))
    given = detail.get("ctx", {}).get("tag", detail["input"])
    choices = [word.strip(" '") for word in expected.replace(" or ", ", ").split(",") if word.strip(" '")]
    return nearest(str(given), choices) if choices and not isinstance(given, dict) else ""


def _keys() -> tuple[str, ...]:
    """Every key that the format has."""
    kinds = [kind for kind in vars(model).values() if isinstance(kind, type) and issubclass(kind, Model)]
    return tuple(sorted({name for kind in kinds for name in kind.model_fields}))
