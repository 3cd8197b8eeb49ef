"""From the tool's output to the file that is written: the textual pass, then automatic fixes, each line traced back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from amdflow.migrate.fixes import Applied, FixContext
from amdflow.migrate.fixes.lane_masks import widen_lane_masks
from amdflow.migrate.fixes.runtime_header import add_runtime_header
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.syntax import Source
from amdflow.migrate.textual import TextMap
from amdflow.migrate.translate import Method, Translation

_UNTOUCHED = (Method.UNCHANGED, Method.CARRIED)


@dataclass(frozen=True)
class Finished:
    """One file as it will be written. ``applied`` has original lines."""

    name: str
    text: str
    lines: LineMap
    applied: Sequence[Applied]


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
    if translation.method in _UNTOUCHED:
        return Finished(translation.name, original, LineMap(original, original), ())
    text = text_map.translate(translation.text, own_headers)
    applied: list[Applied] = []
    before = text
    text, masks = widen_lane_masks(Source(translation.name, text), context)
    applied += masks
    if unit and not translation.name.endswith(".c"):
        text, header = add_runtime_header(text)
        applied += header
    earlier = LineMap(original, before)
    traced = [Applied(fix.rule, earlier.original(fix.line), fix.message) for fix in applied]
    return Finished(translation.name, text, LineMap(original, text), traced)
