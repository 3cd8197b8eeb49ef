"""The activation inside a mixture's experts, with the routing weight: y = act(gate) * up * weight[row], in float32.

Gate and up lie side by side in h, as one product made them. The weight belongs behind the down projection; that is
linear, so it can be applied here, where it needs no pass of its own and its gradient no further tensor.
"""

import torch

KERNEL = {
    "op": "moe_gate",
    "summary": "y[rows, width] = act(h[rows, :width]) * h[rows, width:] * weight[rows]",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"width": "columns of y, half of h's, open when absent", "act": "silu, gelu (erf) or gelu_tanh"},
    "typical": {"rows": 8192, "width": 14336},
}
CASES = [
    {"build": {}, "run": {"rows": 7, "width": 72}},
    {"build": {"act": "gelu", "width": 77}, "run": {"rows": 3}},
    {"build": {"act": "gelu_tanh", "width": 1025}, "run": {"rows": 1}},
]
TUNE = {"threads": [64, 128, 256], "vector": [4, 8]}  # what `amdflow kernels tune` tries


def build(tl, *, dtype, width=None, act="silu", threads=128, vector=8):
    """One workgroup handles ``threads * vector`` columns of one row."""
    rows, width, block = tl.dynamic("rows"), width or 8 * tl.dynamic("width8"), threads * vector

    def activated(value):
        if act == "silu":
            return value / (1.0 + tl.exp(-value))
        if act == "gelu":
            return value * (0.5 + 0.5 * tl.erf(value * 0.7071067811865476))
        # gelu_tanh: 0.5 + tanh(u) / 2 is the logistic function of 2u
        return value / (1.0 + tl.exp(-1.5957691216057308 * value * (1.0 + 0.044715 * value * value)))

    @tl.prim_func
    def moe_gate(
        h: tl.Tensor((rows, 2 * width), dtype),
        weight: tl.Tensor((rows,), "float32"),
        y: tl.Tensor((rows, width), dtype),
    ):
        with tl.Kernel(rows, tl.ceildiv(width, block), threads=threads) as (bx, by):
            gate = tl.alloc_fragment((block,), "float32")
            up = tl.alloc_fragment((block,), "float32")
            tl.copy(h[bx, by * block], gate)
            tl.copy(h[bx, width + by * block], up)
            for j in tl.Parallel(block):
                up[j] = activated(gate[j]) * up[j] * weight[bx]
            tl.copy(up, y[bx, by * block])

    return moe_gate


def work(*, dtype_bytes, rows, width, act="silu"):
    """(flop, bytes to and from memory), each tensor once."""
    return {"silu": 6, "gelu": 7, "gelu_tanh": 11}[act] * rows * width, 3 * rows * width * dtype_bytes + 4 * rows


def inputs(draw, *, rows, width, act="silu"):
    """Give h of (rows, 2 * width), wide enough that both ends of the activation are met, and a weight for each row."""
    return {"h": 4 * draw(rows, 2 * width), "weight": draw(rows).abs().float(), "act": act}


def reference(h, weight, act):
    """The same in plain torch, in the precision of h."""
    gate, up = h.chunk(2, -1)
    functional = torch.nn.functional
    flavour = "tanh" if act == "gelu_tanh" else "none"
    gated = functional.silu(gate) if act == "silu" else functional.gelu(gate, approximate=flavour)
    return {"y": gated * up * weight.to(h.dtype).unsqueeze(-1)}
