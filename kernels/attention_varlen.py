"""Attention forward over sequences of any lengths, packed one behind the other: (tokens of all, heads, head), no padding.

``cu_q`` and ``cu_kv`` (int32, one more than there are sequences) say where each sequence's queries and keys begin; a batch
of equal lengths is a packed one whose numbers are equidistant. Query i of a sequence stands at the key i + keys - queries:
the last query sees the last key, as when the first keys come from a cache. It sees the ``window`` keys that end there
(``causal``), or also the window - 1 keys behind it; a window of 2**30 is none. ``longest`` is the most queries a sequence
has (more does no harm). lse is (heads, tokens), to the base 2. A query that sees nothing gets y = 0 and lse = -inf. Rows behind
the last sequence are not written.

With ``sparse`` a sequence's queries and keys are taken in blocks of that many tokens, and only pairs of blocks that are
listed are visited, the rest is not even loaded: blocks[layer, query block, 0 .. counts[layer, query block] - 1] are numbers
of key blocks; there is one layer for all heads or one for each. ``block_lists`` makes them of a mask. What causality or the
window hides in a listed block stays hidden.
"""

import torch

LOG2_E = 1.4426950408889634
NO_WINDOW = 2**30
LOWEST = -(2.0**100)  # below every score, and finite: where nothing is visible, differences of peaks are 0 and not NaN
KERNEL = {
    "op": "attention_varlen",
    "summary": "attention over packed sequences, with a sliding window or only listed blocks",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {
        "head": "width of a head",
        "causal": "no token sees later ones",
        "sparse": "tokens of a block of the mask, 0 without one",
    },
    "typical": {"queries": [8192, 4096, 2048, 2048], "heads": 32, "kv_heads": 8, "window": 1024},
    "replaces": ["attention"],
    "fast_math": True,
    "slack": 2,  # as attention's
}
CASES = [
    {"build": {"head": 64}, "run": {"queries": [0, 1, 33, 77], "heads": 4, "kv_heads": 2}},
    {"build": {"head": 64}, "run": {"queries": [40, 100], "heads": 2, "kv_heads": 1, "window": 7}},
    {"build": {"head": 64}, "run": {"queries": [1, 5, 40, 3], "keys": [70, 5, 33, 0], "heads": 2, "kv_heads": 2}},
    {"build": {"head": 32, "causal": False}, "run": {"queries": [9, 64], "keys": [33, 1], "heads": 2, "kv_heads": 1}},
    {"build": {"head": 32, "causal": False}, "run": {"queries": [77], "heads": 1, "kv_heads": 1, "window": 20}},
    {
        "build": {"head": 64, "sparse": 64},
        "run": {"queries": [300, 65], "heads": 4, "kv_heads": 2, "layers": 4, "window": 150},
    },
    {
        "build": {"head": 32, "causal": False, "sparse": 64},
        "run": {"queries": [130], "keys": [257], "heads": 2, "kv_heads": 2, "layers": 1},
    },
]

TUNE = {  # what `amdflow kernels tune` tries
    "block_m": [32, 64, 128],
    "block_n": [32, 64, 128],
    "threads": [128, 256],
    "stages": [0, 1, 2],
    "k_pack": [1, 2],
    "via_lds": [False, True],
    "square": [False, True],
    "depth": [0, 16, 32],
}


def build(  # noqa: C901 - one kernel reads best in one piece
    tl,
    *,
    dtype,
    head,
    causal=True,
    sparse=0,
    block_m=64,
    block_n=64,
    threads=256,
    stages=0,
    k_pack=1,
    via_lds=False,
    square=False,
    depth=0,
):
    """One workgroup computes block_m rows of one head of one sequence, block_n keys at a time; settings as attention's.

    block_m and block_n must divide ``sparse``, or be larger: then its blocks are the tiles.
    """
    if sparse:
        block_m, block_n = min(block_m, sparse), min(block_n, sparse)
    if sparse % block_m or sparse % block_n:
        raise ValueError(f"blocks of {sparse} tokens are no multiple of tiles of {block_m} and {block_n}")
    scale = head**-0.5 * LOG2_E
    q_tokens, kv_tokens, heads, kv_heads = (
        tl.dynamic("q_tokens"),
        tl.dynamic("kv_tokens"),
        tl.dynamic("heads"),
        tl.dynamic("kv_heads"),
    )
    bounds, layers, q_blocks, kv_blocks = (
        tl.dynamic("bounds"),
        tl.dynamic("layers"),
        tl.dynamic("q_blocks"),
        tl.dynamic("kv_blocks"),
    )
    packing = {} if k_pack == 1 else {"k_pack": k_pack}
    policy = tl.GemmWarpPolicy.Square if square else tl.GemmWarpPolicy.FullRow
    tiles_each = sparse // block_n  # of a block of the mask

    def once(value):
        """A quotient in a register: AMD's compiler would divide at each use, which takes dozens of instructions."""
        return value if hasattr(tl, "wgmma_gemm") else tl.alloc_var("int32", init=value)

    def ahead(window):
        """How many keys behind its own place a query sees."""
        return 0 if causal else window - 1

    @tl.macro
    def multiply_in_parts(a, b, sums, b_turned, parts):
        for part in tl.serial(tl.min(parts, parts * heads)):
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

    @tl.macro
    def attend(grid, q, k, v, cu_q, cu_kv, y, lse, window, blocks, counts):  # noqa: C901 - likewise
        by = grid[1]
        q_first, kv_first = cu_q[grid[2]], cu_kv[grid[2]]
        queries, keys = cu_q[grid[2] + 1] - q_first, cu_kv[grid[2] + 1] - kv_first
        top = grid[0] * block_m
        place = top + keys - queries  # of the first row, among the keys
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
        tl.copy(q[q_first + top : q_first + top + block_m, by, :], q_tile)
        tl.fill(sums, 0)
        tl.fill(total, 0)
        tl.fill(peak, LOWEST)
        if blocks is not None:
            first = 0
            steps = tl.if_then_else(top < queries, counts[tl.truncmod(by, layers), top // sparse] * tiles_each, 0)
        else:
            first = tl.max(0, place + 1 - window) // block_n
            beyond = tl.max(0, tl.min(keys, tl.min(place + block_m, keys) + ahead(window)))
            steps = tl.if_then_else(top < queries, tl.max(0, tl.ceildiv(beyond, block_n) - first), 0)
        for step in tl.Pipelined(steps, num_stages=stages):
            if blocks is not None:
                at = (
                    blocks[tl.truncmod(by, layers), top // sparse, step // tiles_each] * tiles_each + step % tiles_each
                ) * block_n
            else:
                at = (first + step) * block_n
            tl.copy(k[kv_first + at : kv_first + at + block_n, kv, :], k_tile)
            if (
                tl.min(keys, place + 1 + ahead(window)) < at + block_n  # hidden behind the first row's keys
                or at < place + block_m - window  # or before the last row's
            ):
                for i, j in tl.Parallel(block_m, block_n):
                    scores[i, j] = tl.if_then_else(
                        at + j < keys and at + j <= place + i + ahead(window) and at + j > place + i - window,
                        0,
                        -tl.infinity("float32"),
                    )
            else:
                tl.clear(scores)
            multiply(q_tile, k_tile, scores, b_turned=True)
            tl.copy(v[kv_first + at : kv_first + at + block_n, kv, :], v_tile)
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
            sums[i, j] /= tl.max(total[i], 2.0**-100)
        for i in tl.Parallel(block_m):
            total[i] = tl.log2(total[i]) + peak[i] * scale
        tl.copy(sums, q_tile)
        for i, j in tl.Parallel(block_m, head):
            if top + i < queries:
                y[q_first + top + i, by, j] = q_tile[i, j]
        for i in tl.Parallel(block_m):
            if top + i < queries:
                lse[by, q_first + top + i] = total[i]

    @tl.prim_func
    def attention_varlen(
        q: tl.Tensor((q_tokens, heads, head), dtype),
        k: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        v: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        cu_q: tl.Tensor((bounds,), "int32"),
        cu_kv: tl.Tensor((bounds,), "int32"),
        y: tl.Tensor((q_tokens, heads, head), dtype),
        lse: tl.Tensor((heads, q_tokens), "float32"),
        longest: tl.int32,
        window: tl.int32,
    ):
        with tl.Kernel(tl.ceildiv(longest, block_m), heads, bounds - 1, threads=threads) as grid:
            attend(grid, q, k, v, cu_q, cu_kv, y, lse, window, None, None)

    if not sparse:
        return attention_varlen

    @tl.prim_func
    def attention_varlen_sparse(
        q: tl.Tensor((q_tokens, heads, head), dtype),
        k: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        v: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        cu_q: tl.Tensor((bounds,), "int32"),
        cu_kv: tl.Tensor((bounds,), "int32"),
        blocks: tl.Tensor((layers, q_blocks, kv_blocks), "int32"),
        counts: tl.Tensor((layers, q_blocks), "int32"),
        y: tl.Tensor((q_tokens, heads, head), dtype),
        lse: tl.Tensor((heads, q_tokens), "float32"),
        longest: tl.int32,
        window: tl.int32,
    ):
        with tl.Kernel(tl.ceildiv(longest, block_m), heads, bounds - 1, threads=threads) as grid:
            attend(grid, q, k, v, cu_q, cu_kv, y, lse, window, blocks, counts)

    return attention_varlen_sparse


def work(*, dtype_bytes, queries, heads, kv_heads, head, causal=True, keys=None, window=NO_WINDOW, **_mask):
    """(flop, bytes to and from memory): two products over the visible pairs of tokens, blocks all listed; each tensor once."""
    keys = keys or queries
    pairs = sum(_visible_pairs(m, n, causal, window) for m, n in zip(queries, keys, strict=True))
    moved = 2 * (sum(queries) * heads + sum(keys) * kv_heads) * head * dtype_bytes + 4 * sum(queries) * heads
    return 4 * pairs * heads * head, moved


def inputs(draw, *, queries, heads, kv_heads, head, causal=True, sparse=0, keys=None, window=NO_WINDOW, layers=1):
    """Give q, k, v, where the sequences begin, and about half of the blocks of a mask; of each layer one row stays empty."""
    keys = keys or queries
    found = {
        "q": draw(sum(queries), heads, head),
        "k": draw(sum(keys), kv_heads, head),
        "v": draw(sum(keys), kv_heads, head),
        "cu_q": bounds_of(queries),
        "cu_kv": bounds_of(keys),
    }
    if sparse:
        mask = draw(layers, -(-max(queries) // sparse), -(-max(keys) // sparse)) > 0
        mask[:, 1] = False
        found["blocks"], found["counts"] = block_lists(mask)
    return found | {"longest": max(queries), "window": window, "causal": causal, "sparse": sparse}


def reference(q, k, v, cu_q, cu_kv, longest, window, causal, sparse, blocks=None, counts=None):
    """The same in plain torch, in the precision of its arguments; a sequence's scores are whole in memory."""
    del longest
    y, lse = torch.zeros_like(q), q.new_zeros(q.shape[1], q.shape[0])
    k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for part in (k, v))
    for sequence in range(len(cu_q) - 1):
        m, n = slice(*cu_q[sequence : sequence + 2].tolist()), slice(*cu_kv[sequence : sequence + 2].tolist())
        seen = _visible(m.stop - m.start, n.stop - n.start, causal, window, q.device)
        if sparse:
            mask = block_mask(blocks, counts)
            wide = mask.repeat_interleave(sparse, 1).repeat_interleave(sparse, 2)
            seen = seen & wide[:, : seen.shape[0], : seen.shape[1]]
        scores = torch.einsum("qhd,khd->hqk", q[m], k[n]) * q.shape[2] ** -0.5
        scores = scores.masked_fill(~seen, -torch.inf)
        y[m] = torch.einsum("hqk,khd->qhd", scores.softmax(-1).nan_to_num(0), v[n])
        lse[:, m] = torch.logsumexp(scores, -1) * LOG2_E
    return {"y": y, "lse": lse}


def block_lists(mask):
    """(blocks, counts) of a boolean mask (layers, query blocks, key blocks): int32, the true ones of each row in order."""
    order = mask.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
    return order.int().contiguous(), mask.sum(-1, dtype=torch.int32).contiguous()


def block_mask(blocks, counts):
    """The mask that ``block_lists`` made them of."""
    listed = torch.arange(blocks.shape[-1], device=blocks.device) < counts[..., None]
    return torch.zeros_like(listed).scatter(-1, blocks.long(), listed)


def bounds_of(lengths):
    """Where sequences of these lengths begin, and where the last one ends."""
    return torch.tensor([0, *lengths]).cumsum(0).int()


def _visible(queries, keys, causal, window, device=None):
    place = torch.arange(queries, device=device)[:, None] + keys - queries
    key = torch.arange(keys, device=device)
    return (key > place - window) & (key <= place + (0 if causal else window - 1))


def _visible_pairs(queries, keys, causal, window):
    place = torch.arange(queries) + keys - queries
    beyond = (place + (1 if causal else window)).clamp(max=keys)
    return int((beyond - (place + 1 - window).clamp(min=0)).clamp(min=0).sum())
