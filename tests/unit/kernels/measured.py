"""A document as ``inside/bench.py`` writes it, with numbers made by hand."""

from __future__ import annotations

from typing import Any

COPY, MATMUL = 4000.0, 500.0


def passed(flop: float, moved: float, ms: float) -> dict[str, Any]:
    """One pass of one contender."""
    seconds = {"matrix": flop / MATMUL / 1e12, "memory": moved / COPY / 1e9}
    bound = max(seconds, key=seconds.__getitem__)
    return {
        "cold_ms": ms,
        "warm_ms": ms * 0.8,
        "captured": True,
        "flop": flop,
        "bytes": moved,
        "intensity": flop / moved,
        "tflop_s": flop / ms / 1e9,
        "gb_s": moved / ms / 1e6,
        "bound": bound,
        "of_roof": seconds[bound] * 1e3 / ms,
    }


def timed(op: str, contender: str, **passes: tuple[float, float, float]) -> dict[str, Any]:
    """A row of one contender; passes as (FLOP, bytes, ms)."""
    named = {"forward": "forward", "both": "forward+backward"}
    found = {named[name]: passed(*numbers) for name, numbers in passes.items()}
    sizes = {"rows": 8, "causal": True}
    return {"kind": "time", "op": op, "dtype": "bfloat16", "sizes": sizes, "contender": contender, "passes": found}


def document(*rows: dict[str, Any]) -> dict[str, Any]:
    """A whole file."""
    ceiling = {"kind": "ceilings", "dtype": "bfloat16", "copy_gb_s": COPY, "matmul_tflop_s": MATMUL}
    return {"gpu": "A card", "target": "gfx942", "left_out": 0, "rows": [ceiling, *rows]}
