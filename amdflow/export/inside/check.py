"""Look at an exported model with fresh eyes: ``python check.py JOB.json``.

JOB.json holds ``model`` (the export), ``base``, ``adapter`` (or null), ``prompts``, ``probe``, ``trust_remote_code`` and
``result``. Everything is computed in float32 on the CPU, one model at a time.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

TEXTS = (
    "The wavefront has 64 lanes.",
    "把 CUDA 内核移植到 HIP。",
    "for (int i = 0; i < 4096; ++i) { y[i] += 0.5f * x[i]; }",
    "naïve café — 3.14159",
)
ANSWER_TOKENS = 64
# Parameters up to which asking the model a question on a CPU takes seconds.
SMALL = 3_000_000_000


def check_tensors(folder: Path) -> dict[str, Any]:
    """Read every tensor of every shard; the index, where there is one, must name exactly them."""
    import torch
    from safetensors import safe_open

    held: dict[str, str] = {}
    problems: list[str] = []
    dtypes: dict[str, int] = {}
    parameters = 0
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                tensor = file.get_tensor(name)
                held[name] = path.name
                parameters += tensor.numel()
                dtype = str(tensor.dtype).removeprefix("torch.")
                dtypes[dtype] = dtypes.get(dtype, 0) + 1
                if tensor.is_floating_point() and not bool(torch.isfinite(tensor.float()).all()):
                    problems.append(f"tensor {name} in {path.name} holds NaN or infinite values")
    index = folder / "model.safetensors.index.json"
    listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"] if index.is_file() else held
    problems += [
        f"the index puts {name} into {place}, where it is not"
        for name, place in listed.items()
        if held.get(name) != place
    ]
    problems += [f"tensor {name} in {place} is not in the index" for name, place in held.items() if name not in listed]
    return {
        "tensors": len(held),
        "parameters": parameters,
        "dtypes": dtypes,
        "shards": len(set(held.values())),
        "problems": problems,
    }


def check_tokenizer(job: dict[str, Any]) -> tuple[dict[str, Any], list[list[int]]]:
    """The exported tokenizer must read and write as the base model's does, and have its chat template."""
    from transformers import AutoTokenizer

    mine = AutoTokenizer.from_pretrained(job["model"], trust_remote_code=job["trust_remote_code"])
    base = AutoTokenizer.from_pretrained(job["base"], trust_remote_code=job["trust_remote_code"])
    problems = []
    for text in TEXTS:
        ids = mine(text)["input_ids"]
        if ids != base(text)["input_ids"]:
            problems.append(f"the tokenizer reads {text!r} otherwise than the base model's")
        elif mine.decode(ids) != base.decode(ids):
            problems.append(f"the tokenizer writes {text!r} otherwise than the base model's")
    if base.chat_template and not mine.chat_template:
        problems.append("the chat template of the base model is lost")
    prompts = [_ids(mine, prompt) for prompt in job["prompts"]]
    return {"chat_template": bool(mine.chat_template), "vocabulary": len(mine), "problems": problems}, prompts


def _ids(tokenizer: Any, prompt: str) -> list[int]:
    if not tokenizer.chat_template:
        return list(tokenizer(prompt)["input_ids"])
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
    )
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def load(folder: str, trust: bool) -> tuple[Any, dict[str, Any]]:
    """(model in float32, what the loader says of missing, unexpected and misshapen tensors)."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trust)
    kind = getattr(transformers, (config.architectures or [""])[0], transformers.AutoModelForCausalLM)
    model, info = kind.from_pretrained(
        folder, dtype=torch.float32, trust_remote_code=trust, output_loading_info=True, ignore_mismatched_sizes=True
    )
    return model.eval(), info


def logits_of(model: Any, prompts: list[list[int]]) -> list[Any]:
    """The logits of every position, one tensor a prompt."""
    import torch

    with torch.no_grad():
        return [model(input_ids=torch.tensor([ids])).logits[0].float() for ids in prompts]


def reference(job: dict[str, Any], prompts: list[list[int]]) -> tuple[list[Any], list[Any]]:
    """Logits of the trained model as it was trained (the adapter beside the weights, not merged), and without its adapter."""
    model, _info = load(job["base"], job["trust_remote_code"])
    if not job["adapter"]:
        return logits_of(model, prompts), []
    from peft import PeftModel

    trained = PeftModel.from_pretrained(model, job["adapter"]).float().eval()
    with trained.disable_adapter():
        plain = logits_of(trained, prompts)
    return logits_of(trained, prompts), plain


def compare(first: list[Any], second: list[Any]) -> dict[str, float]:
    """How far two lists of logits are apart."""
    width = min(first[0].shape[-1], second[0].shape[-1])
    pairs = [(one[:, :width], two[:, :width]) for one, two in zip(first, second, strict=True)]
    largest = max(float(one.abs().max()) for one, _two in pairs)
    difference = max(float((one - two).abs().max()) for one, two in pairs)
    agree = sum(int((one.argmax(-1) == two.argmax(-1)).sum()) for one, two in pairs) / sum(
        len(one) for one, _two in pairs
    )
    divergence = max(
        float((one.log_softmax(-1).exp() * (one.log_softmax(-1) - two.log_softmax(-1))).sum(-1).max())
        for one, two in pairs
    )
    relative = difference / largest if largest else difference
    return {
        "max_difference": difference,
        "largest_logit": largest,
        "relative": relative,
        "same_top_token": agree,
        "max_kl": divergence,
    }


def check_model(job: dict[str, Any], prompts: list[list[int]], parameters: int) -> dict[str, Any]:
    """Loading, shapes, logits against the trained model, and an answer to the probe."""
    needed, free = parameters * 4 * 1.3 / 2**20, available_mb()
    if needed > free:
        return {
            "skipped": f"comparing logits needs {needed / 1024:.0f} GiB of memory, {free / 1024:.0f} are free",
            "problems": [],
        }
    trained, plain = reference(job, prompts)
    model, info = load(job["model"], job["trust_remote_code"])
    problems = [
        f"{name} tensors: {', '.join(map(str, list(info[key])[:3]))}"
        for key, name in (
            ("missing_keys", "missing"),
            ("unexpected_keys", "unexpected"),
            ("mismatched_keys", "misshapen"),
        )
        if info.get(key)
    ]
    mine = logits_of(model, prompts)
    answer = ask(model, job) if parameters <= SMALL else ""
    return {
        "logits": compare(trained, mine),
        "adapter_effect": compare(trained, plain)["relative"] if plain else None,
        "answer": answer,
        "problems": problems,
    }


def ask(model: Any, job: dict[str, Any]) -> str:
    """The exported model's own answer to the probe, greedy."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["model"], trust_remote_code=job["trust_remote_code"])
    ids = torch.tensor([_ids(tokenizer, job["probe"])])
    with torch.no_grad():
        made = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=ANSWER_TOKENS, do_sample=False
        )
    return str(tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True)).strip()


def available_mb() -> float:
    """Memory that can be had without swapping, in MiB."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return 0.0


def work(job: dict[str, Any]) -> dict[str, Any]:
    """All checks, in the order in which one failing makes the next pointless."""
    tensors = check_tensors(Path(job["model"]))
    if tensors["problems"]:
        return {"tensors": tensors}
    tokenizer, prompts = check_tokenizer(job)
    return {"tensors": tensors, "tokenizer": tokenizer, "model": check_model(job, prompts, tensors["parameters"])}


def main() -> int:
    """Write what was found to the result file."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        found = work(job)
    except Exception as problem:
        traceback.print_exc()
        found = {"error": f"{type(problem).__name__}: {problem}"[:2000]}
    Path(job["result"]).write_text(json.dumps(found), encoding="utf-8")
    return 1 if "error" in found else 0


if __name__ == "__main__":
    sys.exit(main())
