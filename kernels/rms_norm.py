"""RMSNorm: y = x / sqrt(mean(x^2) + eps) * w for each row, reduced in float32, the row kept in registers."""

import torch

KERNEL = {
    "op": "rms_norm",
    "summary": "y[rows, hidden] = x * rsqrt(mean(x*x) + eps) * w",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"hidden": "columns of x"},
    "replaces": ["rms_norm", "norm"],
}
CASES = [
    {"build": {"hidden": 1024}, "run": {"rows": 3}},
    {"build": {"hidden": 576}, "run": {"rows": 5}},
    {"build": {"hidden": 77}, "run": {"rows": 2}},
    {"build": {"hidden": 1}, "run": {"rows": 1}},
]


def build(tl, *, dtype, hidden, block_m=1, threads=256, vector=8):
    """One workgroup norms block_m rows; each thread holds groups of ``vector`` neighbouring columns."""
    while threads > 64 and threads * vector >= 2 * hidden:
        threads //= 2
    columns = -(-hidden // (threads * vector)) * threads * vector  # what lies past the row's end reads as 0
    rows = tl.dynamic("rows")

    @tl.prim_func
    def rms_norm(
        x: tl.Tensor((rows, hidden), dtype),
        w: tl.Tensor((hidden,), dtype),
        y: tl.Tensor((rows, hidden), dtype),
        eps: tl.float32,
    ):
        with tl.Kernel(tl.ceildiv(rows, block_m), threads=threads) as bx:
            row = tl.alloc_fragment((block_m, columns), "float32")
            squares = tl.alloc_fragment((block_m, columns), "float32")
            scale = tl.alloc_fragment((block_m,), "float32")
            weight = tl.alloc_fragment((columns,), "float32")
            tl.copy(x[bx * block_m, 0], row)
            tl.copy(w[0], weight)
            for i, j in tl.Parallel(block_m, columns):
                squares[i, j] = row[i, j] * row[i, j]
            tl.reduce_sum(squares, scale, dim=1)
            for i in tl.Parallel(block_m):
                scale[i] = tl.rsqrt(scale[i] / hidden + eps)
            for i, j in tl.Parallel(block_m, columns):
                row[i, j] = row[i, j] * scale[i] * weight[j]
            tl.copy(row, y[bx * block_m, 0])

    return rms_norm


def inputs(draw, *, rows, hidden):
    """Give x of (rows, hidden), a weight near 1, eps as Llama has it."""
    return {"x": draw(rows, hidden), "w": 1 + draw(hidden) / 8, "eps": 1e-5}


def reference(x, w, eps):
    """The same in plain torch, in the precision of its arguments."""
    return {"y": x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w}
