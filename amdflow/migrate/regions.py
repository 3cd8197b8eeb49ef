"""Kernel regions worth writing anew for matrix cores, handed to the kernels stage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from amdflow.migrate.rules.detect import Match
from amdflow.migrate.syntax import Source, function_name, is_device

_ATTENTION = re.compile(r"attn|attention|flash|mha|qkv|softmax_?qk", re.IGNORECASE)
_GEMM = re.compile(r"gemm|matmul|mat_?mul|mma|hgemm|linear", re.IGNORECASE)


def find_regions(source: Source, matches: Iterable[Match]) -> list[dict[str, Any]]:
    """One region for each function and kind: ``{"path", "line", "kind", "op"}``; ``op`` is guessed from names and may be empty."""
    spans = [
        (
            source.line_of_byte(place.node.start_byte),
            source.line_of_byte(place.node.end_byte),
            function_name(place.node),
            is_device(place.node),
        )
        for place in source.of("function_definition")
        if not place.offset
    ]
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for match in matches:
        if not match.rule.region:
            continue
        inside = [span for span in spans if span[0] <= match.line <= span[1]]
        # The widest device function: a macro with a body in braces looks like a function inside the kernel.
        first, _last, name, _device = (
            max(inside, key=lambda span: (span[3], span[1] - span[0])) if inside else (match.line, 0, "", False)
        )
        found.setdefault(
            (first if inside else 0, match.rule.region),
            {"path": source.name, "line": first, "kind": match.rule.region, "op": _operation(f"{name} {source.name}")},
        )
    inside_functions = {kind for line, kind in found if line}
    return [region for (line, kind), region in found.items() if line or kind not in inside_functions]


def _operation(name: str) -> str:
    if _ATTENTION.search(name):
        return "attention"
    return "gemm" if _GEMM.search(name) else ""
