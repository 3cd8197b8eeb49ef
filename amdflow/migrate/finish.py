"""From the tool's output to the file that is written: the textual pass, then automatic fixes, each line traced back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from amdflow.migrate.fixes import Applied, FixContext
from amdflow.migrate.fixes.compat_headers import use_compat_headers
from amdflow.migrate.fixes.compiler_macros import extend_compiler_conditions
from amdflow.migrate.fixes.lane_masks import widen_lane_masks
from amdflow.migrate.fixes.runtime_header import add_math_header, add_runtime_header
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.syntax import Source
from amdflow.migrate.textual import TextMap, restore_own_headers
from amdflow.migrate.translate import Method, Translation

_UNTOUCHED = (Method.UNCHANGED, Method.CARRIED)


@dataclass(frozen=True)
class Finished:
    """One file as it will be written. ``applied`` has original lines; ``compat`` are compatibility headers it includes."""

    name: str
    text: str
    lines: LineMap
    applied: Sequence[Applied] = ()
    compat: frozenset[str] = frozenset()


def finish(
    translation: Translation,
    original: str,
    text_map: TextMap,
    own_headers: Collection[str],
    context: FixContext,
    *,
    unit: bool,
) -> Finished:
    """Apply the textual pass and the fixes. ``own_headers`` are include paths that mean files of the tree."""
    name = translation.name
    if translation.method in _UNTOUCHED:
        return Finished(name, original, LineMap(original, original))
    text = restore_own_headers(original, translation.text, own_headers, text_map.api.headers)
    text = text_map.translate(text, own_headers)
    applied: list[Applied] = []

    def done(before: str, fixes: Sequence[Applied]) -> None:
        lines = LineMap(original, before)
        applied.extend(Applied(fix.rule, lines.original(fix.line), fix.message) for fix in fixes)

    before = text
    text, fixes, compat = use_compat_headers(text, name, text_map.supplement.stand_ins, context.own_names)
    done(before, fixes)
    before = text
    text, fixes = extend_compiler_conditions(text)
    done(before, fixes)
    before = text
    text, fixes = widen_lane_masks(Source(name, text), context)
    done(before, fixes)
    before = text
    text, fixes = add_math_header(text)
    done(before, fixes)
    if unit and not name.endswith(".c"):
        before = text
        text, fixes = add_runtime_header(text)
        done(before, fixes)
    return Finished(name, text, LineMap(original, text), applied, frozenset(compat))
