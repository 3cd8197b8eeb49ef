from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amdflow.report.chart import line_chart, smoothed, thin, ticks

FINITE = st.floats(-1e6, 1e6)


def test_a_curve_is_placed_in_its_box_and_described() -> None:
    chart = line_chart("loss", [[1, 4.0], [2, 2.0], [3, 1.0]])
    assert chart is not None
    assert chart.points == ((0.0, 100.0, 1.0, 4.0), (50.0, 33.333, 2.0, 2.0), (100.0, 0.0, 3.0, 1.0))
    assert [(tick.at, tick.label) for tick in chart.y_ticks][::3] == [(0.0, "1"), (100.0, "4")]
    assert chart.summary == "from 4 at step 1 to 1 at step 3; lowest 1, highest 4."


def test_values_that_are_not_finite_are_left_out_and_counted() -> None:
    chart = line_chart("loss", [[1, 4.0], [2, None], [3, math.nan], [4, math.inf], [5, 1.0]])
    assert chart is not None
    assert len(chart.points) == 2
    assert "3 values were not finite" in chart.summary


@pytest.mark.parametrize("pairs", [[], [[1, 2.0]], [[1, None], [2, None]], [[1, 2.0], [1, 3.0]]])
def test_nothing_to_draw_is_no_chart(pairs: list[list[float | None]]) -> None:
    assert line_chart("loss", pairs) is None


@pytest.mark.parametrize(
    ("first", "second"), [(0.0, 0.0), (0.0, 5e-324), (0.0, 1e-300), (5.0, 5.0), (5.0, 5.0 + 1e-15)]
)
def test_a_line_as_good_as_flat_is_drawn(first: float, second: float) -> None:
    chart = line_chart("loss", [[1, first], [2, second]])
    assert chart is not None
    assert all(math.isfinite(value) for point in chart.points for value in point)


@settings(deadline=None)
@given(st.lists(FINITE, min_size=2, max_size=200))
def test_every_point_lies_in_the_box(values: list[float]) -> None:
    chart = line_chart("loss", [[step, value] for step, value in enumerate(values)])
    assert chart is not None
    assert all(-0.01 <= x <= 100.01 and -0.01 <= y <= 100.01 for x, y, _, _ in chart.points)
    assert all(-0.01 <= tick.at <= 100.01 for tick in (*chart.x_ticks, *chart.y_ticks))


@settings(deadline=None)
@given(FINITE, FINITE)
def test_ticks_are_few_and_reach_around_the_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = ticks(low, high, 5)
    assert 1 <= len(found) <= 9
    slack = 1e-6 * max(1, abs(low), abs(high))
    assert found[0] <= low + slack
    assert found[-1] >= high - slack


def test_steps_get_whole_ticks() -> None:
    assert ticks(1, 4, 6, whole=True) == [1, 2, 3, 4]


def test_thinning_keeps_every_spike_and_both_ends() -> None:
    points = [(float(step), 1.0) for step in range(10_000)]
    points[4321] = (4321.0, 99.0)
    kept = thin(points)
    assert len(kept) <= 700
    assert (4321.0, 99.0) in kept
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]


def test_smoothing_starts_at_the_first_value() -> None:
    assert smoothed([(0, 5.0), (1, 5.0)]) == [(0, 5.0), (1, 5.0)]
    assert smoothed([(0, 0.0), (1, 10.0)])[1][1] == pytest.approx(10 / 1.9)
