"""Gradients of attention: dq (added up in float32), and dk, dv for each query head.

A workgroup keeps a block of keys and walks the queries that see it. What it learns of dq is added to memory atomically:
dq starts at zero and comes out scaled by sqrt(head), which the caller takes back together with the cast. Heads of one
group share their keys (GQA): the caller sums dk and dv over the group. ``lse`` is the forward pass's, ``delta`` the sum
of y * dy over each head, both of (batch, heads, tokens or more): on NVIDIA a row's length must be a multiple of 4.
"""

import torch

LOG2_E = 1.4426950408889634
KERNEL = {
    "op": "attention_backward",
    "summary": "dq, dk, dv of attention from dy, lse and delta",
    "matrix": True,
    "dtypes": ["bfloat16", "float16"],
    "sizes": {"head": "width of a head", "causal": "token i sees tokens 0..i only"},
    "typical": {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 8},
    "fast_math": True,
    "slack": 4,  # rounded gradients of probabilities: those of rows that see few keys are many times the rest
}
CASES = [
    {"build": {"head": 64, "causal": True}, "run": {"batch": 1, "tokens": 77, "heads": 4, "kv_heads": 2}},
    {"build": {"head": 32, "causal": False}, "run": {"batch": 2, "tokens": 45, "heads": 2, "kv_heads": 1}},
    {"build": {"head": 64, "causal": True}, "run": {"batch": 1, "tokens": 3, "heads": 1, "kv_heads": 1}},
    {"build": {"head": 96, "causal": True}, "run": {"batch": 1, "tokens": 33, "heads": 2, "kv_heads": 1}},
    {"build": {"head": 256, "causal": True}, "run": {"batch": 1, "tokens": 65, "heads": 1, "kv_heads": 1}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "block_kv": [32, 64, 128],
    "block_q": [16, 32, 64],
    "threads": [128, 256, 512],
    "stages": [0, 1, 2],
    "via_lds": [False, True],
    "dq_via_lds": [False, True],
    "overlap": [False, True],
    "depth": [0, 16, 32],
}


def build(  # noqa: C901 - one kernel reads best in one piece
    tl,
    *,
    dtype,
    head,
    causal=True,
    block_kv=64,
    block_q=32,
    threads=256,
    stages=0,
    via_lds=False,
    dq_via_lds=False,
    overlap=False,
    depth=0,
):
    """One workgroup takes block_kv keys of one query head, block_q queries at a time.

    ``via_lds`` sends the probabilities and their gradients through LDS to the products that follow (WMMA). With
    ``dq_via_lds`` a tile of dq is added to memory from LDS, in one bulk operation where the target has one. ``overlap``
    starts matrix products and waits for them later; only NVIDIA's dialect can say so, and it changes no number. Products
    add up ``depth`` columns at a time in a loop that the compiler can't unroll (0: all at once); unrolled, it would load
    the operands of whole products ahead and then spill.
    """
    scale = head**-0.5 * LOG2_E
    batch, tokens, places, heads, kv_heads = (
        tl.dynamic("batch"),
        tl.dynamic("tokens"),
        tl.dynamic("places"),
        tl.dynamic("heads"),
        tl.dynamic("kv_heads"),
    )
    start = tl.wgmma_gemm if overlap else tl.gemm
    bulk = {"use_tma": True} if overlap else {}
    rows_whole = tl.GemmWarpPolicy.FullRow

    def once(value):
        """A quotient in a register: AMD's compiler would divide at each use, which takes dozens of instructions."""
        return value if hasattr(tl, "wgmma_gemm") else tl.alloc_var("int32", init=value)

    def wait(pending):
        return tl.wait_wgmma(pending) if overlap else None

    def hold(tile):
        """Products read a tile until they are waited for: only here may its place be filled anew."""
        return tl.call_extern("handle", "static_cast<void>", tile[0, 0]) if overlap else None

    @tl.macro
    def multiply_in_parts(a, b, sums, a_turned, b_turned, clear, parts, policy):
        if clear:
            tl.clear(sums)
        for part in tl.serial(tl.min(parts, parts * tokens)):
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
        return start(a, b, sums, transpose_A=a_turned, transpose_B=b_turned, policy=policy, clear_accum=clear)

    @tl.prim_func
    def attention_backward(  # noqa: C901 - likewise
        q: tl.Tensor((batch, tokens, heads, head), dtype),
        k: tl.Tensor((batch, tokens, kv_heads, head), dtype),
        v: tl.Tensor((batch, tokens, kv_heads, head), dtype),
        dy: tl.Tensor((batch, tokens, heads, head), dtype),
        lse: tl.Tensor((batch, heads, places), "float32"),
        delta: tl.Tensor((batch, heads, places), "float32"),
        dq: tl.Tensor((batch, tokens, heads, head), "float32"),
        dk: tl.Tensor((batch, tokens, heads, head), dtype),
        dv: tl.Tensor((batch, tokens, heads, head), dtype),
    ):
        with tl.Kernel(heads, tl.ceildiv(tokens, block_kv), batch, threads=threads) as (by, bx, bz):
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
            tl.copy(k[bz, bx * block_kv : (bx + 1) * block_kv, kv, :], k_tile)
            tl.copy(v[bz, bx * block_kv : (bx + 1) * block_kv, kv, :], v_tile)
            tl.clear(dv_sums)
            tl.clear(dk_sums)
            first = tl.floordiv(bx * block_kv, block_q) if causal else 0
            for step in tl.Pipelined(first, tl.ceildiv(tokens, block_q), num_stages=stages):
                tl.copy(q[bz, step * block_q : (step + 1) * block_q, by, :], q_tile)
                multiply(k_tile, q_tile, p, b_turned=True, clear=True)
                tl.copy(dy[bz, step * block_q : (step + 1) * block_q, by, :], dy_tile)
                multiply(v_tile, dy_tile, ds, b_turned=True, clear=True)
                wait(1)
                tl.copy(lse[bz, by, step * block_q : (step + 1) * block_q], lse_row)
                for i, j in tl.Parallel(block_kv, block_q):
                    p[i, j] = tl.exp2(p[i, j] * scale - lse_row[j])
                if causal:  # noqa: SIM102 - known while building, what follows only on the card
                    if step * block_q < (bx + 1) * block_kv:
                        for i, j in tl.Parallel(block_kv, block_q):
                            p[i, j] = tl.if_then_else(bx * block_kv + i <= step * block_q + j, p[i, j], 0)
                wait(0)
                tl.copy(p, p_low)
                multiply(p_low, dy_tile, dv_sums)
                tl.copy(delta[bz, by, step * block_q : (step + 1) * block_q], delta_row)
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
                wait(0)
                hold(q_tile)
                hold(dy_tile)
                if dq_via_lds:
                    dq_tile = tl.alloc_shared((block_q, head), "float32")
                    tl.copy(dq_part, dq_tile)
                    tl.atomic_add(dq[bz, step * block_q : (step + 1) * block_q, by, :], dq_tile, **bulk)
                else:
                    for i, j in tl.Parallel(block_q, head):
                        if step * block_q + i < tokens:
                            tl.atomic_add(dq[bz, step * block_q + i, by, j], dq_part[i, j])
            for i, j in tl.Parallel(block_kv, head):
                dk_sums[i, j] *= head**-0.5
            tl.copy(dv_sums, dv[bz, bx * block_kv : (bx + 1) * block_kv, by, :])
            tl.copy(dk_sums, dk[bz, bx * block_kv : (bx + 1) * block_kv, by, :])

    return attention_backward


def work(*, dtype_bytes, batch, tokens, heads, kv_heads, head, causal=True):
    """(flop, bytes to and from memory): five products where forward has two; each tensor once, dq read and written."""
    flop = 2.5 * 4 * batch * heads * tokens * tokens * head * (0.5 if causal else 1)
    values = 2 * (heads + kv_heads) + 2 * heads  # q and dy, k and v; dk and dv
    return flop, batch * tokens * (values * head * dtype_bytes + 8 * heads * head + 8 * heads)


def inputs(draw, *, batch, tokens, heads, kv_heads, head, causal):
    """Give q, k, v, dy and what the forward pass leaves."""
    found = {
        "q": draw(batch, tokens, heads, head),
        "k": draw(batch, tokens, kv_heads, head),
        "v": draw(batch, tokens, kv_heads, head),
        "dy": draw(batch, tokens, heads, head),
    }
    scores = _scores(found["q"], found["k"], causal)
    y = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), _each_head(found["v"], heads))
    return found | {
        "lse": _widened(torch.logsumexp(scores, -1) * LOG2_E),
        "delta": _widened((y * found["dy"]).sum(-1).transpose(1, 2)),
        "dq": torch.zeros(batch, tokens, heads, head, dtype=torch.float32),
        "causal": causal,
    }


def reference(q, k, v, dy, lse, delta, dq, causal):
    """The same in plain torch, in the precision of its arguments; the probabilities are whole in memory."""
    tokens, heads = q.shape[1:3]
    p = torch.exp2(_scores(q, k, causal) * LOG2_E - lse[..., :tokens, None])
    dp = torch.einsum("bqhd,bkhd->bhqk", dy, _each_head(v, heads))
    ds = p * (dp - delta[..., :tokens, None])
    return {
        "dq": dq + torch.einsum("bhqk,bkhd->bqhd", ds, _each_head(k, heads)),
        "dk": torch.einsum("bhqk,bqhd->bkhd", ds, q) * q.shape[3] ** -0.5,
        "dv": torch.einsum("bhqk,bqhd->bkhd", p, dy),
    }


def _widened(rows):
    return torch.nn.functional.pad(rows.float(), (0, -rows.shape[-1] % 4))


def _each_head(part, heads):
    return part.repeat_interleave(heads // part.shape[2], dim=2)


def _scores(q, k, causal):
    scores = torch.einsum("bqhd,bkhd->bhqk", q, _each_head(k, q.shape[2])) * q.shape[3] ** -0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return scores
