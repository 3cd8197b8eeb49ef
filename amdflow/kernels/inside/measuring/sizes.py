"""What is measured by default: sizes at which a float64 reference fits, and sizes that are timed. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Sizes = Mapping[str, int | bool]
CHECKED: Mapping[str, Sequence[Sizes]] = {
    "rms_norm": [*({"rows": 4096, "hidden": hidden} for hidden in (2048, 4096, 8192)), {"rows": 77, "hidden": 1001}],
    "add_rms_norm": [{"rows": 4096, "hidden": hidden} for hidden in (2048, 4096, 8192)],
    "layer_norm": [{"rows": 4096, "hidden": hidden} for hidden in (2048, 4096)],
    "swiglu": [{"rows": 4096, "width": 8192}, {"rows": 4096, "width": 14336}, {"rows": 77, "width": 1001}],
    "geglu": [{"rows": 4096, "width": 8192}],
    "rope": [
        {"batch": 1, "tokens": 4096, "q_heads": 32, "k_heads": 8, "head": 128},
        {"batch": 2, "tokens": 77, "q_heads": 9, "k_heads": 3, "head": 64},
    ],
    "linear_cross_entropy": [
        {"rows": 1024, "hidden": 2048, "vocab": 32000},
        {"rows": 333, "hidden": 576, "vocab": 5001},
    ],
    "gemm": [
        {"m": 4096, "n": 4096, "k": 4096},
        {"m": 1000, "n": 1000, "k": 1000},
        {"m": 1, "n": 4096, "k": 4096},
        {"m": 67, "n": 130, "k": 104},
    ],
    "linear": [{"rows": 4096, "n": 4096, "k": 2048}, {"rows": 77, "n": 96, "k": 200}],
    "attention": [
        {"batch": 1, "tokens": 4096, "heads": 8, "kv_heads": 2, "head": 128, "causal": True},
        {"batch": 1, "tokens": 1000, "heads": 6, "kv_heads": 2, "head": 64, "causal": True},
        {"batch": 1, "tokens": 333, "heads": 4, "kv_heads": 4, "head": 128, "causal": False},
        {"batch": 1, "tokens": 1, "heads": 2, "kv_heads": 1, "head": 64, "causal": True},
    ],
    "moe": [
        {"tokens": 512, "hidden": 1024, "width": 768, "experts": 8, "top": 2},
        {"tokens": 77, "hidden": 256, "width": 136, "experts": 60, "top": 4},
    ],
    "dequant_linear": [
        {"rows": 2048, "n": 1024, "k": 2048},
        {"rows": 67, "n": 136, "k": 256},
        {"rows": 1, "n": 4096, "k": 4096, "bits": 8},
    ],
}
TIMED: Mapping[str, Sequence[Sizes]] = {
    "rms_norm": [{"rows": 8192, "hidden": hidden} for hidden in (4096, 2048, 8192)],
    "add_rms_norm": [{"rows": 8192, "hidden": 4096}],
    "layer_norm": [{"rows": 8192, "hidden": 4096}],
    "swiglu": [{"rows": 8192, "width": 14336}, {"rows": 8192, "width": 8192}],
    "geglu": [{"rows": 8192, "width": 14336}],
    "rope": [{"batch": 2, "tokens": 4096, "q_heads": 32, "k_heads": 8, "head": 128}],
    "linear_cross_entropy": [
        {"rows": 8192, "hidden": 2048, "vocab": 128256},
        {"rows": 8192, "hidden": 4096, "vocab": 128256},
    ],
    "gemm": [{"m": 4096, "n": 4096, "k": 4096}, {"m": 8192, "n": 8192, "k": 8192}, {"m": 4096, "n": 14336, "k": 4096}],
    "linear": [{"rows": 8192, "n": 8192, "k": 2048}],
    "attention": [
        {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 32, "head": 128, "causal": True},
        {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 8, "head": 64, "causal": True},
    ],
    "moe": [
        {"tokens": 4096, "hidden": 4096, "width": 14336, "experts": 8, "top": 2},
        {"tokens": 8192, "hidden": 2048, "width": 768, "experts": 128, "top": 8},
    ],
    "dequant_linear": [{"rows": 4096, "n": 14336, "k": 4096}, {"rows": 16, "n": 14336, "k": 4096}],
}
OPERATORS = tuple(TIMED)
