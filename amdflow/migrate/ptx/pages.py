"""The reference page of inline PTX, made from the tables so that it cannot drift.

``python -m amdflow.migrate.ptx.pages > docs/reference/ptx.md`` writes it anew.
"""

from __future__ import annotations

import re
import sys

from amdflow.migrate.ptx.table import ROWS, SPECIAL_REGISTERS, Row
from amdflow.migrate.ptx.translate import FAMILIES

_HEAD = """# Inline PTX

Generated from `amdflow/migrate/ptx/`: do not edit by hand.

An `asm` statement is written as C++ when every instruction in it stands in one of the tables below; otherwise it is left
alone as a whole, and the finding names the first instruction that does not (tensor cores, TMA, mbarrier, clusters, named
barriers, loops, a carry from another statement, text put together by macros). The
statement then reads `AMDFLOW_PTX(asm(…), C++)`: HIP's NVIDIA platform compiles the PTX as it was, every other platform
the C++, which calls the headers in `amdflow_compat/`. Lines stay where they were. Scopes, `.reg` declarations,
predicates, several instructions, vector operands, named operands and macro bodies are understood.

Lane numbers, lane masks and instructions across lanes mean logical warps of 32 lanes, on waves of 64 as well. With
`--native-warp`, and in files that know waves of 64 themselves, those are left to you.

In the patterns `{t:a|b}` is a choice and `[.x]` a part that may be missing; `@` is `amdflow::ptx::`, `{0}` an input,
`{T}` the C++ type, `{M}` the modifiers.
"""


def ptx_page() -> str:
    """Markdown: instructions that are one call, those with many forms, special registers."""
    rows = [_row(row) for row in ROWS]
    forms = [
        f"| `{_cell(_plain(family.pattern))}` | {family.about}{_also(family.remark, warp=family.warp)} |"
        for family in FAMILIES
    ]
    registers = [f"| `%{name}` | `{text}` | {remark} |" for name, (_kind, text, remark) in SPECIAL_REGISTERS.items()]
    return "\n".join(
        (
            _HEAD,
            "## Instructions that become one call\n",
            "| PTX | C++ | |",
            "|---|---|---|",
            *rows,
            "\n## Instructions with many forms\n",
            "| PTX | becomes |",
            "|---|---|",
            *forms,
            "\n## Special registers\n",
            "| PTX | C++ | |",
            "|---|---|---|",
            *registers,
            "",
        )
    )


def _row(row: Row) -> str:
    return f"| `{_cell(row.pattern)}` | `{_cell(row.call)}` | {row.about}{_also(row.remark, warp=row.warp)} |"


def _also(remark: str, *, warp: bool) -> str:
    said = [remark] if remark else []
    said += ["warps of 32 lanes"] if warp else []
    return f" ({'; '.join(said)})" if said else ""


def _plain(pattern: str) -> str:
    """A regular expression as a reader would write it."""
    shown = pattern.replace(r"\.", ".").replace(".*", "…").replace("(?:", "(").replace("[ag]", "(a|g)")
    return re.sub(r"\(\?![^)]*\)", "", shown)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    sys.stdout.write(ptx_page())
