"""Cross-entropy of each row of logits; the gradient takes the logits' place. A row is read twice and written once.

``scale`` is what each row's loss counts (one over the number of rows that count, or 1 for a sum): it is in the
gradient, not in the loss. A row whose target is ``ignored`` has neither.
"""

import torch

KERNEL = {
    "op": "cross_entropy",
    "summary": "loss[rows] = logsumexp(x) - x[target]; x becomes (softmax(x) - onehot) * scale",
    "matrix": False,
    "dtypes": ["bfloat16", "float16", "float32"],
    "sizes": {"vocab": "columns of x"},
    "typical": {"rows": 8192},
    "replaces": ["cross_entropy"],
}
CASES = [
    {"build": {"vocab": 1000}, "run": {"rows": 5}},
    {"build": {"vocab": 4096}, "run": {"rows": 2}},
    {"build": {"vocab": 77}, "run": {"rows": 3}},
    {"build": {"vocab": 5001}, "run": {"rows": 3}},
]
TUNE = {  # what `amdflow kernels tune` tries
    "threads": [128, 256, 512, 1024],
    "vector": [4, 8, 16],
}


def build(tl, *, dtype, vocab, threads=512, vector=8):  # noqa: C901 - one kernel reads best in one piece
    """One workgroup takes one row; each thread keeps a maximum and a sum of its own until the row's end."""
    while threads > 64 and threads * vector >= 2 * vocab:
        threads //= 2
    block = threads * vector
    rows, steps = tl.dynamic("rows"), -(-vocab // block)
    log2e, ln2 = 1.4426950408889634, 0.6931471805599453

    @tl.macro
    def load(x, row, step, tile):
        for i, j in tl.Parallel(threads, vector):
            tile[i, j] = tl.if_then_else(
                step * block + i * vector + j < vocab,
                tl.cast(x[row, step * block + i * vector + j], "float32") * log2e,
                -1e30,
            )

    @tl.prim_func
    def cross_entropy(
        x: tl.Tensor((rows, vocab), dtype),
        target: tl.Tensor((rows,), "int64"),
        scale: tl.Tensor((1,), "float32"),
        loss: tl.Tensor((rows,), "float32"),
        ignored: tl.int32,
    ):
        with tl.Kernel(rows, threads=threads) as bx:
            tile = tl.alloc_fragment((threads, vector), "float32")
            peak = tl.alloc_fragment((threads,), "float32")
            before = tl.alloc_fragment((threads,), "float32")
            total = tl.alloc_fragment((threads,), "float32")
            hit = tl.alloc_fragment((1,), "float32")
            row_peak = tl.alloc_fragment((1,), "float32")
            row_total = tl.alloc_fragment((1,), "float32")
            goal = tl.cast(target[bx], "int32")
            hit[0] = tl.cast(x[bx, tl.if_then_else(goal == ignored, 0, goal)], "float32")  # before it is written over
            tl.fill(peak, -1e30)
            tl.fill(total, 0)
            for step in tl.serial(steps):
                load(x, bx, step, tile)
                tl.copy(peak, before)
                tl.reduce_max(tile, peak, dim=1, clear=False)
                for i in tl.Parallel(threads):
                    total[i] = total[i] * tl.exp2(before[i] - peak[i])
                for i, j in tl.Parallel(threads, vector):
                    tile[i, j] = tl.exp2(tile[i, j] - peak[i])
                tl.reduce_sum(tile, total, dim=1, clear=False)
            tl.reduce_max(peak, row_peak, dim=0)
            for i in tl.Parallel(threads):
                total[i] = total[i] * tl.exp2(peak[i] - row_peak[0])
            tl.reduce_sum(total, row_total, dim=0)
            loss[bx] = tl.if_then_else(goal == ignored, 0.0, (row_peak[0] + tl.log2(row_total[0])) * ln2 - hit[0])
            hit[0] = tl.if_then_else(goal == ignored, 0.0, scale[0])
            row_total[0] = hit[0] / row_total[0]
            for step in tl.serial(steps):
                load(x, bx, step, tile)
                for i, j in tl.Parallel(threads, vector):
                    tile[i, j] = tl.exp2(tile[i, j] - row_peak[0]) * row_total[0]
                for i, j in tl.Parallel(threads, vector):
                    if step * block + i * vector + j == goal:
                        tile[i, j] -= hit[0]
                for i, j in tl.Parallel(threads, vector):
                    if step * block + i * vector + j < vocab:
                        x[bx, step * block + i * vector + j] = tl.cast(tile[i, j], dtype)

    return cross_entropy


def work(*, dtype_bytes, rows, vocab):
    """(flop, bytes to and from memory): x is read and written, each once; exponentials count as one operation."""
    return 9 * rows * vocab, rows * (2 * vocab * dtype_bytes + 12)


def inputs(draw, *, rows, vocab):
    """Give logits of (rows, vocab) with some large, targets of which the last counts for nothing."""
    x = 3 * draw(rows, vocab)
    x[0, vocab // 2] += 30
    target = (torch.arange(rows, device=x.device) * 331 + vocab - 1) % vocab
    target[-1] = -100
    return {"x": x, "target": target, "scale": torch.full((1,), 0.5, device=x.device), "ignored": -100}


def reference(x, target, scale, ignored):
    """Torch's own loss and gradient, in the precision of x."""
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        loss = torch.nn.functional.cross_entropy(x, target, ignore_index=ignored, reduction="none")
        (dx,) = torch.autograd.grad(loss.sum() * scale.to(x.dtype), x)
    return {"loss": loss.detach(), "x": dx}
