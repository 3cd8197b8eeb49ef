"""Runs in the kernels environment; prints ``name: result`` lines that test_kernel_models.py looks at.

Tiny models of transformers', drawn at random, on the CPU: what training sees with the operators and without.
"""

from __future__ import annotations

import copy
import gc
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import tilelang_ops as ops
import torch
import torch.distributed.fsdp
from tilelang_ops import replace_attention

sys.path.append(sys.argv[1])  # transformers and peft lie in another environment
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = {
    "vocab_size": 131,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "pad_token_id": 0,
}
EVERY = dict.fromkeys(["rms_norm", "add_rms_norm", "swiglu", "rope", "attention", "linear_cross_entropy"], "all")
MEAN_OF_FEW = 7
"""A number of tokens that is not the batch's, as accumulating gradients gives it."""


def draw(family: str, **more: Any) -> Any:
    """A model with norms that are not all ones."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **(SIZES | more), tie_word_embeddings=family in ("llama", "gemma"))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").train()
    for name, part in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(part, 0.5, 0.1)
    return model


def batch() -> dict[str, torch.Tensor]:
    """Two rows of 19 tokens; some labels count for nothing."""
    words = torch.randint(1, SIZES["vocab_size"], (2, 19), generator=torch.Generator().manual_seed(1))
    labels = words.clone()
    labels[0, :5] = -100
    return {"input_ids": words, "labels": labels}


def learn(model: Any, **given: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss, and the gradients by the parameter's name."""
    model.zero_grad(set_to_none=True)
    loss = model(**(batch() | given)).loss
    loss.backward()
    return loss.detach(), {name: part.grad for name, part in model.named_parameters() if part.grad is not None}


def difference(found: Any, expected: Any) -> float:
    """The worst error of the loss or of any gradient, relative to the largest element."""
    (loss, gradients), (right, wide) = found, expected
    assert gradients.keys() == wide.keys(), gradients.keys() ^ wide.keys()
    errors = [float((gradients[name] - wide[name]).abs().max() / wide[name].abs().max()) for name in wide]
    return max([float(abs(loss - right) / right), *errors])


def say(name: str, result: Any) -> None:
    print(f"{name}: {result}", flush=True)


def compare(name: str, model: Any, choice: Mapping[str, str], **given: Any) -> Any:
    """Print how far the model with the operators is from itself in float64 without them; every place must have been used."""
    wide = copy.deepcopy(model).double()
    replaced = ops.replace_modules(model, choice)
    say(name, difference(learn(model, **given), learn(wide, **given)))
    idle = [place for counts in replaced.calls.values() for place, count in counts.items() if not count]
    say(f"{name}, idle", idle)
    return replaced


def families() -> None:
    """Each family's way: biases, norms of queries and keys, offsets, scaled embeddings."""
    for family in ("llama", "mistral", "qwen2", "qwen3", "gemma"):
        compare(family, draw(family), EVERY)
    for op in EVERY:
        compare(f"llama, {op} alone", draw("llama"), {op: "all"})
    chosen = compare(
        "llama, one layer", draw("llama"), {**dict.fromkeys(EVERY, r"layers\.1(\.|$)"), "linear_cross_entropy": "off"}
    )
    say("one layer's places", {op: names for op, names in chosen.modules.items() if op in ("rope", "add_rms_norm")})
    compare("llama, tokens counted elsewhere", draw("llama"), EVERY, num_items_in_batch=MEAN_OF_FEW)
    compare("llama, counted in a tensor", draw("llama"), EVERY, num_items_in_batch=torch.tensor(MEAN_OF_FEW))
    positions = torch.stack([torch.arange(19), torch.arange(3, 22)])
    compare(
        "llama, positions of each row", draw("llama"), EVERY, position_ids=positions, attention_mask=torch.ones(2, 19)
    )


def adapters() -> None:
    """LoRA around what is replaced, and on the last layer."""
    from peft import LoraConfig, get_peft_model

    def tuned(*targets: str) -> Any:
        torch.manual_seed(2)
        model = get_peft_model(draw("llama"), LoraConfig(r=4, target_modules=list(targets), init_lora_weights=False))
        return model.train()

    compare("lora", tuned("q_proj", "v_proj", "down_proj", "gate_proj"), EVERY)
    try:
        ops.replace_modules(tuned("q_proj", "lm_head"), {"linear_cross_entropy": "all"})
    except ValueError as error:
        say("lora on the last layer", error)


def checkpointing() -> None:
    """Layers that are computed again for their gradient."""
    for reentrant in (False, True):
        model = draw("llama")
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        compare(f"checkpointing, reentrant {reentrant}", model, EVERY)
    model = draw("llama")
    wide = copy.deepcopy(model).double()
    ops.replace_modules(model, EVERY)
    for layer in model.model.layers:  # as sharded training does it, from outside
        inner = layer.forward
        layer.forward = lambda *a, inner=inner, **n: torch.utils.checkpoint.checkpoint(
            inner, *a, use_reentrant=False, **n
        )
    say("checkpointing from outside", difference(learn(model, use_cache=False), learn(wide)))


def wrapped() -> None:
    """torch.compile, distributed data parallel, autocast."""
    model = draw("llama")
    expected = learn(copy.deepcopy(model).double())
    replaced = ops.replace_modules(model, EVERY)
    model.forward = torch.compile(model.forward, backend="aot_eager", fullgraph=True)
    say("compiled", difference(learn(model), expected))
    say("compiled, places", {op: len(names) for op, names in replaced.traced.items()})

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    model = draw("llama")
    ops.replace_modules(model, EVERY)
    loss, gradients = learn(torch.nn.parallel.DistributedDataParallel(model))
    say(
        "parallel",
        difference((loss, {name.removeprefix("module."): part for name, part in gradients.items()}), expected),
    )

    model = draw("llama")
    replaced = ops.replace_modules(model, EVERY)
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    for part in (*model.model.layers, model):
        torch.distributed.fsdp.fully_shard(part, mesh=mesh)
    loss, gradients = learn(model)
    whole = {name: part.full_tensor() for name, part in gradients.items()}
    say("sharded", difference((loss, whole), expected))
    say("sharded, residual adds fused", list(replaced.calls["add_rms_norm"].values()))
    torch.distributed.destroy_process_group()

    for on in (False, True):
        model = draw("llama")
        if on:
            ops.replace_modules(model, {**EVERY, "swiglu": "off"})  # it sees one value type only
        with torch.autocast("cpu", torch.bfloat16):
            found = learn(model)
        say(f"autocast {'on' if on else 'off'}", difference(found, expected))


def behaviour() -> None:
    """What the model gives beside the loss, and when it goes its own way."""
    model, plain = draw("llama"), draw("llama")
    replaced = ops.replace_modules(model, EVERY)
    say("logits in training", model(**batch()).logits)
    with torch.no_grad():
        apart = [model.eval()(**batch()).logits - plain.eval()(**batch()).logits]
        apart += [model(batch()["input_ids"]).logits - plain(batch()["input_ids"]).logits]
        pairs = zip(*(m(**batch(), output_hidden_states=True).hidden_states for m in (model, plain)), strict=True)
        apart += [mine - theirs for mine, theirs in pairs]
    say("evaluation", max(float(part.abs().max()) for part in apart))
    say("calls of the loss", replaced.calls["linear_cross_entropy"])
    started = batch()["input_ids"][:1, :5]
    model.generation_config.pad_token_id = plain.generation_config.pad_token_id = 0
    replace_attention._said.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        same = model.generate(started, max_new_tokens=4, do_sample=False).equal(
            plain.generate(started, max_new_tokens=4, do_sample=False)
        )
    say("generation", same)
    say("generation warns", [str(warning.message) for warning in caught if "attention" in str(warning.message)])
    for name, family, more in (
        ("softcap", "gemma2", {}),
        ("dropout", "llama", {"attention_dropout": 0.1}),
        ("activation", "llama", {"hidden_act": "relu"}),
    ):
        for op in EVERY:
            try:
                ops.replace_modules(draw(family, **more), {op: "all"})
            except ValueError as error:
                say(f"{name}, {op}", error)


def machines() -> None:
    """The choice of attention on other machines, by their targets' names."""
    module: Any = sys.modules["tilelang_ops.attention"]
    here, bf16, f32 = module.target_of, torch.bfloat16, torch.float32
    for name, target, call in (
        ("MI300X", "gfx942", ops.AttentionCall("cuda", bf16, 128, 9, 9, scale=128**-0.5)),
        ("RX 9070", "gfx1201", ops.AttentionCall("cuda", torch.float16, 64, 9, 9, window=5)),
        ("H200", "cuda", ops.AttentionCall("cuda", bf16, 64, 9, 9, packed=True)),
        ("MI50", "gfx906", ops.AttentionCall("cuda", bf16, 128, 9, 9)),
        ("float32", "gfx942", ops.AttentionCall("cuda", f32, 128, 9, 9)),
        ("wide heads", "gfx942", ops.AttentionCall("cuda", bf16, 80, 9, 9)),
        ("scale", "gfx942", ops.AttentionCall("cuda", bf16, 128, 9, 9, scale=0.1)),
        ("another device", "", ops.AttentionCall("xpu", bf16, 128, 9, 9)),
    ):
        module.target_of = lambda _device, target=target: target
        say(f"choice, {name}", " because of ".join(ops.choose_attention(call)))
    module.target_of = here


def padding() -> None:
    """Text in rows of different lengths, and windows."""
    behind, before = torch.ones(2, 19, dtype=torch.long), torch.ones(2, 19, dtype=torch.long)
    behind[1, 12:], before[1, :7] = 0, 0
    for name, mask in (("behind", behind), ("before", before)):
        model = draw("llama")
        wide = copy.deepcopy(model).double()
        replaced = ops.replace_modules(model, EVERY)
        labels = batch()["labels"].masked_fill(mask == 0, -100)
        replace_attention._said.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            given = {"attention_mask": mask, "labels": labels}
            say(f"padding {name}", difference(learn(model, **given), learn(wide, **given)))
        say(f"padding {name}, kernels", sum(replaced.calls["attention"].values()))
        say(f"padding {name}, warnings", [str(warning.message) for warning in caught])
    for name, where in (("window", "all"), ("window in one layer", r"layers\.1\.")):
        model = draw("mistral", sliding_window=8)
        wide = copy.deepcopy(model).double()
        replaced = ops.replace_modules(model, {"attention": where})
        given = {"attention_mask": behind, "labels": batch()["labels"].masked_fill(behind == 0, -100)}
        say(name, difference(learn(model, **given), learn(wide, **given)))
        say(f"{name}, kernels", sum(replaced.calls["attention"].values()))
    one = {name: part.view(1, -1) for name, part in batch().items()}
    starts = torch.tensor([0, 19, 30, 38], dtype=torch.int32)
    places = torch.cat([torch.arange(length) for length in starts.diff().tolist()])[None]
    compare(
        "packed",
        draw("llama"),
        EVERY,
        **one,
        position_ids=places,
        cu_seq_lens_q=starts,
        cu_seq_lens_k=starts,
        max_length_q=19,
        max_length_k=19,
        use_cache=False,
    )


def memory() -> None:
    """The process's memory and the tensors in it over repeated steps."""
    model = draw("llama")
    ops.replace_modules(model, EVERY)

    def used() -> tuple[int, int]:
        gc.collect()
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects()), pages * os.sysconf("SC_PAGE_SIZE")

    found = []
    for _ in range(4):  # the allocator's own pools have grown to what they need after the second
        for _ in range(20):
            learn(model)
        found.append(used())
    say("tensors left over", found[-1][0] - found[1][0])
    say("bytes left over", found[-1][1] - found[1][1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in (families, adapters, checkpointing, wrapped, behaviour, machines, padding, memory):
        if len(sys.argv) < 3 or part.__name__ in sys.argv[2:]:
            part()
