"""A manifest's metrics as things a page can show: charts, tables, facts and a conversation. Nothing in them is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amdflow.gpu.targets import TARGETS
from amdflow.report.chart import Chart, line_chart

_WORDS = {
    "matrix_instructions": "matrix instr.",
    "vgprs": "VGPRs",
    "agprs": "AGPRs",
    "sgprs": "SGPRs",
    "lds_static": "LDS static",
    "lds_dynamic": "LDS dynamic",
    "lds_limit": "LDS limit",
    "waves_per_simd": "waves/SIMD",
    "intensity": "flop/byte",
    "predicted_bound": "bound (predicted)",
    "tokens_per_second": "tokens/s",
    "cpu": "CPU",
    "os": "OS",
    "rocm": "ROCm",
    "memory_gb": "memory, GB",
    "peak_rss_mb": "peak memory, MB",
    "peak_gpu_mb": "peak GPU memory, MB",
}
_KERNEL_COLUMNS = (
    "kernel",
    "dtype",
    "target",
    "sizes",
    "matrix_instructions",
    "vgprs",
    "agprs",
    "sgprs",
    "spills",
    "waves_per_simd",
    "limited_by",
    "lds_static",
    "lds_dynamic",
    "lds_limit",
    "intensity",
    "predicted_bound",
)
"""The order of what every kernel has; anything else comes after it."""
TABLE_ROWS = 300
"""Rows shown of one table; the manifest holds the rest."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its text, whether it is a figure, and whether it deserves attention."""

    text: str
    number: bool = False
    bad: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of one list-valued metric."""

    name: str
    columns: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0


@dataclass(frozen=True)
class Shown:
    """Everything in a manifest's metrics, sorted by how it is shown."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    talk: list[tuple[str, str]] = field(default_factory=list)
    """(who, text) of a smoke test: prompt and answer."""


def show(metrics: Mapping[str, Any]) -> Shown:
    """Sort the metrics of one manifest."""
    shown = Shown(talk=[(who, str(metrics[who])) for who in ("prompt", "answer") if metrics.get(who)])
    for name, value in metrics.items():
        if name in ("prompt", "answer"):
            continue
        chart = line_chart(words(name), value) if _is_pairs(value) else None
        if chart:
            shown.charts.append(chart)
        elif _is_pairs(value):
            shown.facts.append((words(name), ", ".join(f"{plain(y)} at step {plain(x)}" for x, y in value)))
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            shown.tables.append(table(name, value))
        elif isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
            shown.tables.append(table(name, [{"name": key, **row} for key, row in value.items()]))
        else:
            shown.facts.append((words(name), plain(value)))
    return shown


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows of equal or differing keys as a table; kernels get their columns in order, and each target's LDS limit."""
    if name == "kernels":
        rows = [
            {"lds_limit": TARGETS[row["target"]].lds_bytes, **row} if row.get("target") in TARGETS else row
            for row in rows
        ]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    if name == "kernels":
        keys.sort(key=lambda key: _KERNEL_COLUMNS.index(key) if key in _KERNEL_COLUMNS else len(_KERNEL_COLUMNS))
    numeric = {key: all(_is_number(row.get(key, 0)) for row in rows) for key in keys}
    shown = rows[:TABLE_ROWS]
    return Table(
        words(name),
        tuple(Cell(words(key), numeric[key]) for key in keys),
        tuple(tuple(Cell(plain(row.get(key)), numeric[key], _is_bad(key, row)) for key in keys) for row in shown),
        len(rows) - len(shown),
    )


def words(name: str) -> str:
    """A key as a heading."""
    return _WORDS.get(name, name.replace("_", " "))


def plain(value: Any) -> str:
    """A JSON value for a person."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ("; " if any(" " in str(item) for item in value) else ", ").join(map(plain, value)) or "none"
    if isinstance(value, dict) and all(item is None or isinstance(item, str | int | float) for item in value.values()):
        return ", ".join(f"{words(str(key))} {plain(item)}" for key, item in value.items()) or "none"
    return json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_pairs(value: Any) -> bool:
    """Whether it is a curve: [[step, value], ...], where a value that is not finite may have become null in JSON."""
    return isinstance(value, list) and bool(value) and all(_is_pair(pair) for pair in value)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and pair[0] is not None and all(map(_is_number, pair))


def _is_bad(key: str, row: Mapping[str, Any]) -> bool:
    value = row.get(key)
    if key == "spills":
        return bool(value)
    if key in ("lds_static", "lds_dynamic") and isinstance(row.get("lds_limit"), int):
        return bool(value) and int(row.get("lds_static") or 0) + int(row.get("lds_dynamic") or 0) > int(
            row["lds_limit"]
        )
    return key in ("ok", "passed") and value is False
