"""Attention with a gradient, and the choice between it and torch's own by what the machine and the call are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .attention_varlen import attention_varlen, group, widened
from .classes import HEADS
from .define import operator
from .launch import NAMES, kernel, target_of
from .site import while_tracing

_MATRIX_UNITS = re.compile(r"cuda|gfx90a|gfx9[45]\w|gfx1[12]\w\w")


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = True, window: int | None = None) -> Tensor:
    """``softmax(q @ k.T / sqrt(head)) @ v`` for q of (batch, tokens, heads, head), k and v with as many heads or fewer.

    With ``window`` a token sees that many, itself the last of them; only where ``causal``. The gradient of q is added up
    atomically, so its last bits differ from run to run.
    """
    if window is None or window >= q.shape[1]:
        y: Tensor = _attention(q, k, v, causal)[0]
        return y
    batch, tokens = q.shape[:2]
    bounds = torch.arange(0, (batch + 1) * tokens, tokens, dtype=torch.int32, device=q.device)
    rows = [part.flatten(0, 1) for part in (q, k, v)]
    packed = attention_varlen(rows[0], rows[1], rows[2], bounds, bounds, causal=causal, window=window, longest=tokens)
    return packed.view(q.shape)


@dataclass(frozen=True)
class AttentionCall:
    """What an attention layer asks for: sizes, and what goes beyond a causal or full softmax."""

    device: str
    dtype: torch.dtype
    head: int
    tokens: int
    keys: int
    dropout: float = 0.0
    masked: bool = False
    window: int | None = None
    causal: bool = True
    packed: bool = False
    softcap: float | None = None
    scale: float | None = None


def choose_attention(call: AttentionCall) -> tuple[str, str]:
    """``amdflow`` or ``sdpa`` for such a call on this machine, and why."""
    reason = _obstacle(call) or _unfit(call)
    if reason:
        return "sdpa", reason
    target = _target_of(call.device)
    what = [
        {"cpu": "the CPU", "cuda": "CUDA"}.get(target, f"HIP on {target}"),
        NAMES[call.dtype],
        f"heads of {call.head}",
    ]
    if call.window is not None and call.window < call.tokens:
        what.append(f"a window of {call.window} tokens")
    return "amdflow", ", ".join(what + ["packed sequences"] * call.packed)


@while_tracing
def _target_of(device: str) -> str:
    return target_of(device)


def _obstacle(call: AttentionCall) -> str:
    """What the kernel does not compute."""
    found = {
        "a mask that is more than causal": call.masked,
        f"dropout of {call.dropout}": call.dropout > 0,
        f"a window of {call.window} tokens to both sides": call.window is not None and not call.causal,
        f"scores capped at {call.softcap}": call.softcap is not None,
        f"a scale of {call.scale}": call.scale is not None and abs(call.scale * call.head**0.5 - 1) > 1e-6,
        "tokens that look at more than themselves, as in generation": call.tokens != call.keys,
    }
    return next((words for words, wrong in found.items() if wrong), "")


def _unfit(call: AttentionCall) -> str:
    """What this machine has no kernel for."""
    if call.dtype not in NAMES:
        return f"values of {str(call.dtype).removeprefix('torch.')}"
    if call.device == "cpu":
        return ""
    if call.device != "cuda":
        return f"no kernels for the device {call.device}"
    if not _MATRIX_UNITS.match(_target_of(call.device)):
        return f"{_target_of(call.device)} has no matrix units that the kernel is written for"
    if call.dtype == torch.float32:
        return "float32, for which matrix units have no attention kernel"
    if call.head not in HEADS:
        return f"heads of {call.head}, not of {', '.join(map(str, HEADS))}"
    if torch.are_deterministic_algorithms_enabled():
        return "deterministic algorithms are asked for, and the gradient is added up atomically"
    return ""


def _run(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    y, lse = torch.empty_like(q), _per_row(q)
    if y.numel():
        kernel("attention", q, head=q.shape[-1], causal=causal)(q, k, v, y, lse)
    return y, lse


def _per_row(q: Tensor) -> Tensor:
    batch, tokens, heads, _head = q.shape
    return q.new_empty((batch, heads, tokens), dtype=torch.float32)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *parts, ctx.causal = inputs
    ctx.save_for_backward(*parts, *output)


def _gradients(ctx: Any, dy: Tensor, _lse: Any) -> tuple[Any, ...]:
    return (*_backward(dy, *ctx.saved_tensors, ctx.causal), None)


def _backward_run(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, y: Tensor, lse: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    if not q.numel():
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    q, k, v, dy = q.contiguous(), k.contiguous(), v.contiguous(), dy.contiguous()
    delta, head = torch.empty_like(lse), q.shape[-1]
    kernel("attention_delta", q, head=head)(y, dy, delta)
    sums, dq = torch.zeros_like(q, dtype=torch.float32), torch.empty_like(q)
    dk, dv = torch.empty_like(q), torch.empty_like(q)  # of each query head
    run = kernel("attention_backward", q, head=head, causal=causal)
    run(q, k, v, dy, widened(lse), widened(delta), sums, dk, dv)
    torch.mul(sums, head**-0.5, out=dq)
    return dq, group(dk, k), group(dv, v)


_attention = operator(
    "attention(Tensor q, Tensor k, Tensor v, bool causal) -> (Tensor, Tensor)",
    _run,
    fake=lambda q, _k, _v, _causal: (q.new_empty(q.shape), _per_row(q)),
    save=_save,
    backward=_gradients,
)
_backward = operator(
    "attention_backward(Tensor dy, Tensor q, Tensor k, Tensor v, Tensor y, Tensor lse, bool causal)"
    " -> (Tensor, Tensor, Tensor)",
    _backward_run,
    fake=lambda _dy, q, k, v, _y, _lse, _causal: (q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)),
)
