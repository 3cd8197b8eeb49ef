"""Gradients of attention_varlen: dq (added up in float32), and dk, dv for each query head, packed as q, k and v are.

The work is shared out as in attention_backward: dq starts at zero and comes out scaled by sqrt(head), the caller sums dk
and dv over a group's heads; ``lse`` is the forward pass's, ``delta`` the sum of y * dy over each head, both
(heads, tokens or more): on NVIDIA a row's length must be a multiple of 4.
``longest`` is the most keys a sequence has (more does no harm), ``window`` as in the forward pass.

With ``sparse`` the mask is listed the other way round: queries[layer, key block, 0 .. counts[layer, key block] - 1] are the
query blocks that see a key block (``block_lists`` of the mask with its last two dimensions exchanged).
"""

import torch

LOG2_E = 1.4426950408889634
NO_WINDOW = 2**30
KERNEL = {
    "op": "attention_varlen_backward",
    "summary": "dq, dk, dv of attention_varlen from dy, lse and delta",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {
        "head": "width of a head",
        "causal": "no token sees later ones",
        "sparse": "tokens of a block of the mask, 0 without one",
    },
    "typical": {"queries": [8192, 4096, 2048, 2048], "heads": 32, "kv_heads": 8, "window": 1024},
    "fast_math": True,
    "slack": 4,  # as attention_backward's
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
    "block_kv": [32, 64, 128],
    "block_q": [16, 32, 64],
    "threads": [128, 256, 512],
    "stages": [0, 1, 2],
    "via_lds": [False, True],
    "dq_in_bulk": [False, True],
    "depth": [0, 16, 32],
}


def build(  # noqa: C901 - one kernel reads best in one piece
    tl,
    *,
    dtype,
    head,
    causal=True,
    sparse=0,
    block_kv=64,
    block_q=32,
    threads=256,
    stages=0,
    via_lds=False,
    dq_in_bulk=False,
    depth=0,
):
    """One workgroup takes block_kv keys of one query head and sequence, block_q queries at a time.

    Settings are attention_backward's; ``dq_in_bulk`` adds a tile of dq to memory with NVIDIA's bulk copies. block_kv and
    block_q must divide ``sparse``, or be larger: then its blocks are the tiles.
    """
    if sparse:
        block_kv, block_q = min(block_kv, sparse), min(block_q, sparse)
    if sparse % block_kv or sparse % block_q:
        raise ValueError(f"blocks of {sparse} tokens are no multiple of tiles of {block_kv} and {block_q}")
    scale = head**-0.5 * LOG2_E
    q_tokens, places, kv_tokens, heads, kv_heads = (
        tl.dynamic("q_tokens"),
        tl.dynamic("places"),
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
    rows_whole = tl.GemmWarpPolicy.FullRow
    tiles_each = sparse // block_q  # of a block of the mask

    def once(value):
        """A quotient in a register: AMD's compiler would divide at each use, which takes dozens of instructions."""
        return value if hasattr(tl, "wgmma_gemm") else tl.alloc_var("int32", init=value)

    def ahead(window):
        """How many keys behind its own place a query sees."""
        return 0 if causal else window - 1

    @tl.macro
    def multiply_in_parts(a, b, sums, a_turned, b_turned, clear, parts, policy):
        if clear:
            tl.clear(sums)
        for part in tl.serial(tl.min(parts, parts * heads)):
            columns = slice(part * depth, (part + 1) * depth)
            tl.gemm(
                a[columns, :] if a_turned else a[:, columns],
                b[:, columns] if b_turned else b[columns, :],
                sums,
                transpose_A=a_turned,
                transpose_B=b_turned,
                policy=policy,
            )

    def multiply(a, b, sums, *, a_turned=False, b_turned=False, clear=False, policy=rows_whole):
        columns = int(b.shape[1 if b_turned else 0])
        if depth and columns > depth and columns % depth == 0 and a.scope() != "local.fragment":
            return multiply_in_parts(a, b, sums, a_turned, b_turned, clear, columns // depth, policy)
        return tl.gemm(a, b, sums, transpose_A=a_turned, transpose_B=b_turned, policy=policy, clear_accum=clear)

    @tl.macro
    def differentiate(grid, q, k, v, dy, lse, delta, cu_q, cu_kv, dq, dk, dv, window, listed, counts):  # noqa: C901 - likewise
        by = grid[0]
        q_first, kv_first = cu_q[grid[2]], cu_kv[grid[2]]
        queries, keys = cu_q[grid[2] + 1] - q_first, cu_kv[grid[2] + 1] - kv_first
        left = grid[1] * block_kv
        place = left + queries - keys  # of the first key, among the queries
        k_tile = tl.alloc_shared((block_kv, head), dtype)
        v_tile = tl.alloc_shared((block_kv, head), dtype)
        q_tile = tl.alloc_shared((block_q, head), dtype)
        dy_tile = tl.alloc_shared((block_q, head), dtype)
        ds_tile = tl.alloc_shared((block_kv, block_q), dtype)
        lse_row = tl.alloc_shared((block_q,), "float32")
        delta_row = tl.alloc_shared((block_q,), "float32")
        p = tl.alloc_fragment((block_kv, block_q), "float32")
        ds = tl.alloc_fragment((block_kv, block_q), "float32")
        dv_sums = tl.alloc_fragment((block_kv, head), "float32")
        dk_sums = tl.alloc_fragment((block_kv, head), "float32")
        dq_part = tl.alloc_fragment((block_q, head), "float32")
        if via_lds:
            p_low = tl.alloc_shared((block_kv, block_q), dtype)
        else:
            p_low = tl.alloc_fragment((block_kv, block_q), dtype)
            ds_low = tl.alloc_fragment((block_kv, block_q), dtype)
        kv = once(tl.truncdiv(by * kv_heads, heads))
        tl.copy(k[kv_first + left : kv_first + left + block_kv, kv, :], k_tile)
        tl.copy(v[kv_first + left : kv_first + left + block_kv, kv, :], v_tile)
        tl.clear(dv_sums)
        tl.clear(dk_sums)
        if listed is not None:
            first = 0
            steps = tl.if_then_else(left < keys, counts[tl.truncmod(by, layers), left // sparse] * tiles_each, 0)
        else:
            first = tl.max(0, place - ahead(window)) // block_q
            beyond = tl.max(0, tl.min(queries, place + block_kv + window - 1))
            steps = tl.if_then_else(left < keys, tl.max(0, tl.ceildiv(beyond, block_q) - first), 0)
        for step in tl.Pipelined(steps, num_stages=stages):
            if listed is not None:
                at = (
                    listed[tl.truncmod(by, layers), left // sparse, step // tiles_each] * tiles_each + step % tiles_each
                ) * block_q
            else:
                at = (first + step) * block_q
            tl.copy(q[q_first + at : q_first + at + block_q, by, :], q_tile)
            multiply(k_tile, q_tile, p, b_turned=True, clear=True)
            tl.copy(dy[q_first + at : q_first + at + block_q, by, :], dy_tile)
            multiply(v_tile, dy_tile, ds, b_turned=True, clear=True)
            tl.copy(lse[by, q_first + at : q_first + at + block_q], lse_row)
            for i, j in tl.Parallel(block_kv, block_q):
                p[i, j] = tl.exp2(p[i, j] * scale - lse_row[j])
            if (
                keys < left + block_kv
                or tl.min(queries, place + window) < at + block_q  # the first key is too old for the last queries
                or at < place + block_kv - 1 - ahead(window)  # or the last one too new for the first
            ):
                for i, j in tl.Parallel(block_kv, block_q):
                    p[i, j] = tl.if_then_else(
                        left + i < keys
                        and at + j < queries
                        and at + j >= place + i - ahead(window)
                        and at + j < place + i + window,
                        p[i, j],
                        0,
                    )
            tl.copy(p, p_low)
            multiply(p_low, dy_tile, dv_sums)
            tl.copy(delta[by, q_first + at : q_first + at + block_q], delta_row)
            if via_lds:
                for i, j in tl.Parallel(block_kv, block_q):
                    ds_tile[i, j] = tl.cast(p[i, j] * (ds[i, j] - delta_row[j]), dtype)
                multiply(ds_tile, q_tile, dk_sums)
            else:
                for i, j in tl.Parallel(block_kv, block_q):
                    ds_low[i, j] = tl.cast(p[i, j] * (ds[i, j] - delta_row[j]), dtype)
                multiply(ds_low, q_tile, dk_sums)
                tl.copy(ds_low, ds_tile)
            multiply(ds_tile, k_tile, dq_part, a_turned=True, clear=True, policy=tl.GemmWarpPolicy.Square)
            if dq_in_bulk:  # what belongs to the next sequence's rows is 0
                dq_tile = tl.alloc_shared((block_q, head), "float32")
                tl.copy(dq_part, dq_tile)
                tl.atomic_add(dq[q_first + at : q_first + at + block_q, by, :], dq_tile, use_tma=True)
            else:
                for i, j in tl.Parallel(block_q, head):
                    if at + i < queries:
                        tl.atomic_add(dq[q_first + at + i, by, j], dq_part[i, j])
        for i, j in tl.Parallel(block_kv, head):
            dk_sums[i, j] *= head**-0.5
        for i, j in tl.Parallel(block_kv, head):
            if left + i < keys:
                dv[kv_first + left + i, by, j] = dv_sums[i, j]
        for i, j in tl.Parallel(block_kv, head):
            if left + i < keys:
                dk[kv_first + left + i, by, j] = dk_sums[i, j]

    @tl.prim_func
    def attention_varlen_backward(
        q: tl.Tensor((q_tokens, heads, head), dtype),
        k: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        v: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        dy: tl.Tensor((q_tokens, heads, head), dtype),
        lse: tl.Tensor((heads, places), "float32"),
        delta: tl.Tensor((heads, places), "float32"),
        cu_q: tl.Tensor((bounds,), "int32"),
        cu_kv: tl.Tensor((bounds,), "int32"),
        dq: tl.Tensor((q_tokens, heads, head), "float32"),
        dk: tl.Tensor((kv_tokens, heads, head), dtype),
        dv: tl.Tensor((kv_tokens, heads, head), dtype),
        longest: tl.int32,
        window: tl.int32,
    ):
        with tl.Kernel(heads, tl.ceildiv(longest, block_kv), bounds - 1, threads=threads) as grid:
            differentiate(grid, q, k, v, dy, lse, delta, cu_q, cu_kv, dq, dk, dv, window, None, None)

    if not sparse:
        return attention_varlen_backward

    @tl.prim_func
    def attention_varlen_backward_sparse(
        q: tl.Tensor((q_tokens, heads, head), dtype),
        k: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        v: tl.Tensor((kv_tokens, kv_heads, head), dtype),
        dy: tl.Tensor((q_tokens, heads, head), dtype),
        lse: tl.Tensor((heads, places), "float32"),
        delta: tl.Tensor((heads, places), "float32"),
        cu_q: tl.Tensor((bounds,), "int32"),
        cu_kv: tl.Tensor((bounds,), "int32"),
        listed: tl.Tensor((layers, kv_blocks, q_blocks), "int32"),
        counts: tl.Tensor((layers, kv_blocks), "int32"),
        dq: tl.Tensor((q_tokens, heads, head), "float32"),
        dk: tl.Tensor((kv_tokens, heads, head), dtype),
        dv: tl.Tensor((kv_tokens, heads, head), dtype),
        longest: tl.int32,
        window: tl.int32,
    ):
        with tl.Kernel(heads, tl.ceildiv(longest, block_kv), bounds - 1, threads=threads) as grid:
            differentiate(grid, q, k, v, dy, lse, delta, cu_q, cu_kv, dq, dk, dv, window, listed, counts)

    return attention_varlen_backward_sparse


def work(*, dtype_bytes, queries, heads, kv_heads, head, causal=True, keys=None, window=NO_WINDOW, **_mask):
    """(flop, bytes to and from memory): five products over the visible pairs of tokens; each tensor once, dq read and written."""
    keys = keys or queries
    pairs = sum(_visible_pairs(m, n, causal, window) for m, n in zip(queries, keys, strict=True))
    values = sum(queries) * 2 * heads + sum(keys) * 2 * (kv_heads + heads)
    return 10 * pairs * heads * head, values * head * dtype_bytes + sum(queries) * heads * 8 * (head + 1)


def inputs(draw, *, queries, heads, kv_heads, head, causal=True, sparse=0, keys=None, window=NO_WINDOW, layers=1):
    """Give q, k, v, dy, what the forward pass leaves, and about half of the blocks of a mask, a row and a column empty."""
    keys = keys or queries
    found = {
        "q": draw(sum(queries), heads, head),
        "k": draw(sum(keys), kv_heads, head),
        "v": draw(sum(keys), kv_heads, head),
        "dy": draw(sum(queries), heads, head),
        "cu_q": bounds_of(queries),
        "cu_kv": bounds_of(keys),
        "causal": causal,
        "window": window,
        "sparse": sparse,
    }
    if sparse:
        mask = draw(layers, -(-max(queries) // sparse), -(-max(keys) // sparse)) > 0
        mask[:, 1], mask[:, :, 1] = False, False
        found["listed"], found["counts"] = block_lists(mask.transpose(1, 2))
    places = -(-sum(queries) // 4) * 4
    lse, delta = torch.zeros(heads, places), torch.zeros(heads, places)
    for m, n, scores in _sequences(**{name: value for name, value in found.items() if name not in ("v", "dy")}):
        y = torch.einsum("hqk,khd->qhd", scores.softmax(-1).nan_to_num(0), _each_head(found["v"][n], heads))
        lse[:, m] = (torch.logsumexp(scores, -1) * LOG2_E).float()
        delta[:, m] = (y * found["dy"][m]).sum(-1).T.float()
    zeros = torch.zeros(sum(queries), heads, head, dtype=torch.float32)
    return found | {"lse": lse, "delta": delta, "dq": zeros, "longest": max(keys)}


def reference(q, k, v, dy, lse, delta, cu_q, cu_kv, dq, longest, window, causal, sparse, listed=None, counts=None):
    """The same in plain torch, in the precision of its arguments; a sequence's probabilities are whole in memory."""
    del longest
    heads, dq = q.shape[1], dq.clone()
    dk, dv = (q.new_zeros(k.shape[0], heads, k.shape[2]) for _ in range(2))
    for m, n, scores in _sequences(q, k, cu_q, cu_kv, causal, window, sparse, listed, counts):
        p = torch.exp2(scores * LOG2_E - lse[:, m, None]).nan_to_num(0)
        ds = p * (torch.einsum("qhd,khd->hqk", dy[m], _each_head(v[n], heads)) - delta[:, m, None])
        dq[m] += torch.einsum("hqk,khd->qhd", ds, _each_head(k[n], heads))
        dk[n] = torch.einsum("hqk,qhd->khd", ds, q[m]) * q.shape[2] ** -0.5
        dv[n] = torch.einsum("hqk,qhd->khd", p, dy[m])
    return {"dq": dq, "dk": dk, "dv": dv}


def block_lists(mask):
    """(blocks, counts) of a boolean mask (layers, blocks, blocks): int32, the true ones of each row in order."""
    order = mask.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
    return order.int().contiguous(), mask.sum(-1, dtype=torch.int32).contiguous()


def bounds_of(lengths):
    """Where sequences of these lengths begin, and where the last one ends."""
    return torch.tensor([0, *lengths]).cumsum(0).int()


def _sequences(q, k, cu_q, cu_kv, causal, window, sparse, listed=None, counts=None):
    """Rows of queries, rows of keys and scores of each sequence, -inf where nothing is seen."""
    for sequence in range(len(cu_q) - 1):
        m, n = slice(*cu_q[sequence : sequence + 2].tolist()), slice(*cu_kv[sequence : sequence + 2].tolist())
        seen = _visible(m.stop - m.start, n.stop - n.start, causal, window, q.device)
        if sparse:
            within = torch.arange(listed.shape[-1], device=q.device) < counts[..., None]
            mask = torch.zeros_like(within).scatter(-1, listed.long(), within).transpose(1, 2)
            wide = mask.repeat_interleave(sparse, 1).repeat_interleave(sparse, 2)
            seen = seen & wide[:, : seen.shape[0], : seen.shape[1]]
        scores = torch.einsum("qhd,khd->hqk", q[m], _each_head(k[n], q.shape[1])) * q.shape[2] ** -0.5
        yield m, n, scores.masked_fill(~seen, -torch.inf)


def _each_head(part, heads):
    return part.repeat_interleave(heads // part.shape[1], dim=1)


def _visible(queries, keys, causal, window, device=None):
    place = torch.arange(queries, device=device)[:, None] + keys - queries
    key = torch.arange(keys, device=device)
    return (key > place - window) & (key <= place + (0 if causal else window - 1))


def _visible_pairs(queries, keys, causal, window):
    place = torch.arange(queries) + keys - queries
    beyond = (place + (1 if causal else window)).clamp(max=keys)
    return int((beyond - (place + 1 - window).clamp(min=0)).clamp(min=0).sum())
