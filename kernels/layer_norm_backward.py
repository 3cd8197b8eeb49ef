"""Gradients of LayerNorm: dx for each row, the weight's and the bias's summed over the rows that one workgroup takes.

Workgroup p of ``parts`` takes the rows p, p + parts, p + 2 parts...; column_sum adds up what they hand out: ``dwb`` has
the weight's gradient in its left half and the bias's in its right one.
"""

import torch

KERNEL = {
    "op": "layer_norm_backward",
    "summary": "dx[rows, hidden] and dwb[parts, 2 hidden] of layer_norm from dy, x, mean and rstd",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"hidden": "columns of x"},
    "typical": {"rows": 8192, "parts": 256},
}
CASES = [
    {"build": {"hidden": 576}, "run": {"rows": 7, "parts": 3}},
    {"build": {"hidden": 77}, "run": {"rows": 2, "parts": 2}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "threads": [64, 128, 256, 512, 1024],
    "vector": [4, 8],
}


def build(tl, *, dtype, hidden, threads=256, vector=8):
    """Each thread holds groups of ``vector`` neighbouring columns of a row, and both parameters' gradients there."""
    while threads > 64 and threads * vector >= 2 * hidden:
        threads //= 2
    columns = -(-hidden // (threads * vector)) * threads * vector
    rows, parts = tl.dynamic("rows"), tl.dynamic("parts")

    @tl.prim_func
    def layer_norm_backward(
        dy: tl.Tensor((rows, hidden), dtype),
        x: tl.Tensor((rows, hidden), dtype),
        w: tl.Tensor((hidden,), dtype),
        mean: tl.Tensor((rows,), "float32"),
        rstd: tl.Tensor((rows,), "float32"),
        dx: tl.Tensor((rows, hidden), dtype),
        dwb: tl.Tensor((parts, 2 * hidden), "float32"),
    ):
        with tl.Kernel(parts, threads=threads) as bx:
            weight = tl.alloc_fragment((columns,), dtype)
            for_weight = tl.alloc_fragment((columns,), "float32")
            for_bias = tl.alloc_fragment((columns,), "float32")
            slope = tl.alloc_fragment((columns,), "float32")
            normed = tl.alloc_fragment((columns,), "float32")
            product = tl.alloc_fragment((1, columns), "float32")
            tilt = tl.alloc_fragment((1,), "float32")
            level = tl.alloc_fragment((1,), "float32")
            tl.copy(w[0], weight)
            tl.clear(for_weight)
            tl.clear(for_bias)
            for step in tl.serial(tl.ceildiv(rows - bx, parts)):
                row = step * parts + bx
                tl.copy(x[row, 0], normed)
                tl.copy(dy[row, 0], slope)
                for j in tl.Parallel(columns):
                    normed[j] = (normed[j] - mean[row]) * rstd[row]
                    for_weight[j] += slope[j] * normed[j]
                    for_bias[j] += slope[j]
                    slope[j] = slope[j] * tl.cast(weight[j], "float32")  # 0 past the row's end, as dy and w are
                    product[0, j] = slope[j]
                tl.reduce_sum(product, level, dim=1)
                for j in tl.Parallel(columns):
                    product[0, j] = slope[j] * normed[j]
                tl.reduce_sum(product, tilt, dim=1)
                level[0] = level[0] / hidden
                tilt[0] = tilt[0] / hidden
                for j in tl.Parallel(columns):
                    slope[j] = (slope[j] - normed[j] * tilt[0] - level[0]) * rstd[row]
                tl.copy(slope, dx[row, 0])
            for j in tl.Parallel(columns):
                if j < hidden:
                    dwb[bx, j] = for_weight[j]
                    dwb[bx, hidden + j] = for_bias[j]

    return layer_norm_backward


def work(*, dtype_bytes, rows, parts, hidden):
    """(flop, bytes to and from memory), each tensor once."""
    return 13 * rows * hidden, (3 * rows + 1) * hidden * dtype_bytes + 8 * rows + 8 * parts * hidden


def inputs(draw, *, rows, parts, hidden):
    """Give dy and x of (rows, hidden), a weight near 1, each row's mean and factor; ``parts`` is for the reference."""
    x = draw(rows, hidden) + 0.5
    return {
        "dy": draw(rows, hidden),
        "x": x,
        "w": 1 + draw(hidden) / 8,
        "mean": x.mean(-1).float(),
        "rstd": (x.var(-1, unbiased=False) + 1e-5).rsqrt().float(),
        "parts": parts,
    }


def reference(dy, x, w, mean, rstd, parts):
    """The same in plain torch, in the precision of its arguments."""
    normed = (x - mean[:, None]) * rstd[:, None]
    slope = dy * w
    dx = slope - normed * (slope * normed).mean(-1, keepdim=True) - slope.mean(-1, keepdim=True)
    pair = torch.cat([dy * normed, dy], -1)
    return {"dx": dx * rstd[:, None], "dwb": torch.stack([pair[part::parts].sum(0) for part in range(parts)])}
