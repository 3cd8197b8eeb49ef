"""RoPE, the rotate-half kind of Llama and Qwen: pairs (d, d + head/2) of each head turned by the token's angle.

``cos`` and ``sin`` are given for each token in float32, so positions, scaling and packing are the caller's choice.
"""

import torch

KERNEL = {
    "op": "rope",
    "summary": "y[tokens, heads, head] = x rotated by cos/sin[tokens, head/2]",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"head": "width of a head, even"},
    "replaces": ["rope"],
}
CASES = [
    {"build": {"head": 64}, "run": {"tokens": 5, "heads": 9}},
    {"build": {"head": 128}, "run": {"tokens": 3, "heads": 4}},
    {"build": {"head": 6}, "run": {"tokens": 7, "heads": 1}},
]


def build(tl, *, dtype, head, block_h=16, threads=128):
    """One workgroup turns block_h heads of one token."""
    half = head // 2
    tokens, heads = tl.dynamic("tokens"), tl.dynamic("heads")

    @tl.prim_func
    def rope(
        x: tl.Tensor((tokens, heads, head), dtype),
        cos: tl.Tensor((tokens, half), "float32"),
        sin: tl.Tensor((tokens, half), "float32"),
        y: tl.Tensor((tokens, heads, head), dtype),
    ):
        with tl.Kernel(tokens, tl.ceildiv(heads, block_h), threads=threads) as (bx, by):
            low = tl.alloc_fragment((block_h, half), "float32")
            high = tl.alloc_fragment((block_h, half), "float32")
            turned = tl.alloc_fragment((block_h, half), "float32")
            tl.copy(x[bx, by * block_h, 0], low)
            tl.copy(x[bx, by * block_h, half], high)
            for i, d in tl.Parallel(block_h, half):
                turned[i, d] = low[i, d] * cos[bx, d] - high[i, d] * sin[bx, d]
                high[i, d] = high[i, d] * cos[bx, d] + low[i, d] * sin[bx, d]
            tl.copy(turned, y[bx, by * block_h, 0])
            tl.copy(high, y[bx, by * block_h, half])

    return rope


def inputs(draw, *, tokens, heads, head):
    """Give x of (tokens, heads, head) and the angles of positions 0, 7, 14..."""
    rates = 10000.0 ** (-torch.arange(head // 2, dtype=torch.float64) / (head // 2))
    angles = torch.outer(7 * torch.arange(tokens, dtype=torch.float64), rates)
    return {"x": draw(tokens, heads, head), "cos": angles.cos().float(), "sin": angles.sin().float()}


def reference(x, cos, sin):
    """The same in plain torch, in the precision of its arguments."""
    low, high = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return {"y": torch.cat([low * cos - high * sin, high * cos + low * sin], -1)}
