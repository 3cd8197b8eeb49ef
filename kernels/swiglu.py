"""SwiGLU: y = silu(gate) * up, element by element, computed in float32."""

import torch

KERNEL = {
    "op": "swiglu",
    "summary": "y[size] = gate / (1 + exp(-gate)) * up",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"size": "elements, open when absent (then a multiple of 8)"},
    "replaces": ["swiglu"],
}
CASES = [
    {"build": {}, "run": {"size": 4096}},
    {"build": {}, "run": {"size": 4616}},
    {"build": {"size": 1001}, "run": {}},
    {"build": {"size": 1}, "run": {}},
]


def build(tl, *, dtype, size=None, block=2048, threads=256):
    """One workgroup handles ``block`` elements."""
    size = size or 8 * tl.dynamic("size8")

    @tl.prim_func
    def swiglu(gate: tl.Tensor((size,), dtype), up: tl.Tensor((size,), dtype), y: tl.Tensor((size,), dtype)):
        with tl.Kernel(tl.ceildiv(size, block), threads=threads) as bx:
            g = tl.alloc_fragment((block,), "float32")
            u = tl.alloc_fragment((block,), "float32")
            tl.copy(gate[bx * block], g)
            tl.copy(up[bx * block], u)
            for i in tl.Parallel(block):
                u[i] = g[i] / (1.0 + tl.exp(-g[i])) * u[i]
            tl.copy(u, y[bx * block])

    return swiglu


def inputs(draw, *, size):
    """Give two of (size,), the gate wide enough that silu's both ends are met."""
    return {"gate": 4 * draw(size), "up": draw(size)}


def reference(gate, up):
    """The same in plain torch, in the precision of its arguments."""
    return {"y": torch.nn.functional.silu(gate) * up}
