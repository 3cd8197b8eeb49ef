"""What a search came to, for people."""

from __future__ import annotations

import re
from collections.abc import Sequence

from amdflow.kernels.tune import Tuned
from amdflow.kernels.tune_space import Outcome, key_of


def table(result: Tuned, count: int) -> tuple[tuple[str, ...], list[list[str]], tuple[int, ...]]:
    """Columns, the ``count`` best settings and today's as rows of text, and the columns to align on the right.

    Of what was only ranked no milliseconds are shown: the model compares, it does not measure.
    """
    ranked = sorted((one for one in result.outcomes if one.score is not None), key=lambda one: one.score or 0.0)
    today = result.today
    shown = ranked[:count] + ([today] if today in ranked[count:] and today is not None else [])
    against = today.score if today is not None and today.score is not None else ranked[0].score if ranked else None
    facts = ("worst error",) if result.measured else ("waves", "VGPR", "LDS", "spills", "bound")
    score = "ms" if result.measured else "model"
    columns = (*result.task.kernel.space, score, "of today's", *facts, "")
    rows = [
        [
            *(str(one.settings[name]).lower() for name in result.task.kernel.space),
            f"{one.score:.4g}" if result.measured else str(ranked.index(one) + 1),
            "-" if not against else f"{100 * (one.score or 0.0) / against:.0f} %",
            *_facts(one, measured=result.measured),
            _mark(one, result),
        ]
        for one in shown
    ]
    return columns, rows, tuple(range(len(columns) - 1))


def remarks(result: Tuned) -> Sequence[str]:
    """Lines under the table: how it was done, how much of the space is known, what was written."""
    if not result.outcomes:
        return [f"{result.task.title}: {result.note}"]
    out = [one for one in result.outcomes if one.score is None]
    tried = f"{len(result.outcomes)} of {result.task.size} settings tried, {len(out)} of them out of the race"
    lines = [f"{result.how}; {tried}"]
    if out:
        reasons: dict[str, int] = {}
        for one in out:
            reasons[_kind(one.reason)] = reasons.get(_kind(one.reason), 0) + 1
        lines.append("out: " + "; ".join(f"{count} x {reason}" for reason, count in _most(reasons)))
    if result.note:
        lines.append(result.note)
    return lines


def _most(reasons: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda pair: -pair[1])[:3]


def _kind(reason: str) -> str:
    """A reason without its numbers, so that equal ones are counted together."""
    return re.sub(r"\d+", "N", reason)[:100]


def _facts(one: Outcome, *, measured: bool) -> list[str]:
    if measured:
        return [f"{one.facts['worst']:.1e}"]
    return [str(one.facts.get(name, "-")) for name in ("waves", "vgprs", "lds", "spills", "bound")]


def _mark(one: Outcome, result: Tuned) -> str:
    marks = ["today" if key_of(one.settings) == key_of(result.task.today) else ""]
    if result.best is not None and key_of(one.settings) == key_of(result.best.settings):
        marks.append("written" if result.written else "best")
    return ", ".join(filter(None, marks))
