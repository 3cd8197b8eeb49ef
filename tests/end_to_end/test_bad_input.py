"""What people get wrong: one clear line, the right exit status, no traceback, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CommandLine, Said, until

Change = Callable[[Path], object]


def rewrite(name: str, **changes: object) -> Change:
    """Change keys of the training config."""

    def change(root: Path) -> None:
        path = root / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def write(name: str, content: str | bytes) -> Change:
    """Replace a file."""
    return lambda root: (root / name).write_bytes(content.encode() if isinstance(content, str) else content)


def remove(name: str) -> Change:
    """Take a file or folder away."""
    return lambda root: shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()


ROW = '{"instruction": "a", "input": "", "output": "b"}\n'
TRAINING = [
    (remove("train.yaml"), 2, "no such file: ", "train.yaml"),
    (write("train.yaml", "- a\n"), 2, "holds a list, not a mapping", "train.yaml"),
    (write("train.yaml", "a: [\n"), 2, "not valid YAML", "train.yaml"),
    (rewrite("train.yaml", learning_rat=1.0), 2, "learning_rat", "learning_rate"),
    (rewrite("train.yaml", learning_rate=-1.0), 2, "learning_rate", "-1"),
    (rewrite("train.yaml", max_steps=0), 2, "max_steps", "0"),
    (rewrite("train.yaml", per_device_train_batch_size=0), 2, "per_device_train_batch_size", "0"),
    (rewrite("train.yaml", dataset="tinny"), 2, "tinny", "tiny"),
    (rewrite("train.yaml", template="smolm2"), 2, "smolm2", "smollm2"),
    (rewrite("train.yaml", model_name_or_path="no-such-model"), 5, "no-such-model", ""),
    (remove("data/tiny.jsonl"), 2, "tiny.jsonl", ""),
    (write("data/tiny.jsonl", ROW + "{broken\n"), 2, "tiny.jsonl:2", "JSON"),
    (write("data/tiny.jsonl", '{"question": "a", "output": "b"}\n'), 2, "instruction", "tiny.jsonl"),
    (write("data/tiny.jsonl", ROW + '{"instruction": "a", "input": "", "output": null}\n'), 2, "output", "2"),
    (write("data/tiny.jsonl", b"\xff\xfe broken"), 2, "tiny.jsonl", "UTF-8"),
    (write("data/tiny.jsonl", ""), 2, "tiny.jsonl", ""),
    (lambda root: truncate(root / "model" / "model.safetensors"), 2, "model.safetensors", ""),
]


def truncate(path: Path) -> None:
    """Cut a file in half."""
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(("change", "code", "first", "second"), TRAINING)
def test_training_is_refused_before_it_starts(
    project: CommandLine, change: Change, code: int, first: str, second: str
) -> None:
    change(project.folder)
    said = project("finetune", "train.yaml")
    one_clear_error(said, code, first, second)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["migrate"], 2, "no source folder given"),
        (["migrate", "no-such-folder"], 2, "no-such-folder"),
        (["migrate", "empty"], 2, "empty"),
        (["migrate", "file"], 2, "file"),
        (["migrate", "cuda", "--arch", "gfx924"], 2, "gfx942"),
        (["migrate", "cuda", "--arch", ""], 2, "target"),
        (["migrate", "cuda", "--jobs", "-3"], 2, "jobs"),
        (["migrate", "cuda", "--output", "cuda"], 2, "cuda"),
        (["migrate", "cuda", "--fail-on", "slient"], 2, "silent"),
        (["migrate", "cuda", "--config", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["kernels", "build", "--kernel", "gem"], 2, "gemm"),
        (["export"], 2, "finetune"),
        (["export", "--from-manifest", "newer"], 2, "manifest version 9.0"),
        (["export", "--from-manifest", "torn.json"], 2, "torn.json"),
        (["export", "--from-manifest", "escaping"], 2, "leaves"),
        (["serve", "--model", "nowhere"], 2, "nowhere"),
        (["serve", "--model", "empty"], 2, "empty"),
        (["serve", "--model", "model", "--engine", "sglng"], 2, "sglang"),
        (["serve", "--model", "model", "--port", "99999999"], 2, "port"),
        (["endpoint", "stop"], 1, "no"),
        (["explain", "AMF99999"], 2, "AMF99999"),
        (["run-all", "--from", "train"], 2, "no stage is called 'train'"),
        (["run-all", "--from", "serve", "--until", "migrate"], 2, "comes after"),
        (["init", "file"], 2, "is a file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_arguments_are_refused(project: CommandLine, arguments: list[str], code: int, words: str) -> None:
    root = project.folder
    (root / "amdflow.yaml").write_text("{}")
    (root / "empty").mkdir()
    (root / "file").write_text("")
    (root / "torn.json").write_text('{"schema": "amdflow/man')
    manifest(root / "newer", version="9.0")
    outside = {"name": "adapter", "path": "../../../../etc/passwd", "sha256": "0", "size": 1, "role": "adapter"}
    handoff = {
        "base_model": "model",
        "finetuning_type": "lora",
        "adapter": "../../../../etc",
        "model": None,
        "template": "smollm2",
        "trust_remote_code": False,
    }
    manifest(root / "escaping", outputs=[outside], handoff=handoff)
    one_clear_error(project(*arguments), code, words)


def manifest(folder: Path, **changes: object) -> None:
    """A fine-tune manifest, with changes."""
    folder.mkdir()
    timing = {"started": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:00:00+00:00", "seconds": 1.0}
    base = {
        "schema": "amdflow/manifest",
        "version": "1.0",
        "stage": "finetune",
        "stage_version": 1,
        "run_id": "x",
        "amdflow": "0",
        "status": "ok",
        "exit_code": 0,
        "key": "0",
        "timing": timing,
    }
    (folder / "manifest.json").write_text(json.dumps(base | changes))


def test_a_truncated_model_is_not_served(project: CommandLine) -> None:
    truncate(project.folder / "model" / "model.safetensors")
    one_clear_error(project("serve", "--model", "model"), 2, "model.safetensors")


def test_a_taken_port_is_named_at_once(project: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        one_clear_error(project("serve", "--model", "model", "--port", port, timeout=30), 2, port)


def test_a_second_run_names_the_first(project: CommandLine) -> None:
    running = project.start("run-all", "--until", "migrate")
    holder = project.folder / "out/.amdflow/holder.json"
    try:
        until(holder.is_file, what="the lock")
        one_clear_error(project("run-all", "--until", "migrate"), 1, "another amdflow run is at work", str(running.pid))
    finally:
        assert running.wait(timeout=120) == 0


@pytest.mark.parametrize(
    ("mount", "words"),
    [("mount -t tmpfs -o size=64k tmpfs out", "the disk is full"), ("mount -t tmpfs -o ro tmpfs out", "read-only")],
)
def test_a_full_and_a_read_only_disk_are_said(project: CommandLine, mount: str, words: str) -> None:
    """In a mount namespace of its own, which needs no privilege."""
    (project.folder / "out").mkdir()
    (project.folder / "cuda" / "big.h").write_text("// comment\n" * 20_000)
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'{mount} && exec "$@"',
        "sh",
        *project.argv("migrate", "cuda"),
    ]
    done = subprocess.run(
        command, cwd=project.folder, env=project.environment, capture_output=True, text=True, timeout=120, check=False
    )
    one_clear_error(Said(done.returncode, done.stdout, done.stderr), 1, words)


def test_ctrl_c_says_so_and_leaves_nothing(project: CommandLine, no_orphans: None) -> None:
    running = project.start("finetune", "train.yaml")
    until(lambda: (project.folder / "out/.amdflow/holder.json").is_file(), what="the start of training")
    running.send_signal(2)
    assert running.wait(timeout=60) == 130
    data = json.loads((project.folder / "out/finetune/manifest.json").read_text())
    assert (data["status"], data["exit_code"]) == ("cancelled", 130)
    assert "cancelled by Ctrl-C" in (project.folder / "started.log").read_text()


def one_clear_error(said: Said, code: int, *words: str) -> None:
    """The right status, exactly one error with a way out, the words in it, no traceback."""
    assert said.code == code, said.err
    lowered = said.err.lower()
    if "usage:" not in lowered:
        assert said.err.count("error: ") == 1, said.err
        assert "→" in said.err, said.err
    assert "Traceback" not in said.err
    for word in words:
        assert word.lower() in lowered, f"{word!r} is not in: {said.err}"


def test_a_link_loop_and_a_workdir_that_is_the_source_are_named(project: CommandLine) -> None:
    (project.folder / "loop").symlink_to("loop")
    one_clear_error(project("migrate", "loop"), 2, "loop")
    (project.folder / "amdflow.yaml").write_text("workdir: cuda\nmigrate: {source: cuda}\n")
    one_clear_error(project("migrate"), 2, "both the source folder and the workdir")
