"""What the finetune tests are built from: facts of an engine, SafeTensors files, a folder that is ready to train."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amdflow.finetune.engine import EngineFacts, Field, Operator


def field(*kinds: str, choices: Sequence[Any] = (), default: Any = None) -> Field:
    return Field(frozenset(kinds), tuple(choices), default)


FIELDS: Mapping[str, Field] = {
    "model_name_or_path": field("str", "none"),
    "adapter_name_or_path": field("str", "none"),
    "stage": field("str", choices=("pt", "sft", "rm", "ppo", "dpo", "kto"), default="sft"),
    "finetuning_type": field("str", choices=("lora", "freeze", "full"), default="lora"),
    "do_train": field("bool", default=False),
    "dataset": field("str", "none"),
    "eval_dataset": field("str", "none"),
    "dataset_dir": field("str", default="data"),
    "template": field("str", "none"),
    "cutoff_len": field("int", default=2048),
    "packing": field("bool", "none"),
    "learning_rate": field("float", default=5e-5),
    "max_steps": field("int", default=-1),
    "num_train_epochs": field("float", default=3.0),
    "per_device_train_batch_size": field("int", default=8),
    "gradient_accumulation_steps": field("int", default=1),
    "lora_rank": field("int", default=8),
    "lora_alpha": field("int", "none"),
    "lora_dropout": field("float", default=0.0),
    "lora_target": field("str", default="all"),
    "warmup_steps": field("float", default=0),
    "save_steps": field("float", default=500),
    "logging_steps": field("float", default=500),
    "val_size": field("float", default=0.0),
    "weight_decay": field("float", default=0.0),
    "output_dir": field("str", "none"),
    "bf16": field("bool", default=False),
    "fp16": field("bool", default=False),
    "pure_bf16": field("bool", default=False),
    "use_cpu": field("bool", default=False),
    "flash_attn": field("str", choices=("auto", "disabled", "sdpa", "fa2", "fa3"), default="auto"),
    "quantization_bit": field("int", "none"),
    "deepspeed": field("dict", "str", "none"),
    "fsdp_config": field("dict", "str", "none"),
    "report_to": field("list", "str", "none"),
    "run_name": field("str", "none"),
    "resume_from_checkpoint": field("str", "none"),
    "trust_remote_code": field("bool", default=False),
    "tokenized_path": field("str", "none"),
    "plot_loss": field("bool", default=False),
}


OPERATORS: Mapping[str, Operator] = {
    "rms_norm": Operator(("LlamaRMSNorm",), ("rms_norm", "rms_norm_backward", "column_sum")),
    "swiglu": Operator(("LlamaMLP",), ("swiglu", "swiglu_backward")),
}


def facts(**changes: Any) -> EngineFacts:
    """Facts like those of LLaMA-Factory 0.9.5 on a CPU."""
    values: dict[str, Any] = {
        "fields": FIELDS,
        "templates": ("default", "llama3", "qwen", "smollm2"),
        "file_types": {"csv": "csv", "json": "json", "jsonl": "json", "parquet": "parquet", "txt": "text"},
        "flash_attention_2": False,
        "bf16_gpu": False,
        "gpus": 0,
        "modules": frozenset({"matplotlib", "tilelang"}),
        "hub_endpoint": "http://127.0.0.1:9",
        "hub_cache": Path("/nonexistent/hub"),
        "operators": OPERATORS,
        "operators_problem": "",
    }
    return EngineFacts(**(values | changes))


def write_tensors(path: Path, shapes: Mapping[str, Sequence[int]]) -> Path:
    """A SafeTensors file of float32 zeros."""
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(offset))
    return path


def make_model(folder: Path) -> Path:
    """A folder that looks like a small model."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "tokenizer.json").write_text("{}")
    write_tensors(folder / "model.safetensors", {"model.embed_tokens.weight": (8, 4)})
    return folder


def make_data(folder: Path, rows: Sequence[Any], entry: Mapping[str, Any] | None = None) -> Path:
    """A dataset folder with one dataset called ``tiny``; rows that are text are written as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "tiny.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "dataset_info.json").write_text(json.dumps({"tiny": {"file_name": "tiny.jsonl", **(entry or {})}}))
    return folder


GOOD_ROW = {"instruction": "Add 1 and 1.", "input": "", "output": "The sum is 2."}
