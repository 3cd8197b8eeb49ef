"""Runs in the kernels environment; prints ``name: result`` lines that test_kernel_matrix.py looks at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from tilelang_ops import dequant, moe
from tilelang_ops.linear import Activation, linear
from torch import Tensor
from torch.nn import functional

EXPERTS, HIDDEN, WIDTH = 5, 40, 24


def compare(name: str, ours: Callable[..., Any], reference: Callable[..., Any], *inputs: Tensor) -> None:
    """Print the worst error of the result or a gradient, relative to the largest element, against float64."""
    narrow = [value.clone().requires_grad_() for value in inputs]
    wide = [value.double().requires_grad_() for value in inputs]
    mine, right = ours(*narrow), reference(*wide)
    arriving = torch.randn_like(right)
    found = torch.autograd.grad(mine, narrow, arriving.float())
    expected = torch.autograd.grad(right, wide, arriving)
    pairs = zip((mine, *found), (right, *expected), strict=True)
    worst = max(float(((a.double() - b).abs().max() / b.abs().max()).detach()) for a, b in pairs)
    print(f"{name}: {worst}", flush=True)


def linears() -> None:
    x, w, b = torch.randn(2, 5, 51), torch.randn(37, 51) / 7, torch.randn(37)
    activations: dict[Activation, Callable[[Tensor], Tensor]] = {
        "none": lambda z: z,
        "relu": torch.relu,
        "gelu": functional.gelu,
    }
    for act, activated in activations.items():
        compare(
            f"linear {act}",
            lambda x, w, b, act=act: linear(x, w, b, act),
            lambda x, w, b, activated=activated: activated(functional.linear(x, w, b)),
            x,
            w,
            b,
        )
    compare("linear without bias", linear, functional.linear, x, w)
    compare("linear, frozen weight", lambda x: linear(x, w), lambda x: x @ w.double().T, x)
    with torch.autocast("cpu", torch.bfloat16):
        y = linear(x, w, b)
    print(f"autocast: {y.dtype} {float((y - functional.linear(x, w, b)).abs().max().detach()) < 0.05}", flush=True)
    rows = torch.randn(0, 51, requires_grad=True)
    (dw,) = torch.autograd.grad(linear(rows, w.requires_grad_()).sum(), w)
    print(f"no rows: {float(dw.abs().max())}", flush=True)


def mixture(x: Tensor, index: Tensor, weights: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """Token by token."""
    rows = []
    for token in range(x.shape[0]):
        total = torch.zeros_like(x[token])
        for expert, weight in zip(index[token].tolist(), weights[token], strict=True):
            if expert < gate_up.shape[0]:
                gate, up = (gate_up[expert] @ x[token]).chunk(2)
                total = total + weight * (down[expert] @ (functional.silu(gate) * up))
        rows.append(total)
    return torch.stack(rows)


def mixtures() -> None:
    x, weights = torch.randn(19, HIDDEN), torch.rand(19, 2)
    gate_up, down = torch.randn(EXPERTS, 2 * WIDTH, HIDDEN) / 6, torch.randn(EXPERTS, HIDDEN, WIDTH) / 5
    spread = torch.stack([torch.randperm(EXPERTS - 1)[:2] for _ in range(19)])  # the last one gets nothing
    indices = {
        "an expert without tokens": spread,
        "one expert with all": torch.full((19, 2), 3),
        "experts elsewhere": torch.where(spread == 1, EXPERTS, spread),
    }
    for name, index in indices.items():
        compare(
            f"mixture, {name}",
            lambda x, s, g, d, index=index: moe.moe_experts(x, index, s, g, d),
            lambda x, s, g, d, index=index: mixture(x, index, s, g, d),
            x,
            weights,
            gate_up,
            down,
        )
    logits = torch.randn(19, EXPERTS)

    def routed(x: Tensor, logits: Tensor) -> Tensor:
        index, weights = moe.moe_route(logits, 2)
        return moe.moe_experts(x, index, weights, gate_up, down)

    def written_out(x: Tensor, logits: Tensor) -> Tensor:
        weights, index = logits.softmax(-1).topk(2, dim=-1)
        return mixture(x, index, weights / weights.sum(-1, keepdim=True), gate_up.double(), down.double())

    compare("mixture, routed", routed, written_out, x, logits)
    print(f"graph breaks: {torch._dynamo.explain(routed)(x, logits).graph_break_count}", flush=True)


def experts_of_models() -> None:
    """Experts of transformers', which lies in another environment, with the operator off and on."""
    sys.path.append(sys.argv[1])
    from tilelang_ops import replace_modules
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=64,
        hidden_size=HIDDEN,
        intermediate_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        num_local_experts=EXPERTS,
    )
    words = torch.randint(0, 64, (2, 9))
    results = []
    for choice in ({}, {"moe": "all"}):
        torch.manual_seed(1)
        model = MixtralForCausalLM(config)
        replaced = replace_modules(model, choice)
        loss = model(input_ids=words, labels=words).loss
        loss.backward()
        slopes = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        results.append([loss.detach(), *slopes])
    worst = max(float((a - b).abs().max() / a.abs().max()) for a, b in zip(*results, strict=True))
    print(f"a model's experts off and on: {worst}", flush=True)
    print(f"experts called: {sorted(replaced.calls['moe'].values())}", flush=True)


def quantized() -> None:
    weight, x = torch.randn(37, 192), torch.randn(3, 5, 192)
    weight[5] = 0
    made = {
        "int8": dequant.quantize_int8(weight),
        "int4": dequant.quantize_int4(weight, 64),
        "int4 with zeros": dequant.quantize_int4(weight + 0.5, 64, zeros=True),
        "e4m3fn": dequant.quantize_float8(weight, "e4m3fn"),
        "e4m3fnuz": dequant.quantize_float8(weight, "e4m3fnuz"),
    }
    for name, few in made.items():
        wide = few.dequantize(torch.float64)
        off = (wide - (weight + 0.5 if "zeros" in name else weight)).abs()
        if name.startswith("int"):
            allowed = few.scale.repeat_interleave(few.group, 1) / 2 if "4" in name else few.scale.unsqueeze(1) / 2
        else:
            smallest = 2.0**-9 if name == "e4m3fn" else 2.0**-10
            allowed = torch.maximum(weight.abs() / 16, few.scale.unsqueeze(1) * smallest / 2)
        print(f"{name} off by: {float((off / allowed).max())}", flush=True)
        if name in ("int8", "int4 with zeros", "e4m3fnuz"):
            compare(
                f"dequant_linear {name}",
                lambda x, few=few: dequant.dequant_linear(x, few),
                lambda x, wide=wide: x @ wide.T,
                x,
            )
    many, few = torch.randn(dequant.MANY_ROWS, 192), made["int4"]
    compare(
        "dequant_linear of many rows",
        lambda x: dequant.dequant_linear(x, few),
        lambda x: x @ few.dequantize(torch.float64).T,
        many,
    )
    odd, bias = dequant.quantize_int8(torch.randn(37, 51)), torch.randn(37)
    compare(
        "dequant_linear of odd sizes with bias",
        lambda x, b: dequant.dequant_linear(x, odd, b),
        lambda x, b: x @ odd.dequantize(torch.float64).T + b,
        torch.randn(1, 51),
        bias,
    )


def every_byte(form: dequant.Form) -> dequant.QuantizedWeight:
    """A weight of 256 rows and one column."""
    codes = functional.pad(torch.arange(256, dtype=torch.uint8).unsqueeze(1), (0, 3))
    return dequant.QuantizedWeight(codes, torch.ones(256), 1, form)


def float8_forms() -> None:
    for form in ("e4m3fn", "e4m3fnuz"):
        few = every_byte(form)
        y = dequant.dequant_linear(torch.ones(1, 1), few).flatten()
        print(f"bytes of {form} widened: {torch.equal(y.nan_to_num(9e9), few.dequantize().flatten().nan_to_num(9e9))}")
    ocp, fnuz = every_byte("e4m3fn"), every_byte("e4m3fnuz")
    there = dequant.convert_float8(ocp, "e4m3fnuz")
    print(f"to fnuz: {torch.allclose(there.dequantize(), ocp.dequantize(), rtol=0, atol=0, equal_nan=True)}")
    print(
        f"to fnuz, bytes: {[int(there.codes[byte, 0]) for byte in (0x00, 0x80, 0x7F, 0xFF, 0x38)]} {float(there.scale[0])}"
    )
    kept = (fnuz.codes[:, 0] & 127) != 127
    fits = dequant.QuantizedWeight(fnuz.codes[kept], fnuz.scale[kept], 1, "e4m3fnuz")
    back = dequant.convert_float8(fits, "e4m3fn")
    print(f"to fn: {torch.allclose(back.dequantize(), fits.dequantize(), rtol=0, atol=0, equal_nan=True)}")
    print(f"to fn, byte 0x80: {int(back.codes[fits.codes[:, 0] == 0x80, 0])} {float(back.scale[0])}")
    largest = torch.finfo(torch.float32).max
    attempts: dict[str, Callable[[], object]] = {
        "240 to fn": lambda: dequant.convert_float8(fnuz, "e4m3fn"),
        "a scale that overflows": lambda: dequant.convert_float8(
            dequant.QuantizedWeight(ocp.codes, torch.full((256,), largest), 1, "e4m3fn"), "e4m3fnuz"
        ),
        "int8 to fn": lambda: dequant.convert_float8(dequant.quantize_int8(torch.ones(1, 4)), "e4m3fn"),
        "an infinite weight": lambda: dequant.quantize_int8(torch.full((1, 4), torch.inf)),
        "a cut group": lambda: dequant.quantize_int4(torch.ones(2, 96), 64),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except ValueError as error:
            print(f"{name} refused: {error}", flush=True)


def contracts() -> None:
    x, w = torch.randn(10, 51, requires_grad=True), (torch.randn(37, 51) / 7).requires_grad_()
    torch.library.opcheck(torch.ops.amdflow.linear.default, (x, w, None, "none", False))
    few = dequant.quantize_int8(torch.randn(37, 192))
    arguments = (torch.randn(15, 192, requires_grad=True), few.codes, few.scale, None, "int8", 192, 37)
    torch.library.opcheck(torch.ops.amdflow.dequant_linear.default, arguments)
    rows = torch.randn(38, HIDDEN, requires_grad=True)
    experts = (torch.randn(EXPERTS, 2 * WIDTH, HIDDEN) / 6).requires_grad_()
    ends = torch.tensor([3, 3, 20, 31, 38], dtype=torch.int32)
    torch.library.opcheck(torch.ops.amdflow.grouped_linear.default, (rows, experts, ends))
    print("opcheck: passed", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    for part in (linears, mixtures, quantized, float8_forms, contracts, experts_of_models):
        part()
