"""RoPE for queries and keys in one launch: pairs of elements turned by the angle of the token's position.

``cos`` and ``sin`` are tables of ``table`` columns, so scaling (Llama 3, YaRN) is the table builder's choice. Token i
takes row i modulo ``period``, the number of tokens of a sequence; with ``gathered``, the row that ``position`` names.
``rotary`` elements of each head are turned, the rest is copied. ``direction`` is 1, or -1 for the gradient: the rotation
back.
"""

import torch

KERNEL = {
    "op": "rope",
    "summary": "q and k[tokens, heads, head] rotated by cos/sin of each token's position",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {
        "head": "width of a head, even",
        "rotary": "elements of a head that are turned; all when absent",
        "table": "columns of cos and sin: rotary / 2 when absent, or rotary, where each angle stands twice",
        "angles": "value type of cos and sin",
        "gathered": "positions are given, token by token",
        "interleaved": "pairs (0, 1), (2, 3)... as GPT-J has them, not (0, rotary / 2), (1, rotary / 2 + 1)...",
    },
    "typical": {"tokens": 8192, "q_heads": 32, "k_heads": 8},
    "replaces": ["rope"],
}
CASES = [
    {"build": {"head": 64}, "run": {"tokens": 5, "q_heads": 9, "k_heads": 3}},
    {"build": {"head": 128, "table": 128}, "run": {"tokens": 3, "q_heads": 4, "k_heads": 4}},
    {"build": {"head": 6, "gathered": True}, "run": {"tokens": 7, "q_heads": 1, "k_heads": 1}},
    {"build": {"head": 80, "rotary": 20}, "run": {"tokens": 3, "q_heads": 5, "k_heads": 1}},
    {"build": {"head": 64, "interleaved": True, "gathered": True}, "run": {"tokens": 3, "q_heads": 5, "k_heads": 1}},
    {
        "build": {"head": 24, "rotary": 8, "table": 8, "interleaved": True},
        "run": {"tokens": 3, "q_heads": 5, "k_heads": 2},
    },
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_h": [4, 8, 16, 32, 64],
    "threads": [64, 128, 256],
    "hold": [True, False],
}


def build(  # noqa: C901 - one kernel reads best in one piece
    tl,
    *,
    dtype,
    head,
    rotary=None,
    table=None,
    angles="float32",
    gathered=False,
    interleaved=False,
    block_h=16,
    threads=128,
    hold=True,
):
    """One workgroup turns block_h heads of one token, of q or of k. ``hold`` keeps the angles in registers for all heads."""
    rotary = rotary or head
    half = rotary // 2
    table = table or half
    tokens, places = tl.dynamic("tokens"), tl.dynamic("places")
    q_heads, k_heads = tl.dynamic("q_heads"), tl.dynamic("k_heads")

    @tl.macro
    def copy_rest(token, first, x, y):
        rest = tl.alloc_fragment((block_h, head - rotary), dtype)
        tl.copy(x[token, first, rotary], rest)
        tl.copy(rest, y[token, first, rotary])

    @tl.macro
    def turn_halves(token, place, first, x, y, cos, sin, direction):
        low = tl.alloc_fragment((block_h, half), "float32")
        high = tl.alloc_fragment((block_h, half), "float32")
        turned = tl.alloc_fragment((block_h, half), "float32")
        tl.copy(x[token, first, 0], low)
        tl.copy(x[token, first, half], high)
        if hold:
            c = tl.alloc_fragment((half,), "float32")
            s = tl.alloc_fragment((half,), "float32")
            tl.copy(cos[place, 0], c)
            tl.copy(sin[place, 0], s)
            for i, d in tl.Parallel(block_h, half):
                turned[i, d] = low[i, d] * c[d] - high[i, d] * (s[d] * direction)
                high[i, d] = high[i, d] * c[d] + low[i, d] * (s[d] * direction)
        else:
            for i, d in tl.Parallel(block_h, half):
                near, far = tl.cast(cos[place, d], "float32"), tl.cast(sin[place, d], "float32") * direction
                turned[i, d] = low[i, d] * near - high[i, d] * far
                high[i, d] = high[i, d] * near + low[i, d] * far
        tl.copy(turned, y[token, first, 0])
        tl.copy(high, y[token, first, half])

    @tl.macro
    def turn_pairs(token, place, first, x, y, cos, sin, direction):
        wide = table // half
        for i, d in tl.Parallel(block_h, half):
            if first + i < x.shape[1]:
                c = tl.cast(cos[place, d * wide], "float32")
                s = tl.cast(sin[place, d * wide], "float32") * direction
                even = tl.cast(x[token, first + i, 2 * d], "float32")
                odd = tl.cast(x[token, first + i, 2 * d + 1], "float32")
                y[token, first + i, 2 * d] = tl.cast(even * c - odd * s, dtype)
                y[token, first + i, 2 * d + 1] = tl.cast(odd * c + even * s, dtype)

    @tl.macro
    def turn(token, place, first, x, y, cos, sin, direction):
        if interleaved:
            turn_pairs(token, place, first, x, y, cos, sin, direction)
        else:
            turn_halves(token, place, first, x, y, cos, sin, direction)
        if rotary < head:
            copy_rest(token, first, x, y)

    @tl.macro
    def turn_both(token, by, place, q, k, cos, sin, q_turned, k_turned, direction):
        blocks = tl.ceildiv(q_heads, block_h)
        if by < blocks:
            turn(token, place, by * block_h, q, q_turned, cos, sin, direction)
        else:
            turn(token, place, (by - blocks) * block_h, k, k_turned, cos, sin, direction)

    @tl.prim_func
    def rope(
        q: tl.Tensor((tokens, q_heads, head), dtype),
        k: tl.Tensor((tokens, k_heads, head), dtype),
        cos: tl.Tensor((places, table), angles),
        sin: tl.Tensor((places, table), angles),
        q_turned: tl.Tensor((tokens, q_heads, head), dtype),
        k_turned: tl.Tensor((tokens, k_heads, head), dtype),
        period: tl.int32,
        direction: tl.float32,
    ):
        with tl.Kernel(tokens, tl.ceildiv(q_heads, block_h) + tl.ceildiv(k_heads, block_h), threads=threads) as (
            bx,
            by,
        ):
            turn_both(bx, by, tl.truncmod(bx, period), q, k, cos, sin, q_turned, k_turned, direction)

    @tl.prim_func
    def gathered_rope(
        q: tl.Tensor((tokens, q_heads, head), dtype),
        k: tl.Tensor((tokens, k_heads, head), dtype),
        cos: tl.Tensor((places, table), angles),
        sin: tl.Tensor((places, table), angles),
        position: tl.Tensor((tokens,), "int32"),
        q_turned: tl.Tensor((tokens, q_heads, head), dtype),
        k_turned: tl.Tensor((tokens, k_heads, head), dtype),
        direction: tl.float32,
    ):
        with tl.Kernel(tokens, tl.ceildiv(q_heads, block_h) + tl.ceildiv(k_heads, block_h), threads=threads) as (
            bx,
            by,
        ):
            turn_both(bx, by, position[bx], q, k, cos, sin, q_turned, k_turned, direction)

    return gathered_rope if gathered else rope


def work(
    *,
    dtype_bytes,
    tokens,
    q_heads,
    k_heads,
    head,
    rotary=None,
    table=None,
    angles="float32",
    gathered=False,
    interleaved=False,  # noqa: ARG001 - the same work in another order
):
    """(flop, bytes to and from memory), each tensor once; of the tables a row for each token."""
    rotary = rotary or head
    rows = 2 * (table or rotary // 2) * (4 if angles == "float32" else 2) + (4 if gathered else 0)
    heads = tokens * (q_heads + k_heads)
    return 3 * heads * rotary, 2 * heads * head * dtype_bytes + tokens * rows


def inputs(
    draw,
    *,
    tokens,
    q_heads,
    k_heads,
    head,
    rotary=None,
    table=None,
    angles="float32",
    gathered=False,
    interleaved=False,
):
    """Give q and k, a table of twice as many positions as tokens, and positions that are not in order."""
    half = (rotary or head) // 2
    rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.outer(torch.arange(2 * tokens, dtype=torch.float64), rates)
    if table not in (None, half):
        angle = angle.repeat_interleave(2, -1) if interleaved else torch.cat([angle, angle], -1)
    kind, period = getattr(torch, angles), tokens // 2 + 1
    position = (torch.arange(tokens) * 7 + 3) % (2 * tokens) if gathered else torch.arange(tokens) % period
    return {
        "q": draw(tokens, q_heads, head),
        "k": draw(tokens, k_heads, head),
        "cos": angle.cos().to(kind),
        "sin": angle.sin().to(kind),
        "position": position.int(),
        "period": period,
        "direction": -1.0 if tokens % 2 else 1.0,
        "interleaved": interleaved,
        "rotary": rotary or head,
    }


def reference(q, k, cos, sin, position, period, direction, interleaved, rotary):  # noqa: ARG001 - position says it
    """The same in plain torch, in the precision of its arguments."""
    half = rotary // 2
    step = 2 if interleaved and cos.shape[1] == rotary else 1
    place = position.long()
    c = cos[place][:, None, : half * step : step]
    s = sin[place][:, None, : half * step : step] * direction

    def turned(x):
        turning, rest = x[..., :rotary], x[..., rotary:]
        low, high = (turning[..., ::2], turning[..., 1::2]) if interleaved else turning.chunk(2, -1)
        pair = low * c - high * s, high * c + low * s
        both = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
        return torch.cat([both, rest], -1)

    return {"q_turned": turned(q), "k_turned": turned(k)}
