"""Weight gradients of a mixture of experts: dw[e] = dy[rows of e].T @ x[rows of e], rows sorted by expert, float32 sums.

``ends[e]`` is the row behind expert e's last one; an expert without rows gets zeros. The last rows of an expert, which
make no whole block, are read one by one, so that nothing of the next expert's gets in. ``rows`` and ``experts`` are
given at launch, and so are n and k as multiples of 8, unless fixed.
"""

import torch

KERNEL = {
    "op": "grouped_gemm_dw",
    "summary": "dw[e, n, k] = dy[rows of e, n].T @ x[rows of e, k] for each expert e",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {"n": "columns of dy, open when absent", "k": "columns of x, open when absent"},
    "typical": {"experts": 8, "rows": 8192, "n": 14336, "k": 4096},
}
CASES = [
    {"build": {}, "run": {"experts": 3, "rows": 75, "n": 40, "k": 72, "share": "uneven"}},
    {"build": {}, "run": {"experts": 5, "rows": 96, "n": 40, "k": 72, "share": "one"}},
    {"build": {"n": 37, "k": 51}, "run": {"experts": 2, "rows": 1, "share": "uneven"}},
    {"build": {"n": 37, "k": 51}, "run": {"experts": 6, "rows": 67, "share": "left over"}},
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


def build(
    tl,
    *,
    dtype,
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
    """One workgroup computes block_m x block_n of an expert's dw, block_k rows of dy and x at a time.

    ``panel`` tiles of dw's rows are walked together, so that what they read of x stays in the L2 cache; 0 walks row by
    row. ``via_lds`` hands a tile of dw to memory through LDS, in wide stores. With ``full_row`` each wave computes whole
    rows of the tile, else waves share it out in both directions.
    """
    rows, experts = tl.dynamic("rows"), tl.dynamic("experts")
    if (n or 8) % 8 or (k or 8) % 8:
        stages = 0  # lines that are read one by one are not loaded ahead on CUDA
    n, k = n or 8 * tl.dynamic("n8"), k or 8 * tl.dynamic("k8")
    packing = {} if k_pack == 1 else {"k_pack": k_pack}  # only the ROCm dialect knows it
    policy = tl.GemmWarpPolicy.FullRow if full_row else tl.GemmWarpPolicy.Square

    @tl.prim_func
    def grouped_gemm_dw(
        dy: tl.Tensor((rows, n), dtype),
        x: tl.Tensor((rows, k), dtype),
        ends: tl.Tensor((experts,), "int32"),
        dw: tl.Tensor((experts, n, k), dtype),
    ):
        with tl.Kernel(tl.ceildiv(k, block_n), tl.ceildiv(n, block_m), experts, threads=threads) as (bx, by, e):
            if panel:
                tl.use_swizzle(panel)
            dy_tile = tl.alloc_shared((block_k, block_m), dtype)
            x_tile = tl.alloc_shared((block_k, block_n), dtype)
            sums = tl.alloc_fragment((block_m, block_n), "float32")
            begin, end = tl.alloc_var("int32", 0), tl.alloc_var("int32", 0)
            if e > 0:
                begin = ends[e - 1]
            end = ends[e]
            tl.clear(sums)
            for step in tl.Pipelined((end - begin) // block_k, num_stages=stages):
                tl.copy(dy[begin + step * block_k, by * block_m], dy_tile)
                tl.copy(x[begin + step * block_k, bx * block_n], x_tile)
                tl.gemm(dy_tile, x_tile, sums, transpose_A=True, policy=policy, **packing)
            rest = begin + (end - begin) // block_k * block_k
            dy_rest = tl.alloc_shared((block_k, block_m), dtype)
            x_rest = tl.alloc_shared((block_k, block_n), dtype)
            if rest < end:
                for r, i in tl.Parallel(block_k, block_m):
                    inside = rest + r < end and by * block_m + i < n
                    dy_rest[r, i] = tl.if_then_else(inside, dy[rest + r, by * block_m + i], 0)
                for r, j in tl.Parallel(block_k, block_n):
                    inside = rest + r < end and bx * block_n + j < k
                    x_rest[r, j] = tl.if_then_else(inside, x[rest + r, bx * block_n + j], 0)
                tl.gemm(dy_rest, x_rest, sums, transpose_A=True, policy=policy, **packing)
            if via_lds:
                dw_tile = tl.alloc_shared((block_m, block_n), dtype)
                tl.copy(sums, dw_tile)
                tl.copy(dw_tile, dw[e, by * block_m, bx * block_n])
            else:
                tl.copy(sums, dw[e, by * block_m, bx * block_n])

    return grouped_gemm_dw


def work(*, dtype_bytes, experts, rows, n, k, share=""):  # noqa: ARG001 - same for all
    """(flop, bytes to and from memory), each tensor once."""
    return 2 * rows * n * k, (rows * (n + k) + experts * n * k) * dtype_bytes + 4 * experts


def inputs(draw, *, experts, rows, n, k, share="uneven"):
    """Give dy (rows, n), x (rows, k), and where each expert's rows end.

    ``share``: ``uneven`` with the second expert empty, ``one`` with all rows for the last but one, ``left over`` with
    rows behind the last expert's, ``even``.
    """
    part = torch.arange(1, experts + 1, dtype=torch.float64)
    if share == "one":
        part = (part >= experts - 1).double()
    elif share == "even":
        part = part / experts
    else:
        part[1] = part[0]
        part = part / part[-1] * (0.8 if share == "left over" else 1.0)
    return {"dy": draw(rows, n), "x": draw(rows, k), "ends": (part * rows).int()}


def reference(dy, x, ends):
    """One product an expert in plain torch, in the precision of the arguments."""
    dw, begin = x.new_zeros(len(ends), dy.shape[1], x.shape[1]), 0
    for expert, end in enumerate(ends.tolist()):
        dw[expert] = dy[begin:end].mT @ x[begin:end]
        begin = end
    return {"dw": dw}
