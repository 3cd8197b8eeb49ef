"""Gated activations: y = silu(gate) * up (SwiGLU), or gelu in silu's place (GeGLU), computed in float32.

Any shape is seen as ``groups`` of ``lanes`` elements: 8 where the number of elements is a multiple of 8, else 1.
"""

import torch

KERNEL = {
    "op": "swiglu",
    "summary": "y = act(gate) * up, element by element; act is silu, gelu or gelu_tanh",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"lanes": "elements of a group: 8, or 1 for odd sizes", "act": "silu, gelu (erf) or gelu_tanh"},
    "typical": {"groups": 14680064},
    "replaces": ["swiglu"],
}
CASES = [
    {"build": {}, "run": {"groups": 512}},
    {"build": {}, "run": {"groups": 577}},
    {"build": {"lanes": 1}, "run": {"groups": 1001}},
    {"build": {"act": "gelu", "lanes": 1}, "run": {"groups": 77}},
    {"build": {"act": "gelu_tanh"}, "run": {"groups": 77}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block": [1024, 2048, 4096, 8192],
    "threads": [128, 256, 512],
}


def build(tl, *, dtype, lanes=8, act="silu", block=2048, threads=256):
    """One workgroup handles ``block`` elements."""
    groups, height = tl.dynamic("groups"), block // lanes

    def activated(value):
        if act == "silu":
            return value / (1.0 + tl.exp(-value))
        if act == "gelu":
            return value * (0.5 + 0.5 * tl.erf(value * 0.7071067811865476))
        # gelu_tanh: 0.5 + tanh(u) / 2 is the logistic function of 2u
        return value / (1.0 + tl.exp(-1.5957691216057308 * value * (1.0 + 0.044715 * value * value)))

    @tl.prim_func
    def swiglu(
        gate: tl.Tensor((groups, lanes), dtype),
        up: tl.Tensor((groups, lanes), dtype),
        y: tl.Tensor((groups, lanes), dtype),
    ):
        with tl.Kernel(tl.ceildiv(groups, height), threads=threads) as bx:
            g = tl.alloc_fragment((height, lanes), "float32")
            u = tl.alloc_fragment((height, lanes), "float32")
            tl.copy(gate[bx * height, 0], g)
            tl.copy(up[bx * height, 0], u)
            for i, j in tl.Parallel(height, lanes):
                u[i, j] = activated(g[i, j]) * u[i, j]
            tl.copy(u, y[bx * height, 0])

    return swiglu


def work(*, dtype_bytes, groups, lanes=8, act="silu"):
    """(flop, bytes to and from memory), each tensor once; exp and erf count as one operation."""
    each = {"silu": 5, "gelu": 6, "gelu_tanh": 9}[act]
    return each * groups * lanes, 3 * groups * lanes * dtype_bytes


def inputs(draw, *, groups, lanes=8, act="silu"):
    """Give two of (groups, lanes), the gate wide enough that both ends of the activation are met."""
    return {"gate": 4 * draw(groups, lanes), "up": draw(groups, lanes), "act": act}


def reference(gate, up, act):
    """The same in plain torch, in the precision of its arguments."""
    if act == "silu":
        return {"y": torch.nn.functional.silu(gate) * up}
    return {"y": torch.nn.functional.gelu(gate, approximate="tanh" if act == "gelu_tanh" else "none") * up}
