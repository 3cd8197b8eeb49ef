"""Attention forward with an online softmax: y = softmax(q @ k.T / sqrt(head)) @ v, tensors of (batch, tokens, heads, head).

Fewer key/value heads than query heads (GQA, MQA) are read in place. Batch, tokens and both head counts are dynamic.
``lse`` of (batch, heads, tokens), the logarithm to the base 2 of the softmax's denominator, is what the backward pass
needs.
"""

import torch

LOG2_E = 1.4426950408889634
KERNEL = {
    "op": "attention",
    "summary": "y = softmax(q @ k.T * head**-0.5) @ v, causal or not, grouped heads",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {"head": "width of a head", "causal": "token i sees tokens 0..i only"},
    "typical": {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 8},
    "replaces": ["attention"],
    "fast_math": True,
    "slack": 2,  # the first rows are means of few values, and larger than the result's root mean square
}
CASES = [
    {"build": {"head": 64, "causal": True}, "run": {"batch": 1, "tokens": 128, "heads": 2, "kv_heads": 2}},
    {"build": {"head": 64, "causal": True}, "run": {"batch": 2, "tokens": 77, "heads": 6, "kv_heads": 2}},
    {"build": {"head": 32, "causal": False}, "run": {"batch": 1, "tokens": 45, "heads": 2, "kv_heads": 1}},
    {"build": {"head": 128, "causal": True}, "run": {"batch": 1, "tokens": 1, "heads": 1, "kv_heads": 1}},
    {"build": {"head": 96, "causal": True}, "run": {"batch": 1, "tokens": 33, "heads": 2, "kv_heads": 1}},
    {"build": {"head": 256, "causal": True}, "run": {"batch": 1, "tokens": 65, "heads": 2, "kv_heads": 1}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_m": [32, 64, 128],
    "block_n": [32, 64, 128],
    "threads": [128, 256, 512],
    "stages": [0, 1, 2],
    "k_pack": [1, 2],
    "via_lds": [False, True],
    "square": [False, True],
    "depth": [0, 16, 32],
    "y_via_lds": [False, True],
}


def build(  # noqa: C901 - one kernel reads best in one piece
    tl,
    *,
    dtype,
    head,
    causal=True,
    block_m=64,
    block_n=64,
    threads=256,
    stages=0,
    k_pack=1,
    via_lds=False,
    square=False,
    y_via_lds=False,
    depth=0,
):
    """One workgroup computes block_m rows of one head of y, block_n keys at a time.

    ``via_lds`` sends the probabilities through LDS to the second product: WMMA hands its result out in another layout
    than it takes its operands in. ``square`` shares a tile's columns out among the waves as well as its rows: fewer
    registers a wave, at the price of reductions through LDS; it needs ``via_lds``. ``y_via_lds`` hands the result to
    memory through LDS, in wide stores. Rows with most keys to see come first, so that the last workgroups are short.
    Products add up ``depth`` columns at a time in a loop that the compiler can't unroll (0: all at once); unrolled, it
    would load the operands of whole products ahead and then spill.
    """
    scale = head**-0.5 * LOG2_E  # the softmax runs on exp2
    batch, tokens, heads, kv_heads = (
        tl.dynamic("batch"),
        tl.dynamic("tokens"),
        tl.dynamic("heads"),
        tl.dynamic("kv_heads"),
    )
    packing = {} if k_pack == 1 else {"k_pack": k_pack}  # only the ROCm dialect knows it
    policy = tl.GemmWarpPolicy.Square if square else tl.GemmWarpPolicy.FullRow

    def once(value):
        """A quotient in a register: AMD's compiler would divide at each use, which takes dozens of instructions."""
        return value if hasattr(tl, "wgmma_gemm") else tl.alloc_var("int32", init=value)

    def visible(row, column):
        return row >= column if causal else column < tokens

    def is_edge(bx, step):
        return (step + 1) * block_n > (bx * block_m if causal else tokens)

    def key_blocks(bx):
        every = tl.ceildiv(tokens, block_n)
        return tl.min(every, tl.ceildiv((bx + 1) * block_m, block_n)) if causal else every

    @tl.macro
    def multiply_in_parts(a, b, sums, b_turned, parts):
        for part in tl.serial(tl.min(parts, parts * tokens)):
            columns = slice(part * depth, (part + 1) * depth)
            tl.gemm(
                a[:, columns],
                b[:, columns] if b_turned else b[columns, :],
                sums,
                transpose_B=b_turned,
                policy=policy,
            )

    def multiply(a, b, sums, *, b_turned=False):
        columns = int(b.shape[1 if b_turned else 0])
        if depth and columns > depth and columns % depth == 0 and a.scope() != "local.fragment":
            return multiply_in_parts(a, b, sums, b_turned, columns // depth)
        return tl.gemm(a, b, sums, transpose_B=b_turned, policy=policy, **packing)

    @tl.prim_func
    def attention(  # noqa: C901 - likewise
        q: tl.Tensor((batch, tokens, heads, head), dtype),
        k: tl.Tensor((batch, tokens, kv_heads, head), dtype),
        v: tl.Tensor((batch, tokens, kv_heads, head), dtype),
        y: tl.Tensor((batch, tokens, heads, head), dtype),
        lse: tl.Tensor((batch, heads, tokens), "float32"),
    ):
        with tl.Kernel(tl.ceildiv(tokens, block_m), heads, batch, threads=threads) as (short_first, by, bz):
            bx = tl.ceildiv(tokens, block_m) - 1 - short_first
            q_tile = tl.alloc_shared((block_m, head), dtype)
            k_tile = tl.alloc_shared((block_n, head), dtype)
            v_tile = tl.alloc_shared((block_n, head), dtype)
            scores = tl.alloc_fragment((block_m, block_n), "float32")
            weights = tl.alloc_fragment((block_m, block_n), dtype)
            sums = tl.alloc_fragment((block_m, head), "float32")
            peak = tl.alloc_fragment((block_m,), "float32")
            peak_before = tl.alloc_fragment((block_m,), "float32")
            shrink = tl.alloc_fragment((block_m,), "float32")
            block_total = tl.alloc_fragment((block_m,), "float32")
            total = tl.alloc_fragment((block_m,), "float32")
            if via_lds:
                weights_tile = tl.alloc_shared((block_m, block_n), dtype)
            kv = once(tl.truncdiv(by * kv_heads, heads))
            tl.copy(q[bz, bx * block_m : (bx + 1) * block_m, by, :], q_tile)
            tl.fill(sums, 0)
            tl.fill(total, 0)
            tl.fill(peak, -tl.infinity("float32"))
            for step in tl.Pipelined(key_blocks(bx), num_stages=stages):
                tl.copy(k[bz, step * block_n : (step + 1) * block_n, kv, :], k_tile)
                if is_edge(bx, step):
                    for i, j in tl.Parallel(block_m, block_n):
                        scores[i, j] = tl.if_then_else(
                            visible(bx * block_m + i, step * block_n + j), 0, -tl.infinity("float32")
                        )
                else:
                    tl.clear(scores)
                multiply(q_tile, k_tile, scores, b_turned=True)
                tl.copy(v[bz, step * block_n : (step + 1) * block_n, kv, :], v_tile)
                tl.copy(peak, peak_before)
                tl.reduce_max(scores, peak, dim=1, clear=False)
                for i in tl.Parallel(block_m):
                    peak[i] = tl.max(peak[i], peak_before[i])
                for i in tl.Parallel(block_m):
                    shrink[i] = tl.exp2(peak_before[i] * scale - peak[i] * scale)
                for i, j in tl.Parallel(block_m, block_n):
                    scores[i, j] = tl.exp2(scores[i, j] * scale - peak[i] * scale)
                tl.reduce_sum(scores, block_total, dim=1)
                for i in tl.Parallel(block_m):
                    total[i] = total[i] * shrink[i] + block_total[i]
                for i, j in tl.Parallel(block_m, head):
                    sums[i, j] *= shrink[i]
                if via_lds:
                    for i, j in tl.Parallel(block_m, block_n):
                        weights_tile[i, j] = tl.cast(scores[i, j], dtype)
                    multiply(weights_tile, v_tile, sums)
                else:
                    tl.copy(scores, weights)
                    multiply(weights, v_tile, sums)
            for i, j in tl.Parallel(block_m, head):
                sums[i, j] /= total[i]
            for i in tl.Parallel(block_m):
                total[i] = tl.log2(total[i]) + peak[i] * scale
            if y_via_lds:
                y_tile = tl.alloc_shared((block_m, head), dtype)
                tl.copy(sums, y_tile)
                tl.copy(y_tile, y[bz, bx * block_m : (bx + 1) * block_m, by, :])
            else:
                tl.copy(sums, y[bz, bx * block_m : (bx + 1) * block_m, by, :])
            tl.copy(total, lse[bz, by, bx * block_m : (bx + 1) * block_m])

    return attention


def work(*, dtype_bytes, batch, tokens, heads, kv_heads, head, causal=True):
    """(flop, bytes to and from memory): two products over the pairs of tokens, half of them when causal; each tensor once."""
    flop = 4 * batch * heads * tokens * tokens * head * (0.5 if causal else 1)
    return flop, batch * tokens * (2 * (heads + kv_heads) * head * dtype_bytes + 4 * heads)


def inputs(draw, *, batch, tokens, heads, kv_heads, head, causal):
    """Give q, k, v; ``causal`` is handed on to the reference."""
    return {
        "q": draw(batch, tokens, heads, head),
        "k": draw(batch, tokens, kv_heads, head),
        "v": draw(batch, tokens, kv_heads, head),
        "causal": causal,
    }


def reference(q, k, v, causal):
    """The same in plain torch, in the precision of its arguments; the scores are whole in memory."""
    k, v = (part.repeat_interleave(q.shape[2] // k.shape[2], dim=2) for part in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[3] ** -0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return {
        "y": torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v),
        "lse": torch.logsumexp(scores, -1) * LOG2_E,
    }
