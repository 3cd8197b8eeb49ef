"""GEMM with its epilogue: y = act(op(x) @ op(w) + bias), accumulated in float32; the three layouts of a linear layer.

``nt``  y = x @ w.T, the forward pass: x (m, k), w (n, k). ``nn``  y = x @ w, the gradient of its input: w (k, n).
``tn``  y = x.T @ w, the gradient of its weight: x (k, m), w (k, n).

The rows that tokens make (m of nt and nn, k of tn) are given at launch. The widths may be fixed at build time (any
value), or left open: then one code object serves every layer whose widths are multiples of 8, the width of a 16-byte
load of half-precision values.
"""

import torch

KERNEL = {
    "op": "gemm",
    "summary": "y[m, n] = act(x[m, k] @ w[n, k].T + bias[n]); nn: x @ w[k, n]; tn: x[k, m].T @ w[k, n]",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {
        "layout": "nt, nn or tn",
        "m": "rows of y, open when absent; fixed for tn only",
        "n": "columns of y, open when absent",
        "k": "what is summed over, open when absent",
        "bias": "adds a row to each row of y",
        "act": "relu, gelu (erf), gelu_tanh or silu; none when absent",
        "keep": "also hands out what goes into the activation, which its gradient needs",
    },
    "typical": {"m": 4096, "n": 4096, "k": 4096},
    "replaces": ["gemm"],
}
CASES = [
    {"build": {}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"n": 64, "k": 64}, "run": {"m": 64}},
    {"build": {"n": 37, "k": 51}, "run": {"m": 1}},
    {"build": {"n": 130, "k": 100}, "run": {"m": 67}},
    {"build": {"layout": "nn"}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"layout": "nn", "n": 37, "k": 51}, "run": {"m": 1}},
    {"build": {"layout": "tn"}, "run": {"m": 72, "n": 40, "k": 45}},
    {"build": {"layout": "tn", "m": 37, "n": 51}, "run": {"k": 1}},
    {"build": {"bias": True}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"bias": True, "act": "relu", "n": 37, "k": 51}, "run": {"m": 3}},
    {"build": {"act": "gelu", "keep": True}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"bias": True, "act": "gelu_tanh", "keep": True}, "run": {"m": 1, "n": 40, "k": 72}},
    {"build": {"bias": True, "act": "silu", "keep": True, "n": 130, "k": 100}, "run": {"m": 67}},
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
    m=None,
    n=None,
    k=None,
    bias=False,
    act="none",
    keep=False,
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
    x_turned, w_turned = layout == "tn", layout == "nt"
    if x_turned and ((m or 8) % 8 or (n or 8) % 8):
        stages = 0  # lines that are read one by one are not loaded ahead on CUDA
    m = m if m and x_turned else 8 * tl.dynamic("m8") if x_turned else tl.dynamic("m")
    n = n or 8 * tl.dynamic("n8")
    k = tl.dynamic("k") if x_turned else k or 8 * tl.dynamic("k8")
    x_shape, x_block = ((k, m), (block_k, block_m)) if x_turned else ((m, k), (block_m, block_k))
    w_shape, w_block = ((n, k), (block_n, block_k)) if w_turned else ((k, n), (block_k, block_n))
    packing = {} if k_pack == 1 else {"k_pack": k_pack}  # only the ROCm dialect knows it
    policy = tl.GemmWarpPolicy.FullRow if full_row else tl.GemmWarpPolicy.Square

    def activated(value):
        if act == "relu":
            return tl.max(value, 0.0)
        if act == "silu":
            return value / (1.0 + tl.exp(-value))
        if act == "gelu":
            return value * (0.5 + 0.5 * tl.erf(value * 0.7071067811865476))
        # gelu_tanh: 0.5 + tanh(u) / 2 is the logistic function of 2u
        return value / (1.0 + tl.exp(-1.5957691216057308 * value * (1.0 + 0.044715 * value * value)))

    @tl.macro
    def multiply(bx, by, x, w, sums):
        x_tile = tl.alloc_shared(x_block, dtype)
        w_tile = tl.alloc_shared(w_block, dtype)
        tl.clear(sums)
        for step in tl.Pipelined(tl.ceildiv(k, block_k), num_stages=stages):
            if x_turned:
                tl.copy(x[step * block_k, by * block_m], x_tile)
            else:
                tl.copy(x[by * block_m, step * block_k], x_tile)
            if w_turned:
                tl.copy(w[bx * block_n, step * block_k], w_tile)
            else:
                tl.copy(w[step * block_k, bx * block_n], w_tile)
            tl.gemm(x_tile, w_tile, sums, transpose_A=x_turned, transpose_B=w_turned, policy=policy, **packing)

    @tl.macro
    def add_row(bx, b, sums):
        row = tl.alloc_fragment((block_n,), "float32")
        tl.copy(b[bx * block_n], row)
        for i, j in tl.Parallel(block_m, block_n):
            sums[i, j] += row[j]

    @tl.macro
    def activate(sums):
        for i, j in tl.Parallel(block_m, block_n):
            sums[i, j] = activated(sums[i, j])

    @tl.macro
    def store(bx, by, sums, y):
        if via_lds:
            y_tile = tl.alloc_shared((block_m, block_n), dtype)
            tl.copy(sums, y_tile)
            tl.copy(y_tile, y[by * block_m, bx * block_n])
        else:
            tl.copy(sums, y[by * block_m, bx * block_n])

    @tl.macro
    def whole(x, w, b, z, y):
        with tl.Kernel(tl.ceildiv(n, block_n), tl.ceildiv(m, block_m), threads=threads) as (bx, by):
            if panel:
                tl.use_swizzle(panel)
            sums = tl.alloc_fragment((block_m, block_n), "float32")
            multiply(bx, by, x, w, sums)
            if b is not None:
                add_row(bx, b, sums)
            if z is not None:
                store(bx, by, sums, z)
            if act != "none":
                activate(sums)
            store(bx, by, sums, y)

    @tl.prim_func
    def gemm(x: tl.Tensor(x_shape, dtype), w: tl.Tensor(w_shape, dtype), y: tl.Tensor((m, n), dtype)):
        whole(x, w, None, None, y)

    @tl.prim_func
    def gemm_bias(
        x: tl.Tensor(x_shape, dtype),
        w: tl.Tensor(w_shape, dtype),
        b: tl.Tensor((n,), dtype),
        y: tl.Tensor((m, n), dtype),
    ):
        whole(x, w, b, None, y)

    @tl.prim_func
    def gemm_kept(
        x: tl.Tensor(x_shape, dtype),
        w: tl.Tensor(w_shape, dtype),
        z: tl.Tensor((m, n), dtype),
        y: tl.Tensor((m, n), dtype),
    ):
        whole(x, w, None, z, y)

    @tl.prim_func
    def gemm_bias_kept(
        x: tl.Tensor(x_shape, dtype),
        w: tl.Tensor(w_shape, dtype),
        b: tl.Tensor((n,), dtype),
        z: tl.Tensor((m, n), dtype),
        y: tl.Tensor((m, n), dtype),
    ):
        whole(x, w, b, z, y)

    return {
        (False, False): gemm,
        (True, False): gemm_bias,
        (False, True): gemm_kept,
        (True, True): gemm_bias_kept,
    }[bool(bias), bool(keep)]


def work(*, dtype_bytes, m, n, k, layout="nt", bias=False, act="none", keep=False):  # noqa: ARG001 - same for all
    """(flop, bytes to and from memory), each tensor once."""
    return 2 * m * n * k, (m * k + n * k + (2 if keep else 1) * m * n + (n if bias else 0)) * dtype_bytes


def inputs(draw, *, m, n, k, layout="nt", bias=False, act="none", keep=False):
    """Give x and w in the layout's shapes, and a bias; ``draw(*shape)`` gives normally distributed values."""
    x = draw(k, m) if layout == "tn" else draw(m, k)
    w = (draw(n, k) if layout == "nt" else draw(k, n)) / k**0.5
    return {"x": x, "w": w, "layout": layout, "act": act, "keep": keep} | ({"b": draw(n)} if bias else {})


def reference(x, w, layout="nt", act="none", keep=False, b=None):
    """The same in plain torch, in the precision of its arguments."""
    z = (x.mT if layout == "tn" else x) @ (w.mT if layout == "nt" else w)
    z = z if b is None else z + b
    functional = torch.nn.functional
    y = {
        "none": lambda: z,
        "relu": z.relu,
        "silu": lambda: functional.silu(z),
        "gelu": lambda: functional.gelu(z),
        "gelu_tanh": lambda: functional.gelu(z, approximate="tanh"),
    }[act]()
    return {"y": y, "z": z} if keep else {"y": y}
