"""Runs in the kernels environment; prints ``name: result`` lines that test_kernel_operators.py looks at."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import tilelang_ops as ops
import torch
from tilelang_ops import launch, loss, on_cpu
from torch.nn import functional

EPS = 1e-5


def compare(name: str, ours: Callable[..., Any], reference: Callable[..., Any], *inputs: torch.Tensor) -> None:
    """Print the worst error of any result or gradient, relative to the largest element, against float64."""
    narrow = [value.clone().requires_grad_() for value in inputs]
    wide = [value.double().requires_grad_() for value in inputs]
    mine, right = _tuple(ours(*narrow)), _tuple(reference(*wide))
    arriving = [torch.randn_like(part) for part in right]
    found = torch.autograd.grad(mine, narrow, [part.float() for part in arriving])
    expected = torch.autograd.grad(right, wide, arriving)
    pairs = zip((*mine, *found), (*right, *expected), strict=True)
    worst = max(float(((a.double() - b).abs().max() / b.abs().max()).detach()) for a, b in pairs)
    print(f"{name}: {worst}", flush=True)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * (w + 0.5)


def norms() -> None:
    x, r, w, b = torch.randn(2, 5, 77), torch.randn(2, 5, 77), torch.randn(77), torch.randn(77)
    compare("rms_norm", lambda x, w: ops.rms_norm(x, w, EPS, 0.5), _norm, x, w)

    def both(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, s = ops.add_rms_norm(x, r, w, EPS, 0.5)
        return y, s

    compare("add_rms_norm", both, lambda x, r, w: (_norm(x + r, w), x + r), x, r, w)
    compare("add_rms_norm, one of the results used", lambda *v: both(*v)[0], lambda x, r, w: _norm(x + r, w), x, r, w)
    compare(
        "layer_norm",
        lambda x, w, b: ops.layer_norm(x, w, b, EPS),
        lambda x, w, b: functional.layer_norm(x, (77,), w, b, EPS),
        x,
        w,
        b,
    )


def gated() -> None:
    g, u = 3 * torch.randn(3, 5, 77), torch.randn(3, 5, 77)
    compare("swiglu", ops.swiglu, lambda g, u: functional.silu(g) * u, g, u)
    for name, act, flavour in (("geglu tanh", "gelu_tanh", "tanh"), ("geglu erf", "gelu", "none")):
        compare(
            name,
            lambda g, u, act=act: ops.swiglu(g, u, act),
            lambda g, u, flavour=flavour: functional.gelu(g, approximate=flavour) * u,
            g,
            u,
        )

    w = torch.randn(6, 77)
    compare(
        "swiglu_linear",
        ops.swiglu_linear,
        lambda g, u, w: functional.linear(functional.silu(g) * u, w),
        g,
        u,
        w,
    )
    frozen = w.double()
    compare(
        "swiglu_linear, weight frozen",
        lambda g, u: ops.swiglu_linear(g, u, w),
        lambda g, u: functional.linear(functional.silu(g) * u, frozen),
        g,
        u,
    )


def rope() -> None:
    q, k = torch.randn(2, 5, 4, 16), torch.randn(2, 5, 2, 16)
    cos, sin = ops.rope_tables(9, 16)

    def turned(x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        c, s = cos.double()[place][..., None, :], sin.double()[place][..., None, :]
        low, high = x.chunk(2, -1)
        return torch.cat([low * c - high * s, high * c + low * s], -1)

    first, given = torch.arange(5), torch.tensor([[0, 1, 2, 3, 4], [4, 8, 6, 0, 2]])
    compare("rope", lambda q, k: ops.rope(q, k, cos, sin), lambda q, k: (turned(q, first), turned(k, first)), q, k)
    compare(
        "rope at given positions",
        lambda q, k: ops.rope(q, k, cos, sin, given),
        lambda q, k: (turned(q, given), turned(k, given)),
        q,
        k,
    )
    few_cos, few_sin = ops.rope_tables(5, 8)

    def pairs(x: torch.Tensor) -> torch.Tensor:
        c, s = few_cos.double()[:, None], few_sin.double()[:, None]
        even, odd = x[..., :8:2], x[..., 1:8:2]
        return torch.cat([torch.stack([even * c - odd * s, odd * c + even * s], -1).flatten(-2), x[..., 8:]], -1)

    compare(
        "partial interleaved rope",
        lambda q, k: ops.rope(q, k, few_cos, few_sin, rotary=8, interleaved=True),
        lambda q, k: (pairs(q), pairs(k)),
        q,
        k,
    )
    scaled = {
        "linear": {"rope_type": "linear", "factor": 4.0},
        "llama3": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "yarn": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.0},
    }
    plain = ops.rope_tables(2, 64)[1][1].asin()
    for name, scaling in scaled.items():
        angle = ops.rope_tables(2, 64, scaling={**scaling, "original_max_position_embeddings": 2048})[1][1].asin()
        print(f"tables {name}: {float(angle[0] / plain[0])} {float(angle[-1] / plain[-1])}", flush=True)


def losses() -> None:
    x, w, t = torch.randn(300, 32) / 3, torch.randn(101, 32), torch.randint(0, 101, (300,))
    t[3], t[280:] = -100, -100

    def reference(x: torch.Tensor, w: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
        return functional.cross_entropy(x @ w.T, t, reduction=reduction)

    compare("linear_cross_entropy mean", lambda x, w: ops.linear_cross_entropy(x, w, t), reference, x, w)
    compare(
        "linear_cross_entropy sum",
        lambda x, w: ops.linear_cross_entropy(x, w, t, reduction="sum"),
        lambda x, w: reference(x, w, "sum"),
        x,
        w,
    )
    assert loss.rows_at_a_time(300, 32, 101) == 256
    compare(
        "linear_cross_entropy in parts",
        lambda x, w: 3 * ops.linear_cross_entropy(x, w, t),
        lambda x, w: 3 * reference(x, w),
        x,
        w,
    )
    compare("frozen weight", lambda x: ops.linear_cross_entropy(x, w, t), lambda x: reference(x, w.double()), x)


def behaviour() -> None:
    x, w, r = torch.randn(3, 64, requires_grad=True), torch.ones(64, requires_grad=True), torch.randn(3, 64)

    def layer(x: torch.Tensor) -> torch.Tensor:
        y, s = ops.add_rms_norm(x, r, w, EPS)
        return ops.swiglu(y, s)

    print(f"graph breaks: {torch._dynamo.explain(layer)(x).graph_break_count}", flush=True)
    torch.library.opcheck(torch.ops.amdflow.rms_norm.default, (x, w, EPS, 0.0))
    torch.library.opcheck(torch.ops.amdflow.swiglu.default, (x, r.clone().requires_grad_(), "silu"))
    print("opcheck: passed", flush=True)
    lower, on_cpu.lower_cpu = on_cpu.lower_cpu, None
    launch._kernel.cache_clear()  # as in another process, which must not lower anything
    layer(x)
    print("kernels found again: True", flush=True)
    on_cpu.lower_cpu = lower
    counts = []
    for _ in range(4):  # the first call may still see what the checks above left to the garbage collector
        layer(x).sum().backward()
        x.grad = w.grad = None
        gc.collect()
        counts.append(sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects()))
    print(f"tensors left over: {counts[-1] - counts[1]}", flush=True)
    try:
        ops.rms_norm(x.double(), w.double(), EPS)
    except TypeError as error:
        print(f"refusal: {error}", flush=True)


def model() -> None:
    """A Llama of transformers', which lies in another environment: three steps with the operators off and on."""
    sys.path.append(sys.argv[1])
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=112,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    words = torch.randint(0, 128, (2, 19))
    results = {}
    for choice in ({}, {"rms_norm": "all", "swiglu": r"layers\.[01]\."}):
        torch.manual_seed(1)
        llama = LlamaForCausalLM(config)
        replaced = ops.replace_modules(llama, choice)
        optimizer = torch.optim.AdamW(llama.parameters(), lr=0.01)
        losses = []
        for _ in range(3):
            step = llama(input_ids=words, labels=words).loss
            optimizer.zero_grad()
            step.backward()
            optimizer.step()
            losses.append(float(step.detach()))
        results[bool(choice)] = losses
    off, on = results[False], results[True]
    print(
        f"losses off and on: {max(abs(a - b) / a for a, b in zip(off, on, strict=True))} {off[-1] / off[0]}", flush=True
    )
    print(f"replaced: {' '.join(f'{op}={len(names)}' for op, names in replaced.modules.items())}", flush=True)
    print(f"calls of each: {sorted({n for counts in replaced.calls.values() for n in counts.values()})}", flush=True)
    for choice in ({"rms_norm": "encoder"}, {"softmax": "all"}):
        try:
            ops.replace_modules(llama, choice)
        except ValueError as error:
            print(f"{next(iter(choice))} refused: {error}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    for part in (norms, gated, rope, losses, behaviour, model):
        part()
