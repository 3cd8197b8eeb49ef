"""GEMM: y = x @ w.T, as torch.nn.Linear has it, accumulated in float32.

``m`` is dynamic. ``n`` and ``k`` may be fixed at build time (any value), or left open: then one code object serves
every layer whose widths are multiples of 8, the width of a 16-byte load of half-precision values.
"""

KERNEL = {
    "op": "gemm",
    "summary": "y[m, n] = x[m, k] @ w[n, k].T",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {"n": "columns of y, open when absent", "k": "columns of x, open when absent"},
    "replaces": ["gemm"],
}
CASES = [
    {"build": {}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"n": 64, "k": 64}, "run": {"m": 64}},
    {"build": {"n": 37, "k": 51}, "run": {"m": 1}},
    {"build": {"n": 130, "k": 100}, "run": {"m": 67}},
]


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
    """One workgroup computes a block_m x block_n tile of y, block_k columns of x and w at a time.

    ``panel`` tiles of rows are walked together, so that what they read of w stays in the L2 cache; 0 walks row by row.
    ``via_lds`` hands a tile of y to memory through LDS, in wide stores. With ``full_row`` each wave computes whole rows
    of the tile, else waves share it out in both directions.
    """
    m = tl.dynamic("m")
    n = n or 8 * tl.dynamic("n8")
    k = k or 8 * tl.dynamic("k8")
    packing = {} if k_pack == 1 else {"k_pack": k_pack}  # only the ROCm dialect knows it
    policy = tl.GemmWarpPolicy.FullRow if full_row else tl.GemmWarpPolicy.Square

    @tl.prim_func
    def gemm(x: tl.Tensor((m, k), dtype), w: tl.Tensor((n, k), dtype), y: tl.Tensor((m, n), dtype)):
        with tl.Kernel(tl.ceildiv(n, block_n), tl.ceildiv(m, block_m), threads=threads) as (bx, by):
            if panel:
                tl.use_swizzle(panel)
            x_tile = tl.alloc_shared((block_m, block_k), dtype)
            w_tile = tl.alloc_shared((block_n, block_k), dtype)
            sums = tl.alloc_fragment((block_m, block_n), "float32")
            tl.clear(sums)
            for step in tl.Pipelined(tl.ceildiv(k, block_k), num_stages=stages):
                tl.copy(x[by * block_m, step * block_k], x_tile)
                tl.copy(w[bx * block_n, step * block_k], w_tile)
                tl.gemm(x_tile, w_tile, sums, transpose_B=True, policy=policy, **packing)
            if via_lds:
                y_tile = tl.alloc_shared((block_m, block_n), dtype)
                tl.copy(sums, y_tile)
                tl.copy(y_tile, y[by * block_m, bx * block_n])
            else:
                tl.copy(sums, y[by * block_m, bx * block_n])

    return gemm


def work(*, dtype_bytes, m, n, k):
    """(flop, bytes to and from memory), each tensor once."""
    return 2 * m * n * k, (m * k + n * k + m * n) * dtype_bytes


def inputs(draw, *, m, n, k):
    """Give x of (m, k), w of (n, k); ``draw(*shape)`` gives normally distributed values."""
    return {"x": draw(m, k), "w": draw(n, k) / k**0.5}


def reference(x, w):
    """The same in plain torch, in the precision of its arguments."""
    return {"y": x @ w.mT}
