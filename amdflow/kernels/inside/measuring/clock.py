"""Medians with device events, cold and warm cache, and what a card copies and multiplies at most."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

FLUSH_BYTES = 512 << 20
"""Written before each cold run: twice the largest last-level cache there is (MI300X: 256 MiB)."""
_WARM_UP = 3
Work = Callable[..., Any]


@cache
def _generator(device: str) -> torch.Generator:
    """A generator of its own: a failed graph capture can leave torch's default one unusable."""
    return torch.Generator(device).manual_seed(0)


def draw(*shape: int, dtype: torch.dtype = torch.bfloat16, device: str = "cuda", scale: float = 1.0) -> torch.Tensor:
    """Normally distributed values."""
    return (torch.randn(*shape, device=device, generator=_generator(device)) * scale).to(dtype)


def medians(work: Callable[[], Any], repeats: int = 30) -> dict[str, Any]:
    """Median milliseconds of ``work``: ``cold_ms`` with the caches flushed before each run, ``warm_ms`` without.

    The work is captured in a graph, so that what is timed is the device's and not the interpreter's. Work that cannot
    be captured is launched as it is, and ``captured`` is False: then its launches are in the time.
    """
    replay, captured = capture(work)
    cold = median_ms(replay, repeats, flush=True)
    return {"cold_ms": cold, "warm_ms": median_ms(replay, repeats, flush=False), "captured": captured}


def median_ms(work: Callable[[], Any], repeats: int, *, flush: bool) -> float:
    """Median milliseconds of ``work`` as it is; with ``flush`` the caches are written full before each run."""
    filler = torch.empty(FLUSH_BYTES if flush else 1, dtype=torch.int8, device="cuda")
    times: list[float] = []
    for index in range(repeats + _WARM_UP):
        if flush:
            filler.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        if index >= _WARM_UP:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def capture(work: Callable[[], Any]) -> tuple[Callable[[], Any], bool]:
    """A replay of ``work`` and True; ``work`` itself and False when it waits for the device, since its capture would fail half-way."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):
            work()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        work()
    except RuntimeError:
        return work, False
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay, True


def host_us(work: Callable[[], Any], repeats: int = 10) -> float:
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


def ceilings(dtype: torch.dtype, size: int = 8192) -> dict[str, float]:
    """What this card copies (GB/s, read and written, out of cache) and multiplies (TFLOP/s, two square matrices)."""
    source = torch.ones(FLUSH_BYTES, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    copy_ms = median_ms(lambda: torch.neg(source, out=target), 10, flush=True)
    a, b = (draw(size, size, dtype=dtype) for _ in range(2))
    product = torch.empty_like(a)
    matmul_ms = median_ms(lambda: torch.mm(a, b, out=product), 10, flush=True)
    return {"copy_gb_s": 2 * source.nbytes / copy_ms / 1e6, "matmul_tflop_s": 2.0 * size**3 / matmul_ms / 1e9}
