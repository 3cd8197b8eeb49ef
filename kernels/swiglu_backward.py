"""Gradients of a gated activation y = act(gate) * up, from dy, gate and up: one pass, nothing else kept from forward.

With ``again`` y itself comes out once more: the layer behind it needs y for its weight's gradient, and need not keep it.
"""

import torch

KERNEL = {
    "op": "swiglu_backward",
    "summary": "dgate = dy * up * act'(gate), dup = dy * act(gate)",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {
        "lanes": "elements of a group: 8, or 1 for odd sizes",
        "act": "silu, gelu (erf) or gelu_tanh",
        "again": "y is computed once more",
    },
    "typical": {"groups": 14680064},
}
CASES = [
    {"build": {}, "run": {"groups": 577}},
    {"build": {"lanes": 1}, "run": {"groups": 1001}},
    {"build": {"act": "gelu", "lanes": 1}, "run": {"groups": 77}},
    {"build": {"act": "gelu_tanh"}, "run": {"groups": 77}},
    {"build": {"again": True}, "run": {"groups": 77}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block": [1024, 2048, 4096, 8192],
    "threads": [128, 256, 512],
}


def build(  # noqa: C901 - one kernel reads best in one piece
    tl, *, dtype, lanes=8, act="silu", again=False, block=2048, threads=256
):
    """One workgroup handles ``block`` elements."""
    groups, height = tl.dynamic("groups"), block // lanes

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

    @tl.macro
    def differentiate(bx, dy, gate, up, dgate, dup, y):
        d = tl.alloc_fragment((height, lanes), "float32")
        g = tl.alloc_fragment((height, lanes), "float32")
        u = tl.alloc_fragment((height, lanes), "float32")
        part = tl.alloc_fragment((height, lanes), "float32")
        tl.copy(dy[bx * height, 0], d)
        tl.copy(gate[bx * height, 0], g)
        tl.copy(up[bx * height, 0], u)
        for i, j in tl.Parallel(height, lanes):
            part[i, j] = share(g[i, j])
        if again:
            gated = tl.alloc_fragment((height, lanes), "float32")
            for i, j in tl.Parallel(height, lanes):
                gated[i, j] = g[i, j] * part[i, j] * u[i, j]
            tl.copy(gated, y[bx * height, 0])
        for i, j in tl.Parallel(height, lanes):
            u[i, j] = d[i, j] * u[i, j] * slope(g[i, j], part[i, j])
            d[i, j] = d[i, j] * g[i, j] * part[i, j]
        tl.copy(u, dgate[bx * height, 0])
        tl.copy(d, dup[bx * height, 0])

    if again:

        @tl.prim_func
        def swiglu_backward_again(
            dy: tl.Tensor((groups, lanes), dtype),
            gate: tl.Tensor((groups, lanes), dtype),
            up: tl.Tensor((groups, lanes), dtype),
            dgate: tl.Tensor((groups, lanes), dtype),
            dup: tl.Tensor((groups, lanes), dtype),
            y: tl.Tensor((groups, lanes), dtype),
        ):
            with tl.Kernel(tl.ceildiv(groups, height), threads=threads) as bx:
                differentiate(bx, dy, gate, up, dgate, dup, y)

        return swiglu_backward_again

    @tl.prim_func
    def swiglu_backward(
        dy: tl.Tensor((groups, lanes), dtype),
        gate: tl.Tensor((groups, lanes), dtype),
        up: tl.Tensor((groups, lanes), dtype),
        dgate: tl.Tensor((groups, lanes), dtype),
        dup: tl.Tensor((groups, lanes), dtype),
    ):
        with tl.Kernel(tl.ceildiv(groups, height), threads=threads) as bx:
            differentiate(bx, dy, gate, up, dgate, dup, dup)

    return swiglu_backward


def work(*, dtype_bytes, groups, lanes=8, act="silu", again=False):
    """(flop, bytes to and from memory), each tensor once; exp and erf count as one operation."""
    each = {"silu": 12, "gelu": 14, "gelu_tanh": 22}[act]
    return each * groups * lanes, (6 if again else 5) * groups * lanes * dtype_bytes


def inputs(draw, *, groups, lanes=8, act="silu", again=False):
    """Give three of (groups, lanes), the gate wide enough that both ends of the activation are met."""
    values = {"dy": draw(groups, lanes), "gate": 4 * draw(groups, lanes), "up": draw(groups, lanes)}
    return values | {"act": act, "again": again}


def reference(dy, gate, up, act, again):
    """Torch's own gradients, in the precision of the arguments."""
    gate, up = gate.detach().requires_grad_(), up.detach().requires_grad_()
    functional = torch.nn.functional
    with torch.enable_grad():
        gated = functional.silu(gate) if act == "silu" else functional.gelu(gate, approximate=_FLAVOURS[act])
        dgate, dup = torch.autograd.grad(gated * up, (gate, up), dy)
    return {"dgate": dgate, "dup": dup} | ({"y": (gated * up).detach()} if again else {})


_FLAVOURS = {"gelu": "none", "gelu_tanh": "tanh"}
