"""What ROCm lacks and a small header of ours does as well: names are redirected to it, the header is included."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable

from amdflow.migrate import lexer
from amdflow.migrate.compat import FOLDER, include_path
from amdflow.migrate.fixes import Applied, Change, Draft, insert_include
from amdflow.migrate.text import line_starts

RULE = "AMF1024"

_DEFINITION = r"^[ \t]*#[ \t]*define[ \t]+{0}\b|\b{0}\s*\([^;{{}}()]*\)\s*(?:const\s*)?\{{"


def use_compat_headers(draft: Draft) -> Change:
    """Redirect names that compatibility headers have; those that the tree defines itself are its own business."""
    text, stand_ins, own_names = draft.text, draft.context.stand_ins, draft.context.own_names
    starts = line_starts(text)
    wanted: dict[str, int] = {}
    lines: list[Applied] = []

    def word(found: str, match: re.Match[str]) -> str:
        stand_in = stand_ins.get(found)
        if stand_in is None or found in own_names:
            return found
        line = bisect_right(starts, match.start())
        wanted.setdefault(stand_in.header, line)
        lines.append(Applied(RULE, line, f"{found} comes from {FOLDER}/{stand_in.header}: this ROCm lacks it"))
        return stand_in.use

    def include(path: str, _quoted: bool) -> str | None:
        folder, _slash, header = path.partition("/")
        if folder != FOLDER:
            return None
        included.add(header)
        return include_path(draft.name, header)

    included: set[str] = set()
    new = lexer.rewrite(text, word, include)
    new = re.sub(rf"<({re.escape(include_path(draft.name, ''))}\w+\.h)>", r'"\1"', new) if included else new
    missing = [header for header in wanted if header not in included]
    if missing:
        first = line_starts(new)[min(wanted[header] for header in missing) - 1]
        directives = (f'#include "{include_path(draft.name, header)}"' for header in missing)
        new = insert_include(new, *directives, before=first)
    lines.extend(
        Applied(RULE, bisect_right(starts, found.start), f"uses {found.path}: this ROCm lacks it")
        for found in (lexer.includes(text) if included else ())
        if found.path.startswith(f"{FOLDER}/")
    )
    return Change(new, lines, frozenset(included | set(wanted)))


def defined_names(masked: Iterable[str], names: Collection[str]) -> frozenset[str]:
    """Those of ``names`` that the tree defines itself (macros, functions), from its masked texts."""
    patterns = {name: re.compile(_DEFINITION.format(re.escape(name)), re.MULTILINE) for name in names}
    return frozenset(
        name for text in masked for name, pattern in patterns.items() if name in text and pattern.search(text)
    )
