"""GEMM with weights of 8 or 4 bits that are widened on the way: y = x @ w.T, and y = x @ w for the input's gradient.

``nt``  x (m, k) gives y (m, n), the forward pass. ``nn``  x (m, n) gives y (m, k), the gradient of its input; the
weight of n rows and k columns stays as it is. A weight is ``codes`` with a ``scale`` in float32:

``int8``      scale (n): w = code * scale, codes of two's complement.
``int4``      scale (n, k / group): w = (code - zero) * scale, codes 0 to 15, zero 8 or uint8 (n, k / group).
``e4m3fn``    scale (n); codes of 1 + 4 + 3 bits, exponent bias 7, no infinity, 0x7f and 0xff not a number. The OCP
              form, which gfx950 and gfx1201 (and NVIDIA) compute with.
``e4m3fnuz``  the same with exponent bias 8, 0x80 not a number, so no -0: what gfx942 computes with.

The codes of a row follow each other, the first in the lowest bits, in words of 32 bits: int32 (n, k / 8) for int4,
(n, k / 4) for the others; where k is no multiple of 4 the last word is filled up with zeros.

The two forms of float8 differ by a factor of 2 in what most bytes mean. Both are widened by integer arithmetic, so that
every target reads either. m is given at launch; n and k are open in multiples of 8 (k of group) unless fixed.
"""

import torch

KERNEL = {
    "op": "dequant_gemm",
    "summary": "y[m, n] = x[m, k] @ w.T with w[n, k] of int8, int4 or float8; nn: y[m, k] = x[m, n] @ w",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {
        "form": "int8, int4, e4m3fn or e4m3fnuz",
        "group": "columns that share a scale (int4): 32, 64 or 128",
        "zeros": "each group has a zero of its own (int4)",
        "layout": "nt or nn",
        "n": "rows of w, open when absent",
        "k": "columns of w, open when absent",
    },
    "typical": {"m": 4096, "n": 14336, "k": 4096},
    "replaces": ["dequant_gemm"],
    "slack": 2,  # the widened weight is rounded before it is multiplied
}
CASES = [
    {"build": {"form": "int8"}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"form": "int8", "layout": "nn", "n": 37, "k": 51}, "run": {"m": 3}},
    {"build": {"form": "int4", "group": 32}, "run": {"m": 45, "n": 40, "k": 96}},
    {"build": {"form": "int4", "group": 64, "zeros": True, "n": 37, "k": 192}, "run": {"m": 1}},
    {"build": {"form": "int4", "group": 128, "layout": "nn"}, "run": {"m": 45, "n": 40, "k": 256}},
    {"build": {"form": "int4", "group": 32, "zeros": True, "layout": "nn", "n": 37, "k": 96}, "run": {"m": 3}},
    {"build": {"form": "e4m3fn", "n": 37, "k": 51}, "run": {"m": 3}},
    {"build": {"form": "e4m3fn", "layout": "nn"}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"form": "e4m3fnuz"}, "run": {"m": 45, "n": 40, "k": 72}},
    {"build": {"form": "e4m3fnuz", "layout": "nn", "n": 37, "k": 51}, "run": {"m": 1}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_m": [64, 128, 256],
    "block_n": [64, 128, 256],
    "block_k": [32, 64, 128],
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
    form="int4",
    group=128,
    zeros=False,
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
    """One workgroup computes a block_m x block_n tile of y, block_k of what is summed over at a time.

    ``panel`` tiles of rows are walked together, so that what they read of w stays in the L2 cache; 0 walks row by row.
    ``via_lds`` hands a tile of y to memory through LDS, in wide stores. With ``full_row`` each wave computes whole rows
    of the tile, else waves share it out in both directions.
    """
    packed, forward = form == "int4", layout == "nt"
    m, n = tl.dynamic("m"), n or 8 * tl.dynamic("n8")
    if packed:
        groups = k // group if k else tl.dynamic("groups")
        k, words, scale_shape = group * groups, group // 8 * groups, (n, groups)
    else:
        k, words, scale_shape = (k, -(-k // 4), (n,)) if k else (8 * tl.dynamic("k8"), 2 * tl.dynamic("k8"), (n,))
    summed, columns = (k, n) if forward else (n, k)
    rows, width = (block_n, block_k) if forward else (block_k, block_n)  # the tile of w
    each = 8 if packed else 4  # codes in a word
    packing = {} if k_pack == 1 else {"k_pack": k_pack}  # only the ROCm dialect knows it
    policy = tl.GemmWarpPolicy.FullRow if full_row else tl.GemmWarpPolicy.Square

    def widened(byte):
        """The number that 8 bits stand for, exactly."""
        if form == "int8":
            return tl.cast((byte ^ 128) - 128, "float32")
        exponent, fraction = (byte >> 3) & 15, byte & 7
        # In units of the smallest number, all of these are whole.
        size = tl.if_then_else(exponent == 0, fraction, (fraction + 8) << (tl.max(exponent, 1) - 1))
        value = tl.cast(tl.if_then_else(byte >= 128, -size, size), "float32")
        if form == "e4m3fnuz":
            return value * tl.if_then_else(byte == 128, tl.infinity("float32"), 2.0**-10)  # 0 times infinity
        missing = (byte & 127) == 127
        return tl.if_then_else(missing, 0.0, value) * tl.if_then_else(missing, tl.infinity("float32"), 2.0**-9)

    @tl.macro
    def widen(words_tile, w_tile, scale, zero, first_row, first_column):
        for i, b, j in tl.Parallel(rows, width // each, each):
            code = (words_tile[i, b] >> (j * (32 // each))) & (15 if packed else 255)
            if packed:
                place = (first_column + b * each) // group
                middle = 8.0 if zero is None else tl.cast(zero[first_row + i, place], "float32")
                value = (tl.cast(code, "float32") - middle) * scale[first_row + i, place]
            elif forward:  # the scales are left for the sums
                value = widened(code)
            else:
                value = widened(code) * scale[first_row + i]
            w_tile[i, b * each + j] = tl.cast(value, dtype)

    @tl.macro
    def whole(x, codes, scale, zero, y):
        with tl.Kernel(tl.ceildiv(columns, block_n), tl.ceildiv(m, block_m), threads=threads) as (bx, by):
            if panel:
                tl.use_swizzle(panel)
            x_tile = tl.alloc_shared((block_m, block_k), dtype)
            words_tile = tl.alloc_shared((rows, width // each), "int32")
            w_tile = tl.alloc_shared((rows, width), dtype)
            sums = tl.alloc_fragment((block_m, block_n), "float32")
            tl.clear(sums)
            for step in tl.Pipelined(tl.ceildiv(summed, block_k), num_stages=stages):
                first_row = bx * block_n if forward else step * block_k
                first_column = step * block_k if forward else bx * block_n
                tl.copy(x[by * block_m, step * block_k], x_tile)
                tl.copy(codes[first_row, first_column // each], words_tile)
                widen(words_tile, w_tile, scale, zero, first_row, first_column)
                tl.gemm(x_tile, w_tile, sums, transpose_B=forward, policy=policy, **packing)
            if forward and not packed:
                for i, j in tl.Parallel(block_m, block_n):
                    sums[i, j] *= scale[bx * block_n + j]
            if via_lds:
                y_tile = tl.alloc_shared((block_m, block_n), dtype)
                tl.copy(sums, y_tile)
                tl.copy(y_tile, y[by * block_m, bx * block_n])
            else:
                tl.copy(sums, y[by * block_m, bx * block_n])

    @tl.prim_func
    def dequant_gemm(
        x: tl.Tensor((m, summed), dtype),
        codes: tl.Tensor((n, words), "int32"),
        scale: tl.Tensor(scale_shape, "float32"),
        y: tl.Tensor((m, columns), dtype),
    ):
        whole(x, codes, scale, None, y)

    @tl.prim_func
    def dequant_gemm_zeros(
        x: tl.Tensor((m, summed), dtype),
        codes: tl.Tensor((n, words), "int32"),
        scale: tl.Tensor(scale_shape, "float32"),
        zero: tl.Tensor(scale_shape, "uint8"),
        y: tl.Tensor((m, columns), dtype),
    ):
        whole(x, codes, scale, zero, y)

    return dequant_gemm_zeros if zeros else dequant_gemm


def work(*, dtype_bytes, m, n, k, form="int4", group=128, zeros=False, layout="nt"):  # noqa: ARG001 - same for both
    """(flop, bytes to and from memory), each tensor once."""
    weight = n * k / 2 + n * k / group * (5 if zeros else 4) if form == "int4" else n * k + 4 * n
    return 2 * m * n * k, m * (n + k) * dtype_bytes + weight


def inputs(draw, *, m, n, k, form="int4", group=128, zeros=False, layout="nt"):
    """Give x, random codes (none of them not a number) and scales that make a weight of about 1 / sqrt(k)."""
    packed = form == "int4"
    codes = (draw(n, k // 2 if packed else -(-k // 4) * 4).double().abs() * 1e6).long() % 256
    if form == "e4m3fnuz":
        codes[codes == 0x80] = 0
    elif form == "e4m3fn":
        codes[codes % 128 == 127] = 0
    if not packed:
        codes[:, k:] = 0
    size = {"int8": 74, "int4": 4.6, "e4m3fn": 100, "e4m3fnuz": 50}[form]
    scale = (1 + draw(n, *((k // group,) if packed else ())).abs()).float() / size / k**0.5
    given = {"x": draw(m, k if layout == "nt" else n), "codes": codes.to(torch.uint8).view(torch.int32), "columns": k}
    given |= {"scale": scale, "form": form, "layout": layout}
    return given | (
        {"zero": (draw(n, k // group).double().abs() * 1e6).long().remainder(16).to(torch.uint8)} if zeros else {}
    )


def reference(x, codes, scale, columns, form, layout, zero=None):
    """The weight written out in plain torch, then one product, in the precision of x."""
    codes = codes.view(torch.uint8)
    if form == "int4":
        codes = torch.stack([codes & 15, codes >> 4], -1).view(*scale.shape, -1).to(x.dtype)
        w = codes - (8 if zero is None else zero.unsqueeze(-1).to(x.dtype))
        w = (w * scale.unsqueeze(-1)).flatten(1).to(x.dtype)
    else:
        kinds = {"int8": torch.int8, "e4m3fn": torch.float8_e4m3fn, "e4m3fnuz": torch.float8_e4m3fnuz}
        w = codes[:, :columns].view(kinds[form]).to(x.dtype) * scale.unsqueeze(-1)
        w = w.to(x.dtype)
    return {"y": x @ (w.mT if layout == "nt" else w)}
