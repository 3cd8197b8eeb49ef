"""Grouped GEMM of a mixture of experts: rows sorted by expert, each expert's own weight; float32 sums.

``nt``  y[rows of e] = x[rows of e] @ w[e].T, the forward pass: w (experts, n, k).
``nn``  y[rows of e] = x[rows of e] @ w[e], the gradient of its input: w (experts, k, n).

``ends[e]`` is the row behind expert e's last one. No row is copied or padded: each workgroup finds its expert and its
first row from ``ends``, and tiles that reach past an expert's last row store what is its own. Rows behind the last
expert's become 0. ``rows`` and ``experts`` are given at launch, and so are n and k as multiples of 8, unless fixed.
"""

import torch

KERNEL = {
    "op": "grouped_gemm",
    "summary": "y[rows of e, n] = x[rows of e, k] @ w[e, n, k].T for each expert e; nn: @ w[e, k, n]",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {
        "layout": "nt or nn",
        "n": "columns of y, open when absent",
        "k": "columns of x, open when absent",
    },
    "typical": {"experts": 8, "rows": 8192, "n": 14336, "k": 4096},
    "replaces": ["grouped_gemm"],
}
CASES = [
    {"build": {}, "run": {"experts": 3, "rows": 75, "n": 40, "k": 72, "share": "uneven"}},
    {"build": {}, "run": {"experts": 5, "rows": 45, "n": 40, "k": 72, "share": "one"}},
    {"build": {"n": 37, "k": 51}, "run": {"experts": 2, "rows": 1, "share": "uneven"}},
    {"build": {"layout": "nn"}, "run": {"experts": 3, "rows": 75, "n": 40, "k": 72, "share": "uneven"}},
    {"build": {"layout": "nn", "n": 37, "k": 51}, "run": {"experts": 6, "rows": 67, "share": "left over"}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_m": [64, 128, 256],
    "block_n": [64, 128, 256],
    "block_k": [32, 64],
    "threads": [128, 256, 512],
    "stages": [0, 2, 3],
    "k_pack": [1, 2],
    "panel": [0, 4, 8],
    "via_lds": [False, True],
    "full_row": [False, True],
}


def build(  # noqa: C901 - one kernel reads best in one piece
    tl,
    *,
    dtype,
    layout="nt",
    n=None,
    k=None,
    block_m=128,
    block_n=128,
    block_k=32,
    threads=256,
    stages=0,
    k_pack=1,
    panel=0,
    via_lds=False,
    full_row=False,
):
    """One workgroup computes a block_m x block_n tile of y, block_k columns of x and w at a time.

    ``panel`` tiles of rows are walked together, so that what they read of w stays in the L2 cache; 0 walks row by row.
    ``via_lds`` hands a tile of y to memory through LDS, in wide stores. With ``full_row`` each wave computes whole rows
    of the tile, else waves share it out in both directions.
    """
    rows, experts = tl.dynamic("rows"), tl.dynamic("experts")
    if (n or 8) % 8 or (k or 8) % 8:
        stages = 0  # lines that are read one by one are not loaded ahead on CUDA
    w_turned, n, k = layout == "nt", n or 8 * tl.dynamic("n8"), k or 8 * tl.dynamic("k8")
    w_shape, w_block = ((n, k), (block_n, block_k)) if w_turned else ((k, n), (block_k, block_n))
    packing = {} if k_pack == 1 else {"k_pack": k_pack}  # only the ROCm dialect knows it
    policy = tl.GemmWarpPolicy.FullRow if full_row else tl.GemmWarpPolicy.Square

    @tl.prim_func
    def grouped_gemm(  # noqa: C901 - likewise
        x: tl.Tensor((rows, k), dtype),
        w: tl.Tensor((experts, *w_shape), dtype),
        ends: tl.Tensor((experts,), "int32"),
        y: tl.Tensor((rows, n), dtype),
    ):
        # Each expert, and what is behind the last one, may end in a tile that is not full.
        with tl.Kernel(tl.ceildiv(n, block_n), tl.ceildiv(rows, block_m) + experts, threads=threads) as (bx, by):
            if panel:
                tl.use_swizzle(panel)
            x_tile = tl.alloc_shared((block_m, block_k), dtype)
            w_tile = tl.alloc_shared(w_block, dtype)
            sums = tl.alloc_fragment((block_m, block_n), "float32")
            begin, tiles = tl.alloc_var("int32", 0), tl.alloc_var("int32", 0)
            mine, first, last = tl.alloc_var("int32", -1), tl.alloc_var("int32", 0), tl.alloc_var("int32", 0)
            for e in tl.serial(experts):
                end = ends[e]
                here = tl.ceildiv(end - begin, block_m)
                if by >= tiles and by < tiles + here:
                    mine = e
                    first = begin + (by - tiles) * block_m
                    last = end
                tiles = tiles + here
                begin = end
            if mine < 0:
                first = begin + (by - tiles) * block_m
                last = rows
            tl.clear(sums)
            # A workgroup without rows makes no step and stores nothing. No `if` around the loop: lowering for CUDA
            # would move the search for the expert behind it.
            for step in tl.Pipelined(tl.if_then_else(mine < 0, 0, tl.ceildiv(k, block_k)), num_stages=stages):
                tl.copy(x[first, step * block_k], x_tile)
                if w_turned:
                    tl.copy(w[mine, bx * block_n, step * block_k], w_tile)
                else:
                    tl.copy(w[mine, step * block_k, bx * block_n], w_tile)
                tl.gemm(x_tile, w_tile, sums, transpose_B=w_turned, policy=policy, **packing)
            if via_lds:
                y_tile = tl.alloc_shared((block_m, block_n), dtype)
                tl.copy(sums, y_tile)
                if first + block_m <= last:
                    tl.copy(y_tile, y[first, bx * block_n])
                else:
                    for i, j in tl.Parallel(block_m, block_n):
                        if first + i < last and bx * block_n + j < n:
                            y[first + i, bx * block_n + j] = y_tile[i, j]
            else:
                for i, j in tl.Parallel(block_m, block_n):
                    if first + i < last and bx * block_n + j < n:
                        y[first + i, bx * block_n + j] = tl.cast(sums[i, j], dtype)

    return grouped_gemm


def work(*, dtype_bytes, experts, rows, n, k, layout="nt", share=""):  # noqa: ARG001 - same for all
    """(flop, bytes to and from memory), each tensor once; all experts are taken to have rows."""
    return 2 * rows * n * k, (rows * (n + k) + experts * n * k) * dtype_bytes + 4 * experts


def inputs(draw, *, experts, rows, n, k, layout="nt", share="uneven"):
    """Give x of (rows, k), a weight for each expert, and where each expert's rows end.

    ``share``: ``uneven`` with the second expert empty, ``one`` with all rows for the last but one, ``left over`` with
    rows behind the last expert's, ``even``.
    """
    w = draw(experts, n, k) if layout == "nt" else draw(experts, k, n)
    part = torch.arange(1, experts + 1, dtype=torch.float64)
    if share == "one":
        part = (part >= experts - 1).double()
    elif share == "even":
        part = part / experts
    else:
        part[1] = part[0]
        part = part / part[-1] * (0.8 if share == "left over" else 1.0)
    return {"x": draw(rows, k), "w": w / k**0.5, "ends": (part * rows).int(), "layout": layout}


def reference(x, w, ends, layout):
    """One product an expert in plain torch, in the precision of the arguments."""
    y, begin = x.new_zeros(x.shape[0], w.shape[1 if layout == "nt" else 2]), 0
    for expert, end in enumerate(ends.tolist()):
        y[begin:end] = x[begin:end] @ (w[expert].mT if layout == "nt" else w[expert])
        begin = end
    return {"y": y}
