"""Logs of engines that failed: their own error lines, and the known trouble in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.errors import UsageError
from amdflow.serve.trouble import diagnose, load_trouble

CATALOGUE = load_trouble(Path("/nowhere"))


@pytest.mark.parametrize(
    ("line", "engine", "remedy"),
    [
        ("RuntimeError: aiter is not supported on gfx1100", "sglang", "attention-backend=triton"),
        ("HIP error: hipErrorCapturedEvent: operation not permitted", "sglang", "ROCm 7.2.1"),
        (
            ":0:rocdevice.cpp: HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception",
            "sglang",
            "disable-custom-all-reduce",
        ),
        ("ValueError: arange's range must be a power of 2", "sglang", "tilelang"),
        ("out of resource: shared memory, Required: 196608, Hardware limit: 65536", "sglang", "enable-torch-compile"),
        ("OSError: libcuda.so.1: cannot open shared object file", "sglang", "ROCm build"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", "vllm", "shorter context"),
        (
            "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
            "sglang",
            "download the model again",
        ),
        (
            "ERROR: [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use",
            "sglang",
            "--port",
        ),
        ("launch_server.py: error: unrecognized arguments: --nope", "sglang", "--engine-arg"),
        ("No such option: --nope", "transformers", "--engine-arg"),
        ("Please pass the argument `trust_remote_code=True` to allow custom code", "vllm", "trust-remote-code"),
    ],
)
def test_known_trouble_is_recognised(line: str, engine: str, remedy: str) -> None:
    found = diagnose(["loading", line, "bye"], engine, CATALOGUE)
    assert any(remedy in entry.remedy for entry in found.known), found.known


def test_a_healthy_log_shows_no_trouble() -> None:
    log = [
        "server_args={'trust_remote_code': False}",
        "Load weight begin. avail mem=21.59 GB",
        "The server is fired up and ready to roll!",
    ]
    assert [entry.symptom for entry in diagnose(log, "sglang", CATALOGUE).known] == []


def test_one_engines_trouble_is_not_anothers() -> None:
    assert not diagnose(["HSA_STATUS_ERROR_EXCEPTION"], "vllm", CATALOGUE).known


def test_the_last_error_lines_are_shown_without_time_stamps_and_repeats() -> None:
    log = [
        "[2026-11-30 15:08:48] start",
        "Traceback (most recent call last):",
        "  File x",
        *["[2026-11-30 15:08:49] ValueError: the reason"] * 3,
        "leaked function",
    ]
    assert diagnose(log, "sglang", ()).lines == ("ValueError: the reason",)
    assert diagnose(["a", "", "b"], "sglang", ()).lines == ("a", "b")


def test_the_workspaces_own_list_comes_first_and_is_checked(tmp_path: Path) -> None:
    (tmp_path / "serving").mkdir()
    file = tmp_path / "serving/known-trouble.yaml"
    file.write_text("trouble: [{pattern: our cluster, symptom: the node is down, remedy: call Kim}]")
    assert load_trouble(tmp_path)[0].remedy == "call Kim"
    assert len(load_trouble(tmp_path)) == len(CATALOGUE) + 1
    file.write_text("trouble: [{pattern: '(', symptom: s, remedy: r}]")
    with pytest.raises(UsageError, match="is not a regular expression"):
        load_trouble(tmp_path)
