"""The second half of a weight's gradient: y = the sum of the rows of x, which are float32, in the weight's type."""

KERNEL = {
    "op": "column_sum",
    "summary": "y[width] = sum of x[parts, width]",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"width": "columns of x"},
    "typical": {"parts": 256},
}
CASES = [
    {"build": {"width": 576}, "run": {"parts": 5}},
    {"build": {"width": 77}, "run": {"parts": 67}},
    {"build": {"width": 1}, "run": {"parts": 1}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_m": [8, 16, 32, 64],
    "block_n": [16, 32, 64, 128],
    "threads": [128, 256, 512],
}


def build(tl, *, dtype, width, block_m=32, block_n=32, threads=256):
    """One workgroup sums block_n columns, block_m rows at a time."""
    parts = tl.dynamic("parts")

    @tl.prim_func
    def column_sum(x: tl.Tensor((parts, width), "float32"), y: tl.Tensor((width,), dtype)):
        with tl.Kernel(tl.ceildiv(width, block_n), threads=threads) as bx:
            tile = tl.alloc_fragment((block_m, block_n), "float32")
            sums = tl.alloc_fragment((block_m, block_n), "float32")
            total = tl.alloc_fragment((block_n,), "float32")
            tl.clear(sums)
            for step in tl.serial(tl.ceildiv(parts, block_m)):
                tl.copy(x[step * block_m, bx * block_n], tile)
                for i, j in tl.Parallel(block_m, block_n):
                    sums[i, j] += tile[i, j]
            tl.reduce_sum(sums, total, dim=0)
            tl.copy(total, y[bx * block_n])

    return column_sum


def work(*, dtype_bytes, parts, width):
    """(flop, bytes to and from memory), each tensor once."""
    return parts * width, width * (4 * parts + dtype_bytes)


def inputs(draw, *, parts, width):
    """Give x of (parts, width) in float32."""
    return {"x": draw(parts, width).float()}


def reference(x):
    """The same in plain torch, in the precision of its arguments."""
    return {"y": x.sum(0)}
