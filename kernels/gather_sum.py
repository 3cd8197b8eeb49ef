"""Puts a mixture of experts' rows back in their tokens' order: y[token] = the sum of the rows of x that it was sent to.

Also the gradient of copying each token to its experts. Summed in float32, in the order of ``place``: no atomic adds,
so the same every time.
"""

KERNEL = {
    "op": "gather_sum",
    "summary": "y[tokens, width] = sum over t of x[place[token, t], width]",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"width": "columns of x, open when absent"},
    "typical": {"tokens": 4096, "top": 2, "width": 4096},
}
CASES = [
    {"build": {}, "run": {"tokens": 7, "top": 2, "width": 72}},
    {"build": {"width": 77}, "run": {"tokens": 5, "top": 3}},
    {"build": {"width": 1025}, "run": {"tokens": 1, "top": 1}},
]
TUNE = {"threads": [64, 128, 256], "vector": [4, 8]}  # what `amdflow kernels tune` tries


def build(tl, *, dtype, width=None, threads=128, vector=8):
    """One workgroup sums ``threads * vector`` columns of one token."""
    tokens, top, rows = tl.dynamic("tokens"), tl.dynamic("top"), tl.dynamic("rows")
    width, block = width or 8 * tl.dynamic("width8"), threads * vector

    @tl.prim_func
    def gather_sum(
        x: tl.Tensor((rows, width), dtype),
        place: tl.Tensor((tokens, top), "int32"),
        y: tl.Tensor((tokens, width), dtype),
    ):
        with tl.Kernel(tokens, tl.ceildiv(width, block), threads=threads) as (bx, by):
            row = tl.alloc_fragment((block,), "float32")
            total = tl.alloc_fragment((block,), "float32")
            tl.clear(total)
            for t in tl.serial(top):
                tl.copy(x[place[bx, t], by * block], row)
                for j in tl.Parallel(block):
                    total[j] += row[j]
            tl.copy(total, y[bx, by * block])

    return gather_sum


def work(*, dtype_bytes, tokens, top, width):
    """(flop, bytes to and from memory), each tensor once."""
    return tokens * top * width, tokens * (top + 1) * width * dtype_bytes + 4 * tokens * top


def inputs(draw, *, tokens, top, width):
    """Give x of (tokens * top, width), each row of which belongs to one token."""
    place = draw(tokens * top).argsort().view(tokens, top)
    return {"x": draw(tokens * top, width), "place": place.int()}


def reference(x, place):
    """The same in plain torch, in the precision of x."""
    return {"y": x[place.long()].sum(1)}
