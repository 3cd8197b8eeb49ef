from __future__ import annotations

from dataclasses import replace

import pytest

from amdflow.findings import Effort, Severity
from amdflow.report.effort import BASIS, HOURS, REPEAT_SHARE, estimate, words
from tests.unit.report.reports import MASK, PTX, WARP


def test_each_category_is_counted_by_its_stated_hours() -> None:
    found = estimate([WARP, PTX, MASK])
    by_effort = {line.effort: line for line in found.lines}
    assert (by_effort[Effort.HOURS].findings, by_effort[Effort.HOURS].low, by_effort[Effort.HOURS].high) == (
        1,
        1.0,
        6.0,
    )
    assert by_effort[Effort.MINUTES].high == 0.5
    assert by_effort[Effort.REDESIGN].findings == 0
    assert found.high == 6.5


def test_a_repeated_finding_in_a_file_costs_a_fifth_and_in_another_file_the_whole() -> None:
    assert estimate([WARP, WARP]).high == pytest.approx(6 * 1.2)
    assert estimate([WARP, replace(WARP, path="src/other.cu")]).high == 12


def test_notes_and_findings_without_effort_cost_nothing() -> None:
    assert estimate([MASK, replace(PTX, severity=Severity.NOTE)]).high == 0


def test_the_stated_basis_is_the_one_used() -> None:
    (low_minutes, high_minutes), (low_hours, high_hours), (low_design, high_design) = HOURS.values()
    assert f"minutes ({low_minutes * 60:.0f} to {high_minutes * 60:.0f} min)" in BASIS
    assert f"hours ({low_hours:.0f} to {high_hours:.0f} h)" in BASIS
    assert f"redesign ({low_design:.0f} to {high_design:.0f} h)" in BASIS
    assert round(1 / REPEAT_SHARE) == 5
    assert "a fifth of that" in BASIS


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0, 0, "none"),
        (0.1, 0.5, "6 to 30 minutes"),
        (0.01, 0.02, "1 minute"),
        (3, 14, "3 to 14 hours"),
        (56, 170, "7 to 21 working days"),
        (38, 41, "5 working days"),
    ],
)
def test_a_range_is_said_in_the_unit_that_fits(low: float, high: float, said: str) -> None:
    assert words(low, high) == said


def test_the_rules_parts_add_up_to_the_whole_and_say_their_counts() -> None:
    found = estimate([WARP, WARP, replace(WARP, path="src/other.cu"), PTX, MASK])
    assert [(row.id, row.first, row.repeats, row.effort) for row in found.rules] == [
        ("AMF1002", 2, 1, Effort.HOURS),
        ("AMF1001", 1, 0, Effort.MINUTES),
    ]
    assert sum(row.high for row in found.rules) == pytest.approx(found.high)
    assert sum(row.low for row in found.rules) == pytest.approx(found.low)
    assert found.rules[0].words() == "2 to 13 hours"
