"""What attention's backward pass needs of the result: the sum of y * dy over each head, in float32.

``y`` and ``dy`` are (batch, tokens, heads, head) as they lie in memory, ``delta`` is (batch, heads, tokens).
"""

KERNEL = {
    "op": "attention_delta",
    "summary": "delta[batch, heads, tokens] = sum(y * dy) over a head",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"head": "width of a head"},
    "typical": {"batch": 4, "tokens": 4096, "heads": 32},
}
CASES = [
    {"build": {"head": 64}, "run": {"batch": 2, "tokens": 77, "heads": 3}},
    {"build": {"head": 96}, "run": {"batch": 1, "tokens": 3, "heads": 1}},
]


def build(tl, *, dtype, head, block_m=64, threads=128):
    """One workgroup takes block_m tokens of one head."""
    batch, tokens, heads = tl.dynamic("batch"), tl.dynamic("tokens"), tl.dynamic("heads")

    @tl.prim_func
    def attention_delta(
        y: tl.Tensor((batch, tokens, heads, head), dtype),
        dy: tl.Tensor((batch, tokens, heads, head), dtype),
        delta: tl.Tensor((batch, heads, tokens), "float32"),
    ):
        with tl.Kernel(tl.ceildiv(tokens, block_m), heads, batch, threads=threads) as (bx, by, bz):
            products = tl.alloc_fragment((block_m, head), "float32")
            slopes = tl.alloc_fragment((block_m, head), "float32")
            sums = tl.alloc_fragment((block_m,), "float32")
            tl.copy(y[bz, bx * block_m : (bx + 1) * block_m, by, :], products)
            tl.copy(dy[bz, bx * block_m : (bx + 1) * block_m, by, :], slopes)
            for i, j in tl.Parallel(block_m, head):
                products[i, j] *= slopes[i, j]
            tl.reduce_sum(products, sums, dim=1)
            tl.copy(sums, delta[bz, by, bx * block_m : (bx + 1) * block_m])

    return attention_delta


def work(*, dtype_bytes, batch, tokens, heads, head):
    """(flop, bytes to and from memory), each tensor once."""
    rows = batch * tokens * heads
    return 2 * rows * head, rows * (2 * head * dtype_bytes + 4)


def inputs(draw, *, batch, tokens, heads, head):
    """Give y and dy of (batch, tokens, heads, head)."""
    return {"y": draw(batch, tokens, heads, head), "dy": draw(batch, tokens, heads, head)}


def reference(y, dy):
    """The same in plain torch, in the precision of its arguments."""
    return {"delta": (y * dy).sum(-1).transpose(1, 2)}
