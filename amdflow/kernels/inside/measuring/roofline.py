"""A roofline picture as SVG: what was achieved under what the card can do. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .summary import OURS, Comparison, ceiling_of, comparisons

_WIDTH, _HEIGHT = 1080, 620
_LEFT, _TOP, _RIGHT, _BOTTOM = 72, 64, 690, 556
_COLOURS = (
    "#c2410c",
    "#1d4ed8",
    "#15803d",
    "#7e22ce",
    "#be123c",
    "#0f766e",
    "#a16207",
    "#4338ca",
    "#0e7490",
    "#57534e",
)
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1c1917}.small{font-size:11.5px;fill:#57534e}.title{font-size:17px;"
    "font-weight:600}.grid{stroke:#e7e5e4}.roof{fill:none;stroke:#1c1917;stroke-width:2}.bound{font-weight:600}"
)


@dataclass(frozen=True)
class _Point:
    op: str
    which: str
    title: str
    intensity: float
    """FLOP for each byte to or from memory."""
    tflop_s: float
    ours: bool
    of_roof: float


@dataclass(frozen=True)
class _Axes:
    """Powers of ten at the ends of both axes."""

    x: tuple[int, int]
    y: tuple[int, int]

    def place(self, intensity: float, tflop_s: float) -> tuple[float, float]:
        across = (math.log10(intensity) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(tflop_s) - self.y[0]) / (self.y[1] - self.y[0])
        return round(_LEFT + across * (_RIGHT - _LEFT), 1), round(_BOTTOM - up * (_BOTTOM - _TOP), 1)


def roofline(document: Mapping[str, Any], dtype: str) -> str | None:
    """The picture of what was measured in ``dtype``; None when the card's ceilings or all times are missing.

    Filled marks are ours, hollow ones the fastest other contender; a circle is the forward pass, a square forward and
    backward together.
    """
    ceiling = ceiling_of(document, dtype)
    points = [point for one in comparisons(document) if one.dtype == dtype for point in _points(one)]
    if ceiling is None or not points:
        return None
    copy, matmul = ceiling["copy_gb_s"] / 1e3, ceiling["matmul_tflop_s"]
    ridge = matmul / copy
    xs, ys = [point.intensity for point in points] + [ridge], [point.tflop_s for point in points] + [matmul]
    axes = _Axes((_floor(min(xs)), _ceil(1.2 * max(xs))), (_floor(min(ys)), _ceil(1.2 * max(ys))))
    colours = {op: _COLOURS[index % len(_COLOURS)] for index, op in enumerate(dict.fromkeys(p.op for p in points))}
    title = f"{document['gpu']} ({document['target']}), {dtype}: measured, caches cold"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="30">{escape(title)}</text>',
        *_grid(axes),
        *_roof(axes, copy, matmul),
        *(_mark(axes, point, colours[point.op]) for point in sorted(points, key=lambda point: point.ours)),
        *_legend(points, colours),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _points(one: Comparison) -> Iterator[_Point]:
    for name in (OURS, one.best_other):
        found = one.measured.get(name)
        if found and found.get("flop") and "of_roof" in found:
            who = "" if name == OURS else f" ({name})"
            title = f"{one.title} {one.which}{who}: {found['tflop_s']:.3g} TFLOP/s, {found['gb_s']:.0f} GB/s, {100 * found['of_roof']:.0f} % of the roof"
            yield _Point(one.op, one.which, title, found["intensity"], found["tflop_s"], name == OURS, found["of_roof"])


def _grid(axes: _Axes) -> Iterator[str]:
    for power in range(axes.x[0], axes.x[1] + 1):
        x, _ = axes.place(10.0**power, 10.0 ** axes.y[0])
        yield f'<path class="grid" d="M{x} {_TOP}V{_BOTTOM}"/>'
        yield f'<text class="small" x="{x}" y="{_BOTTOM + 18}" text-anchor="middle">{10.0**power:g}</text>'
    for power in range(axes.y[0], axes.y[1] + 1):
        _, y = axes.place(10.0 ** axes.x[0], 10.0**power)
        yield f'<path class="grid" d="M{_LEFT} {y}H{_RIGHT}"/>'
        yield f'<text class="small" x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{10.0**power:g}</text>'
    middle = (_LEFT + _RIGHT) / 2
    yield f'<text x="{middle}" y="{_BOTTOM + 42}" text-anchor="middle">FLOP for each byte to or from memory</text>'
    yield f'<text x="18" y="{(_TOP + _BOTTOM) / 2}" text-anchor="middle" transform="rotate(-90 18 {(_TOP + _BOTTOM) / 2})">TFLOP/s</text>'


def _roof(axes: _Axes, copy: float, matmul: float) -> Iterator[str]:
    """``copy`` in TB/s, ``matmul`` in TFLOP/s. The slope begins where it enters the picture."""
    first = max(10.0 ** axes.x[0], 10.0 ** axes.y[0] / copy)
    corners = [(first, first * copy), (matmul / copy, matmul), (10.0 ** axes.x[1], matmul)]
    places = [axes.place(*corner) for corner in corners]
    yield '<path class="roof" d="M' + "L".join(f"{x} {y}" for x, y in places) + '"/>'
    x, y = places[1]
    yield f'<text class="bound" x="{x + 6}" y="{y - 9}">matrix product {matmul:.0f} TFLOP/s</text>'
    intensity = (first * (matmul / copy) ** 3) ** 0.25  # three quarters of the way up
    along = axes.place(intensity, intensity * copy)
    angle = math.degrees(math.atan2(places[0][1] - y, x - places[0][0]))
    yield (
        f'<text class="bound" x="{along[0]}" y="{along[1] - 9}" text-anchor="middle" '
        f'transform="rotate({-angle:.1f} {along[0]} {along[1]})">copy {1e3 * copy:.0f} GB/s</text>'
    )


def _mark(axes: _Axes, point: _Point, colour: str) -> str:
    x, y = axes.place(point.intensity, point.tflop_s)
    return _shape(x, y, point.which, colour, filled=point.ours, title=point.title)


def _shape(x: float, y: float, which: str, colour: str, *, filled: bool, title: str = "") -> str:
    looks = f'fill="{colour if filled else "#fff"}" fill-opacity="{0.85 if filled else 0.6}" stroke="{colour}" stroke-width="1.5"'
    hover = f"<title>{escape(title)}</title>" if title else ""
    if which == "forward":
        return f'<circle cx="{x}" cy="{y}" r="5" {looks}>{hover}</circle>'
    return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" {looks}>{hover}</rect>'


def _legend(points: Sequence[_Point], colours: Mapping[str, str]) -> Iterator[str]:
    x, y = _RIGHT + 34, _TOP + 4
    yield f'<text x="{x - 6}" y="{y}">share of the roof reached</text>'
    groups: dict[tuple[str, str], list[_Point]] = {}
    for point in points:
        groups.setdefault((point.op, point.which), []).append(point)
    for (op, which), members in groups.items():
        y += 21
        shares = [100 * point.of_roof for point in members if point.ours]
        others = [100 * point.of_roof for point in members if not point.ours]
        text = f"{op}: {_range(shares)}" + (f", best other {_range(others)}" if others else "")
        yield _shape(x, y - 4, which, colours[op], filled=bool(shares))
        yield f'<text class="small" x="{x + 12}" y="{y}">{escape(text)}</text>'
    y += 30
    yield f'<text class="small" x="{x - 6}" y="{y}">filled: ours; hollow: the fastest other contender</text>'
    yield f'<text class="small" x="{x - 6}" y="{y + 17}">circle: forward; square: forward and backward</text>'


def _range(shares: Sequence[float]) -> str:
    if not shares:
        return "-"
    low, high = round(min(shares)), round(max(shares))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _floor(value: float) -> int:
    return math.floor(math.log10(value))


def _ceil(value: float) -> int:
    return math.ceil(math.log10(value))
