"""What a file of measured rows says: one comparison for each operator, size, value type and pass. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OURS = "ours"
CONTENDERS = (OURS, "eager", "torch", "torch.compile", "liger")
COLUMNS = ("operator", "dtype", "pass", "ours ms", "warm", "GB/s", "TFLOP/s", "of roof", *CONTENDERS[1:], "best other")
NUMBERS = (3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
_PASSES = {"forward": "fwd", "forward+backward": "fwd+bwd"}
SHORT = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}


@dataclass(frozen=True)
class Comparison:
    """One operator at one size in one pass: what each contender took."""

    op: str
    sizes: Mapping[str, Any]
    dtype: str
    which: str
    """``forward`` or ``forward+backward``."""
    measured: Mapping[str, Mapping[str, Any]]
    """By contender; one that failed is not among them."""
    failed: Mapping[str, str]

    @property
    def best_other(self) -> str:
        """The fastest contender beside ours, by cold-cache time; empty when there is none."""
        others = [name for name in self.measured if name != OURS]
        return min(others, key=lambda name: float(self.measured[name]["cold_ms"]), default="")

    @property
    def ratio(self) -> float | None:
        """Time of the best other contender over ours: above 1, ours is faster."""
        if OURS not in self.measured or not self.best_other:
            return None
        return float(self.measured[self.best_other]["cold_ms"]) / float(self.measured[OURS]["cold_ms"])

    @property
    def title(self) -> str:
        """Operator and sizes for people."""
        words = [
            name if value is True else f"not {name}" if value is False else f"{name}={value}"
            for name, value in self.sizes.items()
        ]
        return " ".join([self.op, *words])

    def cells(self) -> list[str]:
        """As a row of text, in the order of ``COLUMNS``."""
        mine = self.measured.get(OURS, {})
        roof = mine.get("of_roof")
        return [
            self.title,
            SHORT.get(self.dtype, self.dtype),
            _PASSES.get(self.which, self.which),
            "failed" if OURS in self.failed else _ms(mine.get("cold_ms")),
            _ms(mine.get("warm_ms")),
            _number(mine.get("gb_s")),
            _number(mine.get("tflop_s")),
            "-" if roof is None else f"{100 * roof:.0f} %",
            *("failed" if name in self.failed else _ms(self._cold(name)) for name in CONTENDERS[1:]),
            "-" if self.ratio is None else f"{self.ratio:.2f} x {self.best_other}",
        ]

    def _cold(self, name: str) -> Any:
        return self.measured.get(name, {}).get("cold_ms")


def comparisons(document: Mapping[str, Any]) -> list[Comparison]:
    """The timed rows put side by side, in the order in which they were measured."""
    cases: dict[str, list[Mapping[str, Any]]] = {}
    for row in document["rows"]:
        if row["kind"] == "time":
            cases.setdefault(f"{row['op']} {row['sizes']} {row['dtype']}", []).append(row)
    found = []
    for rows in cases.values():
        failed = {str(row["contender"]): str(row["error"]) for row in rows if "error" in row}
        for which in dict.fromkeys(name for row in rows for name in row.get("passes", {"forward": None})):
            measured = {row["contender"]: row["passes"][which] for row in rows if which in row.get("passes", {})}
            found.append(Comparison(rows[0]["op"], rows[0]["sizes"], rows[0]["dtype"], which, measured, failed))
    return found


def ceiling_of(document: Mapping[str, Any], dtype: str) -> Mapping[str, float] | None:
    """What the card copies and multiplies in ``dtype``, where it was measured."""
    for row in document["rows"]:
        if row["kind"] == "ceilings" and row["dtype"] == dtype and "error" not in row:
            return {name: float(row[name]) for name in ("copy_gb_s", "matmul_tflop_s")}
    return None


def is_wrong(row: Mapping[str, Any]) -> bool:
    """Whether a row says that something of ours is wrong: a number off, a kernel that does not compile or run."""
    if row["kind"] == "check" and "error" not in row:
        worst = row["worst"]
        return worst is None or not worst <= row["allowed"]
    return "error" in row and row.get("contender", OURS) == OURS


def problems(document: Mapping[str, Any]) -> list[str]:
    """One line for each row that went wrong, of whichever contender."""
    lines = []
    for row in document["rows"]:
        name = " ".join(str(row[key]) for key in ("kind", "op", "dtype", "sizes", "contender") if key in row)
        if "error" in row:
            lines.append(f"{name}: {row['error']}")
        elif is_wrong(row):
            lines.append(f"{name}: worst error {row['worst']}, allowed {row['allowed']:.1e}")
    return lines


def check_cells(document: Mapping[str, Any]) -> list[list[str]]:
    """The compared numbers as rows of text: operator, dtype, worst error, eager's own, allowed, result."""
    cells = []
    for row in document["rows"]:
        if row["kind"] == "check":
            title = Comparison(row["op"], row["sizes"], row["dtype"], "", {}, {}).title
            numbers = [row.get("worst"), max(row.get("eager_errors") or [0.0]), row.get("allowed")]
            words = ["-" if value is None else f"{value:.1e}" for value in numbers]
            verdict = row.get("error") or ("WRONG" if is_wrong(row) else "ok")
            cells.append([title, SHORT.get(row["dtype"], row["dtype"]), *words, verdict])
    return cells


CHECK_COLUMNS = ("operator", "dtype", "worst error", "eager's", "allowed", "result")


def summary_lines(document: Mapping[str, Any]) -> list[str]:
    """Both tables in plain text, for a terminal that has nothing better."""
    tables: list[tuple[Sequence[str], list[list[str]]]] = [
        (CHECK_COLUMNS, check_cells(document)),
        (COLUMNS, [one.cells() for one in comparisons(document)]),
    ]
    lines = []
    for columns, rows in tables:
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        texts = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (columns, *rows)
        ]
        lines += [*texts, ""] if rows else []
    wrong = sum(map(is_wrong, document["rows"]))
    rows_text = f"{len(document['rows'])} rows, {wrong} wrong, {document['left_out']} left out for lack of time"
    return [*lines, *problems(document), rows_text]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 100 else f"{value:.0f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"
