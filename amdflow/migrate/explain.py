"""What a diagnostic means."""

from __future__ import annotations

from pathlib import Path

from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.rules.scope import describe
from amdflow.terminal import Terminal

_SAYS = {
    "silent": "compiles and computes the wrong thing",
    "compile": "blocks the compiler",
    "link": "blocks linking or loading",
    "slow": "right, but slow",
    "note": "good to know",
}


def explain_rule(rule_id: str, workspace: Path, terminal: Terminal) -> None:
    """Print one rule in full. Raises UsageError for an id that no rule has."""
    catalogue = load_catalogue(workspace)
    rule = catalogue.get(rule_id)
    terminal.data(rule.model_dump(mode="json", exclude={"samples"}))
    lines = _page(rule)
    if rule.id in catalogue.own:
        replaced = ", in the place of the shipped rule" if rule.id in catalogue.replaced else ""
        lines.insert(1, f"from {catalogue.own[rule.id]}{replaced}")
    terminal.print("\n".join(lines))


def list_rules(workspace: Path, terminal: Terminal) -> None:
    """Print every rule, one a line."""
    rules = list(load_catalogue(workspace).rules.values())
    terminal.data(
        [
            {"id": rule.id, "title": rule.title, "severity": rule.severity.value, "category": rule.category}
            for rule in rules
        ]
    )
    terminal.table(
        ("id", "severity", "effort", "title"),
        [(rule.id, rule.severity.value, rule.effort.value, rule.title) for rule in rules],
    )


def _page(rule: Rule) -> list[str]:
    lines = [
        f"{rule.id}  {rule.title}",
        "",
        f"{rule.severity.value}: {_SAYS[rule.severity.value]}; the fix takes {rule.effort.value}",
        *([f"matters on: {scope}"] if (scope := describe(rule)) else []),
        "",
        rule.explanation.strip(),
        "",
        "Fix",
        rule.fix.strip(),
    ]
    if rule.example:
        lines += ["", "Before", *_indented(rule.example.before), "", "After", *_indented(rule.example.after)]
    return [*lines, "", f"See: {rule.reference}"] if rule.reference else lines


def _indented(code: str) -> list[str]:
    return [f"    {line}" for line in code.rstrip().split("\n")]
