"""Medians with device events, results that are on disk as soon as they are known, and a time limit."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

_FLUSH_BYTES = 256 << 20


@cache
def _generator(device: str) -> torch.Generator:
    """A generator of its own: a failed graph capture can leave torch's default one unusable."""
    return torch.Generator(device).manual_seed(0)


def draw(*shape: int, dtype: torch.dtype = torch.bfloat16, device: str = "cuda", scale: float = 1.0) -> torch.Tensor:
    """Normally distributed values."""
    return (torch.randn(*shape, device=device, generator=_generator(device)) * scale).to(dtype)


class Record:
    """Rows of results: printed, and written to ``path`` after each one."""

    def __init__(self, path: str, limit: float, facts: Mapping[str, Any]) -> None:
        self.path, self.started, self.limit = path, time.monotonic(), limit
        self.document: dict[str, Any] = {**facts, "rows": []}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Every row so far."""
        found: list[dict[str, Any]] = self.document["rows"]
        return found

    def out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return time.monotonic() - self.started > self.limit

    def add(self, kind: str, labels: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> None:
        """Add what ``measure`` gives; an exception becomes the row's ``error``, so that one failure hides no other."""
        if self.out_of_time():
            self.document["left_out"] = self.document.get("left_out", 0) + 1
            return
        row: dict[str, Any] = {"kind": kind, **labels}
        started = time.monotonic()
        try:
            row |= measure()
        except Exception as error:
            words = str(error).strip().splitlines() or [""]
            row["error"] = f"{type(error).__name__}: {words[0][:300]} ... {words[-1][:300]}"
        row["took_s"] = round(time.monotonic() - started, 1)
        self.rows.append(row)
        print("  ".join(f"{name}={_short(value)}" for name, value in row.items()), flush=True)
        self.write()
        torch.cuda.empty_cache()

    def write(self) -> None:
        """Write everything so far."""
        if self.path:
            text = json.dumps({**self.document, "seconds": round(time.monotonic() - self.started, 1)}, indent=1)
            Path(self.path).write_text(text + "\n")


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + " ".join(f"{name}:{_short(part)}" for name, part in value.items()) + "}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def median_ms(work: Callable[[], Any], repeats: int = 30) -> float:
    """Median milliseconds with the L2 cache flushed before each run.

    The work is captured in a graph, so that what is timed is the device's and not the interpreter's; work that cannot
    be captured is launched as it is.
    """
    flush = torch.empty(_FLUSH_BYTES, dtype=torch.int8, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    replay = _captured(work)
    times = []
    for index in range(repeats + 3):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        replay()
        end.record()
        torch.cuda.synchronize()
        if index >= 3:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def _captured(work: Callable[[], Any]) -> Callable[[], Any]:
    """A replay of ``work``; work that waits for the device is left as it is, since its capture would fail half-way."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        work()
    except RuntimeError:
        print("    (waits for the device, so not captured in a graph: launches are in the time)", flush=True)
        return work
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def host_us(work: Callable[[], Any], repeats: int = 20) -> float:
    """Microseconds the processor needs to launch the work once."""
    work()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    spent = (time.perf_counter() - started) / repeats * 1e6
    torch.cuda.synchronize()
    return spent


def peak_mib(work: Callable[[], Any]) -> float:
    """Device memory the work takes beyond what is held already."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return float(torch.cuda.max_memory_allocated() - before) / 2**20


def worst_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest error of any element, relative to the element plus the root mean square of the whole."""
    expected = expected.detach().double()
    scale = expected.abs() + expected.square().mean().sqrt()
    error: torch.Tensor = ((result.double() - expected).abs() / scale.clamp_min(1e-30)).nan_to_num(torch.inf)
    return float(error.max().detach())


def ceilings() -> dict[str, float]:
    """What this card copies (GB/s, read and written) and multiplies (TFLOP/s, 8192^3 in bfloat16)."""
    source = torch.ones(512 << 20, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    copy_ms = median_ms(lambda: torch.neg(source, out=target), 10)
    a, b = (draw(8192, 8192) for _ in range(2))
    matmul_ms = median_ms(lambda: a @ b, 10)
    return {"copy_gb_s": 2 * source.nbytes / copy_ms / 1e6, "matmul_tflop_s": 2 * 8192**3 / matmul_ms / 1e9}
