"""Weights of 8 or 4 bits written out in the type that is computed with; the forms and their layout are dequant_gemm's.

With many rows to multiply it is faster to widen a weight once than in every workgroup that reads it.
"""

import torch

KERNEL = {
    "op": "dequantize",
    "summary": "w[n, k] from int8, int4 or float8",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {
        "form": "int8, int4, e4m3fn or e4m3fnuz",
        "group": "columns that share a scale (int4): 32, 64 or 128",
        "zeros": "each group has a zero of its own (int4)",
        "n": "rows of w, open when absent",
        "k": "columns of w, open when absent",
    },
    "typical": {"n": 14336, "k": 4096},
}
CASES = [
    {"build": {"form": "int8", "n": 37, "k": 51}, "run": {}},
    {"build": {"form": "int4", "group": 32}, "run": {"n": 40, "k": 96}},
    {"build": {"form": "int4", "group": 64, "zeros": True, "n": 37, "k": 192}, "run": {}},
    {"build": {"form": "e4m3fn"}, "run": {"n": 40, "k": 72}},
    {"build": {"form": "e4m3fnuz", "n": 1, "k": 51}, "run": {}},
]
TUNE = {"block_m": [4, 8, 16], "block_n": [256, 512], "threads": [128, 256]}  # what `amdflow kernels tune` tries


def build(tl, *, dtype, form="int4", group=128, zeros=False, n=None, k=None, block_m=8, block_n=512, threads=256):
    """One workgroup widens block_m rows of block_n columns."""
    packed, n = form == "int4", n or 8 * tl.dynamic("n8")
    if packed:
        groups = k // group if k else tl.dynamic("groups")
        k, words, scale_shape = group * groups, group // 8 * groups, (n, groups)
    else:
        k, words, scale_shape = (k, -(-k // 4), (n,)) if k else (8 * tl.dynamic("k8"), 2 * tl.dynamic("k8"), (n,))
    each = 8 if packed else 4  # codes in a word

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
    def whole(codes, scale, zero, w):
        with tl.Kernel(tl.ceildiv(k, block_n), tl.ceildiv(n, block_m), threads=threads) as (bx, by):
            words_tile = tl.alloc_fragment((block_m, block_n // each), "int32")
            w_tile = tl.alloc_fragment((block_m, block_n // each, each), dtype)
            tl.copy(codes[by * block_m, bx * (block_n // each)], words_tile)
            for i, b, j in tl.Parallel(block_m, block_n // each, each):
                code = (words_tile[i, b] >> (j * (32 // each))) & (15 if packed else 255)
                row = by * block_m + i
                if packed:
                    place = (bx * block_n + b * each) // group
                    middle = 8.0 if zero is None else tl.cast(zero[row, place], "float32")
                    value = (tl.cast(code, "float32") - middle) * scale[row, place]
                else:
                    value = widened(code) * scale[row]
                w_tile[i, b, j] = tl.cast(value, dtype)
            for i, b, j in tl.Parallel(block_m, block_n // each, each):
                if by * block_m + i < n and bx * block_n + b * each + j < k:
                    w[by * block_m + i, bx * block_n + b * each + j] = w_tile[i, b, j]

    @tl.prim_func
    def dequantize(
        codes: tl.Tensor((n, words), "int32"), scale: tl.Tensor(scale_shape, "float32"), w: tl.Tensor((n, k), dtype)
    ):
        whole(codes, scale, None, w)

    @tl.prim_func
    def dequantize_zeros(
        codes: tl.Tensor((n, words), "int32"),
        scale: tl.Tensor(scale_shape, "float32"),
        zero: tl.Tensor(scale_shape, "uint8"),
        w: tl.Tensor((n, k), dtype),
    ):
        whole(codes, scale, zero, w)

    return dequantize_zeros if zeros else dequantize


def work(*, dtype_bytes, n, k, form="int4", group=128, zeros=False):
    """(flop, bytes to and from memory), each tensor once."""
    weight = n * k / 2 + n * k / group * (5 if zeros else 4) if form == "int4" else n * k + 4 * n
    return 2 * n * k, n * k * dtype_bytes + weight


def inputs(draw, *, n, k, form="int4", group=128, zeros=False):
    """Give random codes (none of them not a number) and scales that make a weight of about 1 / sqrt(k)."""
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
    given = {"codes": codes.to(torch.uint8).view(torch.int32), "scale": scale, "columns": k, "form": form}
    return given | (
        {"zero": (draw(n, k // group).double().abs() * 1e6).long().remainder(16).to(torch.uint8)} if zeros else {}
    )


def reference(codes, scale, columns, form, zero=None):
    """The weight in plain torch, in the precision of the scale."""
    codes = codes.view(torch.uint8)
    if form == "int4":
        codes = torch.stack([codes & 15, codes >> 4], -1).view(*scale.shape, -1).to(scale.dtype)
        w = codes - (8 if zero is None else zero.unsqueeze(-1).to(scale.dtype))
        w = (w * scale.unsqueeze(-1)).flatten(1)
    else:
        kinds = {"int8": torch.int8, "e4m3fn": torch.float8_e4m3fn, "e4m3fnuz": torch.float8_e4m3fnuz}
        w = codes[:, :columns].view(kinds[form]).to(scale.dtype) * scale.unsqueeze(-1)
    return {"w": w}
