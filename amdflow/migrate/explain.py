"""What a diagnostic means, and what a CUDA name is called in HIP."""

from __future__ import annotations

import tempfile
from pathlib import Path

from amdflow.config import nearest
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.migrate.api_map import api_json, export_map, export_tables
from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.rules.scope import describe
from amdflow.terminal import Terminal
from amdflow.toolchain import Rocm

_SAYS = {
    "silent": "compiles and computes the wrong thing",
    "compile": "blocks the compiler",
    "link": "blocks linking or loading",
    "slow": "right, but slow",
    "note": "good to know",
}


def explain_rule(rule_id: str, workspace: Path, terminal: Terminal) -> None:
    """Print one rule in full. Raises UsageError for an id that no rule has."""
    rule = load_catalogue(workspace).get(rule_id)
    terminal.data(rule.model_dump(mode="json", exclude={"samples"}))
    terminal.print("\n".join(_page(rule)))


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


def lookup_name(name: str, workspace: Path, rocm: Rocm, terminal: Terminal) -> None:
    """Print what ``name`` becomes. Raises UsageError when the tool does not know it, EnvironmentProblem without hipify-clang."""
    if rocm.hipify is None:
        raise EnvironmentProblem(
            f"ROCm {rocm.version} in {rocm.root} has no hipify-clang", hint="amdflow toolchain install rocm"
        )
    tables = {api.name: api for api in export_tables(rocm.hipify)}
    with tempfile.TemporaryDirectory(prefix="amdflow-") as folder:
        known = export_map(rocm.hipify, Path(folder) / "map.json")
    supplement = load_catalogue(workspace).supplement
    headers = {**known.headers, **supplement.headers}
    if name in headers:
        terminal.data({"name": name, "hip": headers[name] or None, "table": "headers"})
        terminal.print(f"{name} -> {headers[name] or '(not needed in HIP: the include is dropped)'}")
        return
    if name not in tables and name not in supplement.names:
        close = nearest(name, (*tables, *headers))
        raise UsageError(
            f"{name} is not in the tables of hipify-clang {rocm.version}{close}",
            hint="it may be a name of the program's own, or a library that hipify-clang does not know",
        )
    if name in supplement.names:
        terminal.data({"name": name, "hip": supplement.names[name], "table": "amdflow's own rules"})
        terminal.print(f"{name} -> {supplement.names[name]}  (amdflow's own rules)")
        return
    api = tables[name]
    terminal.data(api_json(api))
    facts = [
        f"{api.table}, {api.section}",
        *(
            f"CUDA: {word} {value}"
            for word, value in (
                ("added", api.cuda_added),
                ("deprecated", api.cuda_deprecated),
                ("removed", api.cuda_removed),
            )
            if value
        ),
    ]
    facts += [
        f"HIP: {word} {value}"
        for word, value in (("since", api.hip_added), ("deprecated", api.hip_deprecated))
        if value
    ]
    terminal.print(
        f"{name} -> {api.hip or '(HIP has no such thing)'}{'  (experimental)' if api.hip_experimental else ''}\n  "
        + "\n  ".join(facts)
    )
