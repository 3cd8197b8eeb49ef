"""Gradients of y = act(gate) * up * weight[row], from dy, h (gate and up side by side) and the weight: one pass."""

import torch

KERNEL = {
    "op": "moe_gate_backward",
    "summary": "dh[rows, 2 * width] and dweight[rows] of moe_gate",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"width": "columns of dy, half of h's, open when absent", "act": "silu, gelu (erf) or gelu_tanh"},
    "typical": {"rows": 8192, "width": 14336},
}
CASES = [
    {"build": {}, "run": {"rows": 7, "width": 72}},
    {"build": {"act": "gelu", "width": 77}, "run": {"rows": 3}},
    {"build": {"act": "gelu_tanh", "width": 1025}, "run": {"rows": 1}},
]
TUNE = {"threads": [64, 128, 256], "vector": [4, 8]}  # what `amdflow kernels tune` tries


def build(tl, *, dtype, width=None, act="silu", threads=128, vector=8):
    """One workgroup handles one row, ``threads * vector`` columns at a time."""
    rows, width, block = tl.dynamic("rows"), width or 8 * tl.dynamic("width8"), threads * vector

    def share(value):
        """act(value) / value, between 0 and 1."""
        if act == "silu":
            return 1.0 / (1.0 + tl.exp(-value))
        if act == "gelu":
            return 0.5 + 0.5 * tl.erf(value * 0.7071067811865476)
        return 1.0 / (1.0 + tl.exp(-1.5957691216057308 * value * (1.0 + 0.044715 * value * value)))

    def slope(value, part):
        """act'(value), where ``part`` is its share."""
        if act == "silu":
            return part * (1.0 + value * (1.0 - part))
        if act == "gelu":
            return part + value * 0.3989422804014327 * tl.exp(-0.5 * value * value)
        return part * (1.0 + value * (1.0 - part) * 1.5957691216057308 * (1.0 + 0.134145 * value * value))

    @tl.prim_func
    def moe_gate_backward(
        dy: tl.Tensor((rows, width), dtype),
        h: tl.Tensor((rows, 2 * width), dtype),
        weight: tl.Tensor((rows,), "float32"),
        dh: tl.Tensor((rows, 2 * width), dtype),
        dweight: tl.Tensor((rows,), "float32"),
    ):
        with tl.Kernel(rows, threads=threads) as bx:
            d = tl.alloc_fragment((block,), "float32")
            gate = tl.alloc_fragment((block,), "float32")
            up = tl.alloc_fragment((block,), "float32")
            part = tl.alloc_fragment((block,), "float32")
            products = tl.alloc_fragment((1, block), "float32")
            total = tl.alloc_fragment((1,), "float32")
            tl.clear(products)
            for step in tl.serial(tl.ceildiv(width, block)):
                tl.copy(dy[bx, step * block], d)  # past the end it is 0, and so is what goes into the total
                tl.copy(h[bx, step * block], gate)
                tl.copy(h[bx, width + step * block], up)
                for j in tl.Parallel(block):
                    part[j] = share(gate[j])
                    products[0, j] += d[j] * gate[j] * part[j] * up[j]
                    d[j] = d[j] * weight[bx]
                    up[j] = d[j] * up[j] * slope(gate[j], part[j])
                    d[j] = d[j] * gate[j] * part[j]
                for j in tl.Parallel(block):
                    if step * block + j < width:
                        dh[bx, step * block + j] = tl.cast(up[j], dtype)
                        dh[bx, width + step * block + j] = tl.cast(d[j], dtype)
            tl.reduce_sum(products, total, dim=1)
            dweight[bx] = total[0]

    return moe_gate_backward


def work(*, dtype_bytes, rows, width, act="silu"):
    """(flop, bytes to and from memory), each tensor once."""
    flop = {"silu": 16, "gelu": 18, "gelu_tanh": 26}[act]
    return flop * rows * width, 5 * rows * width * dtype_bytes + 8 * rows


def inputs(draw, *, rows, width, act="silu"):
    """Give dy, h of (rows, 2 * width), and a weight for each row."""
    given = {"dy": draw(rows, width), "h": 4 * draw(rows, 2 * width), "weight": draw(rows).abs().float()}
    return given | {"act": act}


def reference(dy, h, weight, act):
    """Torch's own gradients, in the precision of h."""
    h, weight = h.detach().requires_grad_(), weight.detach().to(h.dtype).requires_grad_()
    functional = torch.nn.functional
    flavour = "tanh" if act == "gelu_tanh" else "none"
    with torch.enable_grad():
        gate, up = h.chunk(2, -1)
        gated = functional.silu(gate) if act == "silu" else functional.gelu(gate, approximate=flavour)
        dh, dweight = torch.autograd.grad(gated * up * weight.unsqueeze(-1), (h, weight), dy)
    return {"dh": dh, "dweight": dweight}
