"""The table of what each kernel takes on each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amdflow.kernels.budget import Verdict
from amdflow.kernels.build import Built
from amdflow.kernels.item import SHORT, sizes_text
from amdflow.kernels.roofline import predict

COLUMNS = (
    *("target", "kernel", "dtype", "matrix", "VGPR", "AGPR", "SGPR", "LDS", "spills", "waves", "limit"),
    *("flop/byte", "bound"),
)
NUMBERS = (3, 4, 5, 6, 7, 8, 9, 11)
NOTE = (
    "matrix: matrix instructions; LDS: static + dynamic bytes; waves: at most, a SIMD; limit: what keeps it from more; "
    "bound: predicted from published peaks at typical sizes, not measured"
)


def row(built: Built, verdict: Verdict) -> dict[str, Any]:
    """One kernel on one target, as JSON values."""
    item, resources, launch = built.item, built.resources, built.launch
    bound = predict(item.target, launch, matrix=item.kernel.declaration.matrix)
    return {
        "target": item.target,
        "kernel": item.kernel.op,
        "dtype": item.dtype,
        "sizes": dict(item.sizes),
        "tiles": dict(item.tiles),
        "matrix_instructions": resources.matrix_instructions,
        "vgprs": resources.vgprs,
        "agprs": resources.agprs,
        "sgprs": resources.sgprs,
        "lds_static": resources.static_lds,
        "lds_dynamic": launch["dynamic_lds"],
        "spills": resources.vgpr_spills,
        "scratch": resources.scratch,
        "threads": launch["threads"],
        "waves_per_simd": verdict.occupancy.waves_per_simd,
        "limited_by": verdict.occupancy.limited_by,
        "intensity": None if bound is None else round(bound.intensity, 3),
        "predicted_bound": None if bound is None else bound.bound,
        "cached": built.cached,
    }


def cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The rows as text, in the order of ``COLUMNS``."""
    return [
        [
            entry["target"],
            f"{entry['kernel']} {sizes_text(entry['sizes'])}".rstrip(),
            SHORT[entry["dtype"]],
            *(str(entry[key]) for key in ("matrix_instructions", "vgprs", "agprs", "sgprs")),
            f"{entry['lds_static']} + {entry['lds_dynamic']}",
            *(str(entry[key]) for key in ("spills", "waves_per_simd", "limited_by")),
            "-" if entry.get("intensity") is None else f"{entry['intensity']:.3g}",
            entry.get("predicted_bound") or "-",
        ]
        for entry in rows
    ]
