"""A line chart worked out in Python and drawn as inline SVG: where the line goes, where the ticks stand, what hovering says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from amdflow.report.page import embed

_DRAWN_POINTS = 600
_SMOOTH_FROM = 40
"""Points from which a smoothed line is drawn over the raw one."""
_SMOOTHING = 0.9
Point = tuple[float, float]


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis; ``at`` is a percentage from the left or the bottom."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """One line chart. Paths are in a box of 100 by 100 that the page stretches."""

    name: str
    x_name: str
    raw: str
    smooth: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    points: tuple[tuple[float, float, float, float], ...]
    """What hovering may land on: x and y as percentages, x and y as values."""
    summary: str

    @property
    def hover(self) -> Markup:
        """The points as JSON for the page's script."""
        return embed(self.points)


def line_chart(name: str, pairs: Sequence[Sequence[float | None]], *, x_name: str = "step") -> Chart | None:
    """A chart of (x, y) pairs, or None when fewer than two of them are finite (None counts as not finite)."""
    points = sorted(
        (float(x), float(y))
        for x, y in pairs
        if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)
    )
    if len(points) < 2 or points[0][0] == points[-1][0]:
        return None
    lost = len(pairs) - len(points)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_ticks, y_ticks = ticks(min(xs), max(xs), 6, whole=all(x == int(x) for x in xs)), ticks(min(ys), max(ys), 5)
    low, high = min(*ys, y_ticks[0]), max(*ys, y_ticks[-1])
    left, width, height = xs[0], xs[-1] - xs[0], (high - low) or 1.0

    def place(point: Point) -> Point:
        return round(100 * (point[0] - left) / width, 3), round(100 * (point[1] - low) / height, 3)

    drawn = thin(points)
    summary = f"from {ys[0]:.4g} at {x_name} {xs[0]:g} to {ys[-1]:.4g} at {x_name} {xs[-1]:g}; lowest {min(ys):.4g}, highest {max(ys):.4g}."
    if lost:
        summary += f" {lost} {'value was' if lost == 1 else 'values were'} not finite and cannot be drawn."
    return Chart(
        name,
        x_name,
        raw=_path([place(point) for point in drawn]),
        smooth=_path([place(point) for point in thin(smoothed(points))]) if len(points) >= _SMOOTH_FROM else "",
        x_ticks=tuple(Tick(place((value, low))[0], f"{value:g}") for value in x_ticks if xs[0] <= value <= xs[-1]),
        y_ticks=tuple(Tick(place((left, value))[1], f"{value:.4g}") for value in y_ticks),
        points=tuple((*place(point), *point) for point in drawn),
        summary=summary,
    )


def ticks(low: float, high: float, about: int, *, whole: bool = False) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten apart) that reach from just below ``low`` to just above ``high``."""
    size = max(abs(low), abs(high))
    span = high - low
    if span <= 1e-9 * max(size, 1e-9):  # as good as flat: what is left of the difference is rounding
        span = size if size > 1e-9 else 1.0
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    if whole:
        step = max(1.0, step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def thin(points: Sequence[Point]) -> list[Point]:
    """At most some hundreds of points; of each stretch the lowest and the highest stay, so that spikes are never lost."""
    if len(points) <= _DRAWN_POINTS:
        return list(points)
    size = math.ceil(2 * len(points) / _DRAWN_POINTS)
    kept: set[int] = {0, len(points) - 1}
    for start in range(0, len(points), size):
        stretch = range(start, min(len(points), start + size))
        kept |= {min(stretch, key=lambda at: points[at][1]), max(stretch, key=lambda at: points[at][1])}
    return [points[index] for index in sorted(kept)]


def smoothed(points: Sequence[Point]) -> list[Point]:
    """An exponential moving average, freed of its start-up bias."""
    total = weight = 0.0
    result = []
    for x, y in points:
        total, weight = total * _SMOOTHING + y, weight * _SMOOTHING + 1
        result.append((x, total / weight))
    return result


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:g} {100 - y:g}" for x, y in points)
