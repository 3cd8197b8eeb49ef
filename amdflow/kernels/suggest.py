"""Finds tile settings that fit, for a kernel that does not: smaller tiles are built until one is within budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from amdflow.gpu.targets import target
from amdflow.kernels.budget import judge
from amdflow.kernels.build import Line
from amdflow.kernels.item import Item

_SMALLEST = 16
_FEWEST_THREADS = 64
_TRIES = 4


def smaller_tiles(tiles: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Settings that ask for less, step by step: the largest block size is halved each time.

    Each comes with as many threads as before and with half of them: a small tile can't be shared out among many waves.
    """
    current = dict(tiles)
    for _ in range(_TRIES):
        blocks = {name: size for name, size in current.items() if name.startswith("block") and size > _SMALLEST}
        if not blocks:
            return
        largest = max(blocks, key=blocks.__getitem__)
        current = {**current, largest: current[largest] // 2}
        yield dict(current)
        if current.get("threads", 0) > _FEWEST_THREADS:
            yield {**current, "threads": current["threads"] // 2}


def fitting_tiles(item: Item, line: Line) -> dict[str, Any] | None:
    """The first smaller settings with which ``item`` builds within its target's budget; None when none of a few does."""
    for tiles in smaller_tiles(dict(item.tiles)):
        trial = Line(line.run, line.engine, 1, line.rocm)
        for built in trial.make([replace(item, tiles=tiles)], title=f"settings that fit {item.name}"):
            verdict = judge(target(item.target), built.resources, built.launch, matrix=item.kernel.declaration.matrix)
            if not verdict.problems:
                return {name: value for name, value in tiles.items() if value != item.tiles[name]}
    return None
