"""RMSNorm: y = x / sqrt(mean(x^2) + eps) * (w + offset) for each row, reduced in float32, the row kept in registers.

``rstd``, the factor of each row, is what the backward pass needs. ``offset`` is 1 for models that store w - 1 (Gemma).
With ``residual`` the row normed is x + r, which is handed out as ``s``: the residual stream of a transformer.
"""

import torch

KERNEL = {
    "op": "rms_norm",
    "summary": "y[rows, hidden] = x * rsqrt(mean(x*x) + eps) * (w + offset); with residual: of s = x + r",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"hidden": "columns of x", "residual": "add r first and hand out the sum"},
    "typical": {"rows": 8192},
    "replaces": ["rms_norm", "norm"],
}
CASES = [
    {"build": {"hidden": 1024}, "run": {"rows": 3}},
    {"build": {"hidden": 576}, "run": {"rows": 5}},
    {"build": {"hidden": 77}, "run": {"rows": 2}},
    {"build": {"hidden": 1}, "run": {"rows": 1}},
    {"build": {"hidden": 77, "residual": True}, "run": {"rows": 3}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_m": [1, 2, 4],
    "threads": [64, 128, 256, 512, 1024],
    "vector": [4, 8],
}


def build(tl, *, dtype, hidden, residual=False, block_m=1, threads=256, vector=8):
    """One workgroup norms block_m rows; each thread holds groups of ``vector`` neighbouring columns."""
    while threads > 64 and threads * vector >= 2 * hidden:
        threads //= 2
    columns = -(-hidden // (threads * vector)) * threads * vector  # what lies past the row's end reads as 0
    rows = tl.dynamic("rows")

    @tl.macro
    def norm(bx, row, w, y, rstd, eps, offset):
        squares = tl.alloc_fragment((block_m, columns), "float32")
        scale = tl.alloc_fragment((block_m,), "float32")
        weight = tl.alloc_fragment((columns,), dtype)
        tl.copy(w[0], weight)
        for i, j in tl.Parallel(block_m, columns):
            squares[i, j] = row[i, j] * row[i, j]
        tl.reduce_sum(squares, scale, dim=1)
        for i in tl.Parallel(block_m):
            scale[i] = tl.rsqrt(scale[i] / hidden + eps)
        tl.copy(scale, rstd[bx * block_m])
        for i, j in tl.Parallel(block_m, columns):
            row[i, j] = row[i, j] * scale[i] * (tl.cast(weight[j], "float32") + offset)
        tl.copy(row, y[bx * block_m, 0])

    @tl.prim_func
    def rms_norm(
        x: tl.Tensor((rows, hidden), dtype),
        w: tl.Tensor((hidden,), dtype),
        y: tl.Tensor((rows, hidden), dtype),
        rstd: tl.Tensor((rows,), "float32"),
        eps: tl.float32,
        offset: tl.float32,
    ):
        with tl.Kernel(tl.ceildiv(rows, block_m), threads=threads) as bx:
            row = tl.alloc_fragment((block_m, columns), "float32")
            tl.copy(x[bx * block_m, 0], row)
            norm(bx, row, w, y, rstd, eps, offset)

    @tl.prim_func
    def add_rms_norm(
        x: tl.Tensor((rows, hidden), dtype),
        r: tl.Tensor((rows, hidden), dtype),
        w: tl.Tensor((hidden,), dtype),
        y: tl.Tensor((rows, hidden), dtype),
        s: tl.Tensor((rows, hidden), dtype),
        rstd: tl.Tensor((rows,), "float32"),
        eps: tl.float32,
        offset: tl.float32,
    ):
        with tl.Kernel(tl.ceildiv(rows, block_m), threads=threads) as bx:
            row = tl.alloc_fragment((block_m, columns), "float32")
            other = tl.alloc_fragment((block_m, columns), "float32")
            total = tl.alloc_fragment((block_m, columns), dtype)
            tl.copy(x[bx * block_m, 0], row)
            tl.copy(r[bx * block_m, 0], other)
            for i, j in tl.Parallel(block_m, columns):
                total[i, j] = tl.cast(row[i, j] + other[i, j], dtype)
            tl.copy(total, s[bx * block_m, 0])
            for i, j in tl.Parallel(block_m, columns):
                row[i, j] = total[i, j]  # the rounded sum is what the next layer sees, so it is what is normed
            norm(bx, row, w, y, rstd, eps, offset)

    return add_rms_norm if residual else rms_norm


def work(*, dtype_bytes, rows, hidden, residual=False):
    """(flop, bytes to and from memory), each tensor once."""
    tensors = 4 if residual else 2
    return (6 if residual else 5) * rows * hidden, (tensors * rows + 1) * hidden * dtype_bytes + 4 * rows


def inputs(draw, *, rows, hidden, residual=False):
    """Give x (and r) of (rows, hidden), a weight near 1, eps as Llama has it."""
    given = {"x": draw(rows, hidden), "w": 1 + draw(hidden) / 8, "eps": 1e-5, "offset": 0.25}
    return given | ({"r": draw(rows, hidden)} if residual else {})


def reference(x, w, eps, offset, r=None):
    """The same in plain torch, in the precision of its arguments."""
    s = x if r is None else x + r
    rstd = torch.rsqrt((s * s).mean(-1) + eps)
    found = {"y": s * rstd[:, None] * (w + offset), "rstd": rstd}
    return found if r is None else found | {"s": s}
