"""LayerNorm: y = (x - mean) * rstd * w + b for each row, reduced in float32, the row kept in registers.

``mean`` and ``rstd`` of each row are what the backward pass needs.
"""

import torch

KERNEL = {
    "op": "layer_norm",
    "summary": "y[rows, hidden] = (x - mean(x)) * rsqrt(var(x) + eps) * w + b",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"hidden": "columns of x"},
    "typical": {"rows": 8192},
    "replaces": ["layer_norm"],
}
CASES = [
    {"build": {"hidden": 768}, "run": {"rows": 3}},
    {"build": {"hidden": 77}, "run": {"rows": 2}},
    {"build": {"hidden": 1}, "run": {"rows": 1}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_m": [1, 2, 4],
    "threads": [64, 128, 256, 512, 1024],
    "vector": [4, 8],
}


def build(tl, *, dtype, hidden, block_m=1, threads=256, vector=8):
    """One workgroup norms block_m rows; each thread holds groups of ``vector`` neighbouring columns."""
    while threads > 64 and threads * vector >= 2 * hidden:
        threads //= 2
    columns = -(-hidden // (threads * vector)) * threads * vector
    rows = tl.dynamic("rows")

    @tl.prim_func
    def layer_norm(
        x: tl.Tensor((rows, hidden), dtype),
        w: tl.Tensor((hidden,), dtype),
        b: tl.Tensor((hidden,), dtype),
        y: tl.Tensor((rows, hidden), dtype),
        mean: tl.Tensor((rows,), "float32"),
        rstd: tl.Tensor((rows,), "float32"),
        eps: tl.float32,
    ):
        with tl.Kernel(tl.ceildiv(rows, block_m), threads=threads) as bx:
            row = tl.alloc_fragment((block_m, columns), "float32")
            squares = tl.alloc_fragment((block_m, columns), "float32")
            middle = tl.alloc_fragment((block_m,), "float32")
            scale = tl.alloc_fragment((block_m,), "float32")
            weight = tl.alloc_fragment((columns,), dtype)
            bias = tl.alloc_fragment((columns,), dtype)
            tl.copy(x[bx * block_m, 0], row)
            tl.copy(w[0], weight)
            tl.copy(b[0], bias)
            tl.reduce_sum(row, middle, dim=1)
            for i in tl.Parallel(block_m):
                middle[i] = middle[i] / hidden
            for i, j in tl.Parallel(block_m, columns):
                row[i, j] = tl.if_then_else(j < hidden, row[i, j] - middle[i], 0.0)
                squares[i, j] = row[i, j] * row[i, j]
            tl.reduce_sum(squares, scale, dim=1)
            for i in tl.Parallel(block_m):
                scale[i] = tl.rsqrt(scale[i] / hidden + eps)
            tl.copy(middle, mean[bx * block_m])
            tl.copy(scale, rstd[bx * block_m])
            for i, j in tl.Parallel(block_m, columns):
                row[i, j] = row[i, j] * scale[i] * tl.cast(weight[j], "float32") + tl.cast(bias[j], "float32")
            tl.copy(row, y[bx * block_m, 0])

    return layer_norm


def work(*, dtype_bytes, rows, hidden):
    """(flop, bytes to and from memory), each tensor once."""
    return 7 * rows * hidden, 2 * (rows + 1) * hidden * dtype_bytes + 8 * rows


def inputs(draw, *, rows, hidden):
    """Give x of (rows, hidden) off zero, a weight near 1, a bias, eps as torch has it."""
    return {"x": draw(rows, hidden) + 0.5, "w": 1 + draw(hidden) / 8, "b": draw(hidden), "eps": 1e-5}


def reference(x, w, b, eps):
    """The same in plain torch, in the precision of its arguments."""
    mean = x.mean(-1)
    rstd = torch.rsqrt(x.var(-1, unbiased=False) + eps)
    return {"y": (x - mean[:, None]) * rstd[:, None] * w + b, "mean": mean, "rstd": rstd}
