"""What comes back through a linear layer's epilogue: dz = dy * act'(z), and the sums of dz's columns, the bias's gradient.

The sums come as ``parts`` rows, one from each workgroup that shares a block of columns; column_sum adds them up.
"""

import torch

ROWS = 32
"""Rows that a workgroup takes at a time: which rows each part sums depends on it."""
KERNEL = {
    "op": "activation_backward",
    "summary": "dz[rows, width] = dy * act'(z); sums[parts, width] of dz's rows",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {
        "width": "columns of dy, open when absent",
        "act": "relu, gelu (erf), gelu_tanh or silu; none when absent: no z and no dz",
        "bias": "the sums are wanted",
    },
    "typical": {"rows": 8192, "width": 14336, "parts": 32},
}
CASES = [
    {"build": {"bias": True}, "run": {"rows": 67, "width": 40, "parts": 2}},
    {"build": {"act": "relu", "bias": True, "width": 37}, "run": {"rows": 3, "parts": 3}},
    {"build": {"act": "gelu"}, "run": {"rows": 45, "width": 72}},
    {"build": {"act": "gelu_tanh", "bias": True}, "run": {"rows": 67, "width": 136, "parts": 2}},
    {"build": {"act": "silu", "bias": True, "width": 130}, "run": {"rows": 1, "parts": 1}},
]
TUNE = {"block_n": [64, 128, 256], "threads": [128, 256]}  # what `amdflow kernels tune` tries


def build(  # noqa: C901 - three small kernels over one body
    tl, *, dtype, width=None, act="none", bias=False, block_n=128, threads=256
):
    """One workgroup handles block_n columns, some rows of them at a time; ``parts`` of them share the rows out."""
    bias = bias or act == "none"  # else there would be nothing to do
    rows, width = tl.dynamic("rows"), width or 8 * tl.dynamic("width8")
    parts = tl.dynamic("parts") if bias else tl.ceildiv(rows, ROWS)
    normal, tanh = 0.3989422804014327, 1.5957691216057308

    def slope(z):
        """act'(z)."""
        if act == "relu":
            return tl.if_then_else(z > 0.0, 1.0, 0.0)
        if act == "gelu":
            return 0.5 + 0.5 * tl.erf(z * 0.7071067811865476) + z * normal * tl.exp(-0.5 * z * z)
        if act == "silu":
            part = 1.0 / (1.0 + tl.exp(-z))
            return part * (1.0 + z * (1.0 - part))
        part = 1.0 / (1.0 + tl.exp(-tanh * z * (1.0 + 0.044715 * z * z)))
        return part * (1.0 + z * (1.0 - part) * tanh * (1.0 + 0.134145 * z * z))

    @tl.macro
    def whole(dy, z, dz, sums):
        with tl.Kernel(tl.ceildiv(width, block_n), parts, threads=threads) as (bx, by):
            d = tl.alloc_fragment((ROWS, block_n), "float32")
            value = tl.alloc_fragment((ROWS, block_n), "float32")
            total = tl.alloc_fragment((ROWS, block_n), "float32")
            row = tl.alloc_fragment((block_n,), "float32")
            tl.clear(total)
            for step in tl.serial(tl.ceildiv(tl.ceildiv(rows, ROWS) - by, parts)):
                first = (step * parts + by) * ROWS
                tl.copy(dy[first, bx * block_n], d)
                if z is not None:
                    tl.copy(z[first, bx * block_n], value)
                    for i, j in tl.Parallel(ROWS, block_n):
                        d[i, j] = d[i, j] * slope(value[i, j])
                    tl.copy(d, dz[first, bx * block_n])
                if sums is not None:
                    for i, j in tl.Parallel(ROWS, block_n):
                        total[i, j] += d[i, j]
            if sums is not None:
                tl.reduce_sum(total, row, dim=0)
                tl.copy(row, sums[by, bx * block_n])

    @tl.prim_func
    def bias_backward(dy: tl.Tensor((rows, width), dtype), sums: tl.Tensor((parts, width), "float32")):
        whole(dy, None, None, sums)

    @tl.prim_func
    def activation_backward(
        dy: tl.Tensor((rows, width), dtype), z: tl.Tensor((rows, width), dtype), dz: tl.Tensor((rows, width), dtype)
    ):
        whole(dy, z, dz, None)

    @tl.prim_func
    def activation_bias_backward(
        dy: tl.Tensor((rows, width), dtype),
        z: tl.Tensor((rows, width), dtype),
        dz: tl.Tensor((rows, width), dtype),
        sums: tl.Tensor((parts, width), "float32"),
    ):
        whole(dy, z, dz, sums)

    if act == "none":
        return bias_backward
    return activation_bias_backward if bias else activation_backward


def work(*, dtype_bytes, rows, width, parts=0, act="none", bias=False):
    """(flop, bytes to and from memory), each tensor once."""
    tensors = 1 if act == "none" else 3
    flop = {"none": 0, "relu": 1, "gelu": 11, "gelu_tanh": 15, "silu": 8}[act] + bool(bias)
    return flop * rows * width, tensors * rows * width * dtype_bytes + 4 * parts * width


def inputs(draw, *, rows, width, parts=0, act="none", bias=False):
    """Give dy and z of (rows, width); z wide enough that both ends of the activation are met."""
    given = {"dy": draw(rows, width), "act": act, "parts": parts if bias or act == "none" else 0}
    return given if act == "none" else given | {"z": 4 * draw(rows, width)}


def reference(dy, act, parts, z=None):
    """Torch's own gradient, in the precision of the arguments; the sums are those of all rows, in parts that add up to them."""
    dz, found = dy, {}
    if act != "none":
        z = z.detach().requires_grad_()
        with torch.enable_grad():
            (dz,) = torch.autograd.grad(_ACTIVATIONS[act](z), z, dy)
        found["dz"] = dz
    if parts:
        shares = [torch.arange(dy.shape[0], device=dy.device) // ROWS % parts == part for part in range(parts)]
        found["sums"] = torch.stack([dz[share].sum(0) for share in shares])
    return found


_ACTIVATIONS = {
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh"),
}
