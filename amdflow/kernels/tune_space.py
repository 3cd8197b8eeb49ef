"""What there is to try for one kernel, and in which order: near to the best so far first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amdflow.files import canonical_json
from amdflow.kernels.item import SHORT, sizes_text
from amdflow.kernels.sources import Kernel

Setting = int | bool
Settings = Mapping[str, Setting]


@dataclass(frozen=True)
class Task:
    """One kernel with its value type and sizes, to be tuned for one target."""

    kernel: Kernel
    target: str
    """A gfx name, or ``cuda``."""
    dtype: str
    sizes: Mapping[str, Any]
    """Fixed at build time."""
    run: Mapping[str, Any]
    """Given at launch."""
    tiles: Mapping[str, Setting]
    """All that the tile files say today."""

    @property
    def today(self) -> dict[str, Setting]:
        """The settings in use today, by each name that is searched."""
        return {name: self.tiles.get(name, self.kernel.defaults[name]) for name in self.kernel.space}

    @property
    def title(self) -> str:
        """For people: ``gemm bf16 n=4096 k=4096 for gfx942``."""
        words = [self.kernel.op, SHORT[self.dtype], sizes_text({**self.sizes, **self.run}), "for", self.target]
        return " ".join(word for word in words if word)

    def values(self, name: str) -> tuple[Setting, ...]:
        """What is tried for one setting, today's among it."""
        return tuple(dict.fromkeys((*self.kernel.space[name], self.today[name])))

    @property
    def size(self) -> int:
        """How many settings there are to try in all."""
        return math.prod(len(self.values(name)) for name in self.kernel.space)


@dataclass(frozen=True)
class Outcome:
    """What one setting came to."""

    settings: Settings
    score: float | None
    """Milliseconds, measured or as the model has it; None for one that is out of the race."""
    reason: str = ""
    """Why it is out."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Waves, registers, LDS; or the worst error."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "settings": dict(self.settings),
            "score": self.score,
            "reason": self.reason,
            "facts": dict(self.facts),
        }


def key_of(settings: Settings) -> str:
    """Equal for equal settings."""
    return canonical_json(dict(settings))


def best_of(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The one with the lowest score; the first of equals."""
    ranked = [one for one in outcomes if one.score is not None]
    return min(ranked, key=lambda one: one.score or 0.0, default=None)


def next_batch(task: Task, tried: Sequence[Outcome], count: int) -> list[dict[str, Setting]]:
    """Up to ``count`` settings not tried yet: the fewest changes from the best so far (today's at first) come first.

    Values that have only ever failed come last, so that one which this target refuses costs little. Empty when all
    have been tried.
    """
    best = best_of(tried)
    center = dict(best.settings) if best else task.today
    seen = {key_of(one.settings) for one in tried}
    suspects = _suspects(tried)
    names = list(task.kernel.space)
    found: list[tuple[tuple[int, int], dict[str, Setting]]] = []
    for values in itertools.product(*(task.values(name) for name in names)):
        settings = dict(zip(names, values, strict=True))
        if key_of(settings) not in seen:
            changes = sum(settings[name] != center[name] for name in names)
            bad = sum((name, value) in suspects for name, value in settings.items())
            found.append(((bad, changes), settings))
    found.sort(key=lambda pair: pair[0])  # stable: the order of the kernel's own lists decides between equals
    return [settings for _rank, settings in found[:count]]


def _suspects(tried: Sequence[Outcome]) -> set[tuple[str, Setting]]:
    good = {pair for one in tried if one.score is not None for pair in one.settings.items()}
    return {pair for one in tried if one.score is None for pair in one.settings.items()} - good
