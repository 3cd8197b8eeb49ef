"""The reference page of all diagnostics, made from the catalogue so that it cannot drift.

``python -m amdflow.migrate.rules.pages > docs/reference/diagnostics.md`` writes it anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from amdflow.content import shipped
from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.rules.scope import describe

_HEAD = """# Diagnostics

What `amdflow` reports: AMF1xxx by `amdflow migrate`, AMF2xxx by `kernels`, AMF5xxx by `finetune`, AMF6xxx by `export`, AMF7xxx by
`serve`.

Generated from `migration/rules/`: do not edit by hand. `amdflow explain ID` prints the same in the terminal.

Severity says what happens if nobody acts: `silent` compiles and computes the wrong thing, `compile` blocks the compiler,
`link` blocks linking or loading, `slow` is right but slow, `note` is good to know.
"""


def diagnostics_page(rules: Iterable[Rule]) -> str:
    """Markdown: a table, then one section for each rule."""
    chosen = sorted(rules, key=lambda rule: rule.id)
    rows = [
        f"| [{rule.id}](#{rule.id.lower()}) | {rule.severity.value} | {rule.effort.value} | {rule.title} |"
        for rule in chosen
    ]
    parts = [_HEAD, "| id | severity | effort | title |\n|---|---|---|---|\n" + "\n".join(rows)]
    parts += [_section(rule) for rule in chosen]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _section(rule: Rule) -> str:
    lines = [
        f"## {rule.id}",
        f"**{rule.title}** ({rule.category}; {rule.severity.value}; effort: {rule.effort.value})",
        *([f"Matters on: {scope}."] if (scope := describe(rule)) else []),
        *(
            [f"Settled by [{rule.kept_by}](#{rule.kept_by.lower()}) in the files that it covers."]
            if rule.kept_by
            else []
        ),
        rule.explanation.strip(),
        f"Fix: {rule.fix.strip()}",
    ]
    if rule.example:
        code = f"// before\n{rule.example.before.strip()}\n\n// after\n{rule.example.after.strip()}"
        lines.append(f"```{'cmake' if rule.category == 'build' else 'cpp'}\n{code}\n```")
    if rule.reference:
        lines.append(f"See: {rule.reference}.")
    return "\n\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(diagnostics_page(load_catalogue(shipped("migration").parent).rules.values()))
