"""Inline PTX whose every instruction has a known equivalent becomes C++; the PTX stays beside it for HIP's NVIDIA platform."""

from __future__ import annotations

import re
from bisect import bisect_right

from amdflow.migrate import lexer
from amdflow.migrate.compat import FOLDER, include_path
from amdflow.migrate.fixes import Applied, Change, Draft, insert_include
from amdflow.migrate.ptx.statement import AsmStatement, NotUnderstood, asm_statements
from amdflow.migrate.ptx.table import COPY
from amdflow.migrate.ptx.translate import Rewritten, translate
from amdflow.migrate.syntax import Source, enclosing_function, text_of
from amdflow.migrate.text import line_starts, splice

RULE, STAGED_COPY, DIFFERS = "AMF1031", "AMF1215", "AMF1216"
HEADER = "ptx.h"
_MACRO = "AMDFLOW_PTX"
_WRAPPED = re.compile(rf"{_MACRO}\(\s*$")
_SHOWN = 60


def rewrite_ptx(draft: Draft) -> Change:
    """Wrap each statement that is understood whole; the others are not touched."""
    text = draft.text
    native = draft.context.native_warps or draft.name in draft.context.wave_aware
    source: Source | None = None
    starts = line_starts(text)
    pieces: list[tuple[int, int, str]] = []
    applied: list[Applied] = []
    for statement in asm_statements(text):
        if _WRAPPED.search(text[max(statement.start - 40, 0) : statement.start]):
            continue

        def in_kernel(statement: AsmStatement = statement) -> bool:
            nonlocal source
            source = source or Source(draft.name, text)
            return stands_in_kernel(source, statement.start)

        try:
            written = translate(statement, native_warp=native, in_kernel=in_kernel)
        except NotUnderstood:
            continue
        new = f"{_MACRO}({text[statement.start : statement.end]}, {written.code})"
        pieces.append((statement.start, statement.end, new))
        applied += _said(statement, written, bisect_right(starts, statement.start))
    if not applied:
        return Change(text)
    include = f'#include "{include_path(draft.name, HEADER)}"'
    return Change(insert_include(splice(text, pieces), include, before=pieces[0][0]), applied, frozenset({HEADER}))


def _said(statement: AsmStatement, written: Rewritten, line: int) -> list[Applied]:
    shown = " ".join(statement.template.split())
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return [
        Applied(RULE, line, f"PTX written as C++ ({FOLDER}/{HEADER}): {shown}"),
        *(
            Applied(STAGED_COPY if remark == COPY else DIFFERS, line, f"{remark}: {shown}")
            for remark in written.remarks
        ),
    ]


def stands_in_kernel(source: Source, offset: int) -> bool:
    """Whether the asm statement at this offset stands in a kernel's own body, so that ``return`` ends the thread."""
    if "__global__" not in source.masked:
        return False
    start = source.byte_of(offset)
    for place in source.of("gnu_asm_expression"):
        if place.offset == 0 and place.node.start_byte <= start < place.node.end_byte:
            function = enclosing_function(place.node)
            current = place.node.parent
            while current is not None and current != function:
                if current.type == "lambda_expression":
                    return False
                current = current.parent
            return function is not None and "__global__" in lexer.mask(text_of(function)).partition("{")[0]
    return False
