"""x times a factor that only the device knows, in place; where the factor is 1 nothing is read or written.

What the gradients of a fused loss need: they are ready before the loss's own gradient is known, and that is mostly 1.
"""

KERNEL = {
    "op": "scale_in_place",
    "summary": "x[groups, lanes] *= factor",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"lanes": "elements of a group: 8, or 1 for odd sizes"},
    "typical": {"groups": 4194304},
}
CASES = [
    {"build": {}, "run": {"groups": 577}},
    {"build": {"lanes": 1}, "run": {"groups": 77}},
    {"build": {"lanes": 1}, "run": {"groups": 1}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block": [1024, 2048, 4096, 8192],
    "threads": [128, 256, 512],
}


def build(tl, *, dtype, lanes=8, block=4096, threads=256):
    """One workgroup handles ``block`` elements."""
    groups, height = tl.dynamic("groups"), block // lanes

    @tl.prim_func
    def scale_in_place(x: tl.Tensor((groups, lanes), dtype), factor: tl.Tensor((1,), "float32")):
        with tl.Kernel(tl.ceildiv(groups, height), threads=threads) as bx:
            tile = tl.alloc_fragment((height, lanes), "float32")
            if factor[0] != 1.0:
                tl.copy(x[bx * height, 0], tile)
                for i, j in tl.Parallel(height, lanes):
                    tile[i, j] = tile[i, j] * factor[0]
                tl.copy(tile, x[bx * height, 0])

    return scale_in_place


def work(*, dtype_bytes, groups, lanes=8):
    """(flop, bytes to and from memory) where the factor is not 1: x is read and written."""
    return groups * lanes, 2 * groups * lanes * dtype_bytes + 4


def inputs(draw, *, groups, lanes=8):
    """Give x of (groups, lanes) and a factor: 1 for a single group."""
    return {"x": draw(groups, lanes), "factor": draw(1).float() if groups > 1 else draw(1).float() * 0 + 1}


def reference(x, factor):
    """The same in plain torch, in the precision of its arguments."""
    return {"x": x * factor}
