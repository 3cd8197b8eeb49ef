"""Gradients of RMSNorm: dx for each row, and the weight's summed over the rows that one workgroup takes.

Workgroup p of ``parts`` takes the rows p, p + parts, p + 2 parts...; column_sum adds up what they hand out. With
``residual``, ds, the gradient that arrives at the sum x + r by itself, is added to dx: one pass for both.
"""

import torch

KERNEL = {
    "op": "rms_norm_backward",
    "summary": "dx[rows, hidden] and dw[parts, hidden] of rms_norm from dy, x and rstd",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"hidden": "columns of x", "residual": "add ds to dx"},
    "typical": {"rows": 8192, "parts": 256},
}
CASES = [
    {"build": {"hidden": 576}, "run": {"rows": 7, "parts": 3}},
    {"build": {"hidden": 77}, "run": {"rows": 2, "parts": 2}},
    {"build": {"hidden": 77, "residual": True}, "run": {"rows": 5, "parts": 2}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "threads": [64, 128, 256, 512, 1024],
    "vector": [4, 8],
}


def build(tl, *, dtype, hidden, residual=False, threads=256, vector=8):
    """Each thread holds groups of ``vector`` neighbouring columns of a row, and the weight's gradient there."""
    while threads > 64 and threads * vector >= 2 * hidden:
        threads //= 2
    columns = -(-hidden // (threads * vector)) * threads * vector
    rows, parts = tl.dynamic("rows"), tl.dynamic("parts")

    @tl.macro
    def differentiate(bx, dy, x, w, rstd, ds, dx, dw, offset):
        weight = tl.alloc_fragment((columns,), dtype)
        sums = tl.alloc_fragment((columns,), "float32")
        slope = tl.alloc_fragment((columns,), "float32")
        normed = tl.alloc_fragment((columns,), "float32")
        product = tl.alloc_fragment((1, columns), "float32")
        mean = tl.alloc_fragment((1,), "float32")
        next_x = tl.alloc_fragment((columns,), dtype)
        next_dy = tl.alloc_fragment((columns,), dtype)
        extra = tl.alloc_fragment((columns,), dtype)
        tl.copy(w[0], weight)
        tl.clear(sums)
        tl.copy(x[bx, 0], next_x)
        tl.copy(dy[bx, 0], next_dy)
        for step in tl.serial(tl.ceildiv(rows - bx, parts)):
            row = step * parts + bx
            for j in tl.Parallel(columns):
                normed[j] = tl.cast(next_x[j], "float32") * rstd[row]
                slope[j] = tl.cast(next_dy[j], "float32")
            tl.copy(x[row + parts, 0], next_x)  # under way while this row is reduced; past the end it reads 0
            tl.copy(dy[row + parts, 0], next_dy)
            if ds is not None:
                tl.copy(ds[row, 0], extra)
            for j in tl.Parallel(columns):
                sums[j] += slope[j] * normed[j]
                slope[j] = slope[j] * (tl.cast(weight[j], "float32") + offset)
                product[0, j] = slope[j] * normed[j]
            tl.reduce_sum(product, mean, dim=1)
            mean[0] = mean[0] / hidden
            for j in tl.Parallel(columns):
                slope[j] = (slope[j] - normed[j] * mean[0]) * rstd[row]
                if ds is not None:
                    slope[j] += tl.cast(extra[j], "float32")
            tl.copy(slope, dx[row, 0])
        tl.copy(sums, dw[bx, 0])

    @tl.prim_func
    def rms_norm_backward(
        dy: tl.Tensor((rows, hidden), dtype),
        x: tl.Tensor((rows, hidden), dtype),
        w: tl.Tensor((hidden,), dtype),
        rstd: tl.Tensor((rows,), "float32"),
        dx: tl.Tensor((rows, hidden), dtype),
        dw: tl.Tensor((parts, hidden), "float32"),
        offset: tl.float32,
    ):
        with tl.Kernel(parts, threads=threads) as bx:
            differentiate(bx, dy, x, w, rstd, None, dx, dw, offset)

    @tl.prim_func
    def add_rms_norm_backward(
        dy: tl.Tensor((rows, hidden), dtype),
        ds: tl.Tensor((rows, hidden), dtype),
        x: tl.Tensor((rows, hidden), dtype),
        w: tl.Tensor((hidden,), dtype),
        rstd: tl.Tensor((rows,), "float32"),
        dx: tl.Tensor((rows, hidden), dtype),
        dw: tl.Tensor((parts, hidden), "float32"),
        offset: tl.float32,
    ):
        with tl.Kernel(parts, threads=threads) as bx:
            differentiate(bx, dy, x, w, rstd, ds, dx, dw, offset)

    return add_rms_norm_backward if residual else rms_norm_backward


def work(*, dtype_bytes, rows, parts, hidden, residual=False):
    """(flop, bytes to and from memory), each tensor once."""
    tensors = 4 if residual else 3
    moved = (tensors * rows + 1) * hidden * dtype_bytes + 4 * rows + 4 * parts * hidden
    return (11 if residual else 10) * rows * hidden, moved


def inputs(draw, *, rows, parts, hidden, residual=False):
    """Give dy, x (and ds) of (rows, hidden), a weight near 1, the factor of each row; ``parts`` is for the reference."""
    x = draw(rows, hidden)
    given = {"dy": draw(rows, hidden), "x": x, "w": 1 + draw(hidden) / 8, "offset": 0.25, "parts": parts}
    given["rstd"] = ((x * x).mean(-1) + 1e-5).rsqrt().float()
    return given | ({"ds": draw(rows, hidden)} if residual else {})


def reference(dy, x, w, rstd, offset, parts, ds=None):
    """The same in plain torch, in the precision of its arguments."""
    normed = x * rstd[:, None]
    slope = dy * (w + offset)
    dx = (slope - normed * (slope * normed).mean(-1, keepdim=True)) * rstd[:, None]
    dw = torch.stack([(dy * normed)[part::parts].sum(0) for part in range(parts)])
    return {"dx": dx if ds is None else dx + ds, "dw": dw}
