"""A training step of a Llama of 1.2 billion parameters: eager, with Liger-Kernel, and with the kernels, in one run.

    python benchmarks/training_step.py [--contenders eager,liger,ours] [--off rope] [--on attention] [--ablate]
        [--steps 50] [--profile] [--json result.json] [--tiny]

Needs torch, transformers and tilelang; liger_kernel where that is a contender. Nothing is downloaded: the weights are
drawn from one seed, and the text is made up, predictable in part, so that the loss falls. Each contender has a process of
its own, takes the same steps (bfloat16, fused AdamW, attention by torch's SDPA) and gives the median time of a step, the
time the processor needs to launch one, the peak memory and every loss. ``--tiny`` is a model for a trial on the CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

INSIDE = Path(__file__).resolve().parent.parent / "amdflow" / "kernels" / "inside"
OPS = ("rms_norm", "add_rms_norm", "swiglu", "rope", "linear_cross_entropy")
WITHOUT = "ours without "
LLAMA = {
    "vocab_size": 128256,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
}
TINY = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
WARM_UP = 10


def main() -> int:
    """Run the contenders one after another; the exit status is 1 when one failed, 5 when the tools are not there."""
    options = _options()
    try:
        import torch
        import transformers
    except ImportError as error:
        sys.stderr.write(f"this needs torch and transformers in the interpreter that runs it: {error}\n")
        return 5
    if not options.tiny and not torch.cuda.is_available():
        sys.stderr.write("torch sees no GPU here; --tiny runs a small model on the CPU\n")
        return 5
    document: dict[str, Any] = {
        "gpu": "" if options.tiny else torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "options": vars(options),
        "contenders": {},
    }
    for name in _contenders(options):
        started = time.monotonic()
        found = _in_its_own_process(name, options)
        found["took_s"] = round(time.monotonic() - started, 1)
        document["contenders"][name] = found
        _compare(document["contenders"])
        _say(name, found)
        if options.json:
            Path(options.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any("error" in found for found in document["contenders"].values()) else 0


def _contenders(options: argparse.Namespace) -> list[str]:
    names: list[str] = options.contenders.split(",")
    return names + ([WITHOUT + op for op in _chosen("ours", options)] if options.ablate else [])


def _in_its_own_process(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Memory and patches of one contender do not reach the next."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(run, name, options).result()
        except Exception as error:
            return {"error": f"{type(error).__name__}: {str(error).strip()[-600:]}"}


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train for ``options.steps`` steps; time, memory, losses, and what was replaced."""
    import torch

    device = "cpu" if options.tiny else "cuda"
    if name == "liger":
        from liger_kernel.transformers import apply_liger_kernel_to_llama

        apply_liger_kernel_to_llama()
    model = _model(options, device)
    found: dict[str, Any] = {"parameters": sum(part.numel() for part in model.parameters())}
    replaced = _replace(model, _chosen(name, options)) if name.startswith("ours") else None
    step = torch.compile(model) if name == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate, fused=True)
    batches = [_words(index, options).to(device) for index in range(options.steps)]

    def train(words: torch.Tensor) -> torch.Tensor:
        loss = step(input_ids=words, labels=words, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    found |= _measure(train, batches, device)
    if replaced is not None:
        found |= _used(replaced)
    if options.profile:
        found["top"] = _profile(train, batches[-3:], device)
    return found


def _model(options: argparse.Namespace, device: str) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**(TINY if options.tiny else LLAMA), tie_word_embeddings=True, max_position_embeddings=8192)
    config._attn_implementation = "sdpa"
    torch.manual_seed(options.seed)
    torch.set_default_dtype(torch.float32 if options.tiny else torch.bfloat16)
    with torch.device(device):
        model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return model.train()


def _words(index: int, options: argparse.Namespace) -> Any:
    """A batch of tokens in which one often follows from the one before it."""
    import torch

    batch, tokens, vocab = (2, 33, 512) if options.tiny else (options.batch, options.tokens, LLAMA["vocab_size"])
    generator = torch.Generator().manual_seed(options.seed * 10007 + index)
    words = torch.randint(0, vocab, (batch, tokens), generator=generator)
    follows = torch.rand(batch, tokens, generator=generator) < 0.7
    for place in range(1, tokens):
        words[:, place] = torch.where(follows[:, place], (words[:, place - 1] * 5 + 17) % 97, words[:, place])
    return words


def _chosen(name: str, options: argparse.Namespace) -> list[str]:
    left_out = {*options.off.split(","), name.removeprefix(WITHOUT)}
    return [op for op in (*OPS, *filter(None, options.on.split(","))) if op not in left_out]


def _replace(model: Any, chosen: list[str]) -> Any:
    sys.path.insert(0, str(INSIDE))
    import tilelang_ops

    return tilelang_ops.replace_modules(model, dict.fromkeys(chosen, "all"))


def _used(replaced: Any) -> dict[str, Any]:
    """What was replaced; an operator that was never called is an error, since the time would be another's."""
    calls = {op: sum(counts.values()) for op, counts in replaced.calls.items()}
    found: dict[str, Any] = {
        "replaced": {op: len(names) for op, names in replaced.modules.items()},
        "calls": calls,
        "declined": {op: reasons for op, reasons in replaced.declined.items() if reasons},
    }
    idle = [op for op, count in calls.items() if not count]
    return found | ({"error": f"never called: {', '.join(idle)}"} if idle else {})


def _measure(train: Callable[[Any], Any], batches: list[Any], device: str) -> dict[str, Any]:
    import torch

    if device == "cpu":
        times, losses = [], []
        for words in batches:
            started = time.perf_counter()
            losses.append(float(train(words)))
            times.append((time.perf_counter() - started) * 1e3)
        return {"ms": statistics.median(times), "losses": losses}
    torch.cuda.reset_peak_memory_stats()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(batches) + 1)]
    losses = []
    marks[0].record()
    for words, mark in zip(batches, marks[1:], strict=True):
        losses.append(train(words))
        mark.record()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    times = [before.elapsed_time(after) for before, after in itertools.pairwise(marks)][WARM_UP:]
    return {
        "ms": statistics.median(times),
        "ms_least": min(times),
        "ms_most": max(times),
        "launch_ms": statistics.median(_launch_ms(train, batches[-5:])),
        "peak_gb": peak / 1e9,
        "losses": [float(loss) for loss in losses],
    }


def _launch_ms(train: Callable[[Any], Any], batches: list[Any]) -> Iterator[float]:
    """Milliseconds until a step is launched, the device idle before it."""
    import torch

    for words in batches:
        torch.cuda.synchronize()
        started = time.perf_counter()
        train(words)
        yield (time.perf_counter() - started) * 1e3


def _profile(train: Callable[[Any], Any], batches: list[Any], device: str) -> list[dict[str, Any]]:
    """The 25 device kernels (on the CPU: operators) that take longest: name, calls and milliseconds a step."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    with profile(activities=activities) as recorded:
        for words in batches:
            train(words)
        if device == "cuda":
            torch.cuda.synchronize()
    rows = []
    for event in recorded.key_averages():
        if device == "cuda" and "CUDA" not in str(event.device_type):
            continue
        spent = event.self_device_time_total if device == "cuda" else event.self_cpu_time_total
        row = {"ms": spent / 1e3 / len(batches), "calls": event.count / len(batches), "kernel": event.key}
        rows.append(row)
    return sorted(rows, key=lambda row: -float(row["ms"]))[:25]


def _compare(contenders: dict[str, dict[str, Any]]) -> None:
    """Add each contender's time, memory and losses relative to eager's and Liger's."""
    for other in ("eager", "liger"):
        base = contenders.get(other, {})
        for found in contenders.values():
            for key in ("ms", "peak_gb"):
                if key in base and key in found:
                    found[f"{key}/{other}"] = found[key] / base[key]
            if other == "eager" and "losses" in base and "losses" in found:
                pairs = zip(found["losses"], base["losses"], strict=True)
                found["losses_differ"] = max(abs(mine - theirs) / abs(theirs) for mine, theirs in pairs)


def _say(name: str, found: dict[str, Any]) -> None:
    plain = {key: value for key, value in found.items() if key not in ("losses", "top")}
    if "losses" in found:
        plain["loss"] = f"{found['losses'][0]:.4f} -> {found['losses'][-1]:.4f}"
    print(f"{name}: " + "  ".join(f"{key}={_short(value)}" for key, value in plain.items()), flush=True)
    for row in found.get("top", []):
        print(f"    {row['ms']:9.3f} ms  {row['calls']:7.1f} x  {row['kernel'][:150]}", flush=True)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="a training step with and without the kernels")
    parser.add_argument("--contenders", default="eager,liger,ours", help="also: compiled")
    parser.add_argument("--off", default="", help=f"operators to leave out of {', '.join(OPS)}")
    parser.add_argument("--on", default="", help="operators to add, such as attention")
    parser.add_argument("--ablate", action="store_true", help="ours once more for each operator, without it")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=50, help=f"the first {WARM_UP} are not timed")
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="list the kernels that take longest")
    parser.add_argument("--tiny", action="store_true", help="a small model in float32 on the CPU")
    parser.add_argument("--json", default="", help="where to write everything")
    return parser.parse_args()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
