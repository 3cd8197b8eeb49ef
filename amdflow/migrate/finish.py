"""From the tool's output to the file that is written: the textual pass, then automatic fixes, each line traced back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from amdflow.errors import AmdflowError
from amdflow.migrate import keep
from amdflow.migrate.fixes import Applied, Draft, Fix, FixContext
from amdflow.migrate.fixes.compat_headers import use_compat_headers
from amdflow.migrate.fixes.compiler_macros import extend_compiler_conditions
from amdflow.migrate.fixes.cub_warps import write_out_warp_widths
from amdflow.migrate.fixes.fragments import bring_fragment_headers
from amdflow.migrate.fixes.inline_ptx import rewrite_ptx
from amdflow.migrate.fixes.lane_masks import widen_lane_masks
from amdflow.migrate.fixes.logical_warps import RULE as LOGICAL_WARPS
from amdflow.migrate.fixes.logical_warps import keeps_warps, use_logical_warps
from amdflow.migrate.fixes.runtime_header import add_math_header, add_runtime_header
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.textual import TextMap, restore_own_headers
from amdflow.migrate.translate import Method, Translation

FIXES: tuple[Fix, ...] = (
    rewrite_ptx,
    use_compat_headers,
    use_logical_warps,
    write_out_warp_widths,
    bring_fragment_headers,
    extend_compiler_conditions,
    widen_lane_masks,
    add_math_header,
    add_runtime_header,
)
"""In this order: each sees what those before it left."""
_UNTOUCHED = (Method.UNCHANGED, Method.CARRIED)


@dataclass(frozen=True)
class Finished:
    """One file as it will be written. ``applied`` has original lines; ``compat`` are compatibility headers it includes.

    ``kept`` are fixes that hold for the whole file, by the id of their rule.
    """

    name: str
    text: str
    lines: LineMap
    applied: Sequence[Applied] = ()
    compat: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()


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
        return Finished(name, original, LineMap(original, original), kept=_kept(name, original, context))
    text = restore_own_headers(original, translation.text, own_headers, text_map.api.headers)
    kept = keep.find(original)
    restored = keep.restore(kept, text)
    text = kept.blanked if restored is None else keep.find(restored).blanked
    text = text_map.translate(text, own_headers)
    applied: list[Applied] = []
    compat: frozenset[str] = frozenset()
    for fix in FIXES:
        change = fix(Draft(name, text, unit, context, original))
        if change.applied:
            lines = LineMap(kept.blanked, text)
            applied += [Applied(done.rule, lines.original(done.line), done.message) for done in change.applied]
        text, compat = change.text, compat | change.compat
    text = _put_back(kept, text)
    return Finished(name, text, LineMap(original, text), applied, compat, _kept(name, text, context))


def _kept(name: str, text: str, context: FixContext) -> frozenset[str]:
    return frozenset({LOGICAL_WARPS}) if keeps_warps(name, text, context) else frozenset()


def _put_back(kept: keep.Kept, text: str) -> str:
    restored = keep.restore(kept, text)
    if restored is None:
        raise AmdflowError(
            "an automatic fix removed an `amdflow: keep` marker", hint="this is a fault of amdflow: please report it"
        )
    return restored
