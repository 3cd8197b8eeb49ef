"""What ROCm lacks and a small header of ours does as well: names are redirected to it, the header is included."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping

from amdflow.migrate import lexer
from amdflow.migrate.compat import FOLDER, StandIn
from amdflow.migrate.fixes import Applied
from amdflow.migrate.text import line_ending, line_starts

RULE = "AMF1024"

_DEFINITION = r"^[ \t]*#[ \t]*define[ \t]+{0}\b|\b{0}\s*\([^;{{}}()]*\)\s*(?:const\s*)?\{{"


def use_compat_headers(
    text: str, name: str, stand_ins: Mapping[str, StandIn], own_names: Collection[str]
) -> tuple[str, list[Applied], set[str]]:
    """New text, what was done, the compatibility headers now needed.

    ``name`` is the file's path in the tree; names that the tree defines itself (``own_names``) are its own business.
    """
    place = "../" * name.count("/") + FOLDER
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
        return f"{place}/{header}"

    included: set[str] = set()
    new = lexer.rewrite(text, word, include)
    new = re.sub(rf"<({re.escape(place)}/\w+\.h)>", r'"\1"', new) if included else new
    missing = [header for header in wanted if header not in included]
    if missing:
        new = _insert(new, [f'#include "{place}/{header}"' for header in missing])
    lines.extend(
        Applied(RULE, bisect_right(starts, found.start), f"uses {found.path}: this ROCm lacks it")
        for found in (lexer.includes(text) if included else ())
        if found.path.startswith(f"{FOLDER}/")
    )
    return new, lines, included | set(wanted)


def defined_names(masked: Iterable[str], names: Collection[str]) -> frozenset[str]:
    """Those of ``names`` that the tree defines itself (macros, functions), from its masked texts."""
    patterns = {name: re.compile(_DEFINITION.format(re.escape(name)), re.MULTILINE) for name in names}
    return frozenset(
        name for text in masked for name, pattern in patterns.items() if name in text and pattern.search(text)
    )


def _insert(text: str, directives: list[str]) -> str:
    """Behind the last include that stands at the top level of the file, else at its start."""
    ending = line_ending(text)
    depth, at = 0, 0
    masked = lexer.mask(text)
    includes = {
        text.rfind("\n", 0, found.start) + 1: text.find("\n", found.start) + 1 for found in lexer.includes(text)
    }
    offset = 0
    for line in masked.split("\n"):
        word = line.lstrip().lstrip("#").lstrip()
        if line.lstrip().startswith("#") and word.startswith("if"):
            depth += 1
        elif line.lstrip().startswith("#") and word.startswith("endif"):
            depth -= 1
        if offset in includes and depth == 0:
            at = includes[offset] or len(text)
        offset += len(line) + 1
    block = "".join(f"{directive}{ending}" for directive in directives)
    if at == 0 and text.startswith("\ufeff"):
        return f"\ufeff{block}{text[1:]}"
    return text[:at] + block + text[at:]
