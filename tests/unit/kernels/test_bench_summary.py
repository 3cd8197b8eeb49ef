"""What a file of measured rows is turned into: comparisons, verdicts, a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import ExitCode
from amdflow.kernels.bench import Measured, Wanted, failure, no_gpu
from amdflow.kernels.inside.measuring.roofline import roofline
from amdflow.kernels.inside.measuring.sizes import CHECKED, OPERATORS, TIMED
from amdflow.kernels.inside.measuring.summary import COLUMNS, comparisons, is_wrong, problems, summary_lines
from amdflow.toolchain import Engine
from tests.unit.kernels.measured import document, timed

FORWARD = (1e9, 4e9, 2.0)
FAILED = {"kind": "time", "op": "rope", "dtype": "bfloat16", "sizes": {"rows": 8, "causal": True}, "error": "no memory"}
CHECK = {"kind": "check", "op": "rope", "dtype": "bfloat16", "sizes": {}, "allowed": 0.01}
SVG = "{http://www.w3.org/2000/svg}"


def test_contenders_are_put_side_by_side_and_ours_is_held_against_the_best_of_the_others() -> None:
    rows = [timed("rope", name, forward=(1e9, 4e9, ms)) for name, ms in (("ours", 2.0), ("eager", 9.0), ("liger", 1.5))]
    (found,) = comparisons(document(*rows))
    assert (found.best_other, found.ratio) == ("liger", 0.75)
    cells = dict(zip(COLUMNS, found.cells(), strict=True))
    assert cells["operator"] == "rope rows=8 causal"
    assert (cells["ours ms"], cells["warm"], cells["eager"], cells["torch"]) == ("2.000", "1.600", "9.000", "-")
    assert (cells["GB/s"], cells["of roof"], cells["best other"]) == ("2000", "50 %", "0.75 x liger")


def test_a_contender_that_fails_is_named_and_hides_no_other() -> None:
    ours = timed("rope", "ours", forward=FORWARD, both=FORWARD)
    said = document(ours, FAILED | {"contender": "liger"})
    found = comparisons(said)
    assert [one.which for one in found] == ["forward", "forward+backward"]
    assert all(one.cells()[COLUMNS.index("liger")] == "failed" for one in found)
    assert all(one.ratio is None for one in found)
    assert problems(said) == ["time rope bfloat16 {'rows': 8, 'causal': True} liger: no memory"]
    assert not any(map(is_wrong, said["rows"]))


def test_when_ours_fails_the_others_are_still_shown() -> None:
    said = document(FAILED | {"contender": "ours"}, timed("rope", "eager", forward=FORWARD))
    (found,) = comparisons(said)
    assert found.cells()[COLUMNS.index("ours ms")] == "failed"
    assert found.cells()[COLUMNS.index("eager")] == "2.000"
    assert sum(map(is_wrong, said["rows"])) == 1


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({"worst": 0.009}, False),
        ({"worst": 0.011}, True),
        ({"worst": None}, True),  # what is not finite is null in JSON
        ({"error": "it crashed"}, True),
    ],
)
def test_a_number_is_wrong_when_it_is_off_infinite_or_missing(row: dict[str, Any], wrong: bool) -> None:
    assert is_wrong(CHECK | row) is wrong
    measured = Measured(document(CHECK | row), Path("bench.json"), ())
    assert (failure(measured) is not None) is wrong


def test_the_plain_summary_has_both_tables_and_says_what_is_missing() -> None:
    said = document(CHECK | {"worst": 0.5, "eager_errors": [0.001]}, timed("rope", "ours", forward=FORWARD))
    lines = summary_lines(said | {"left_out": 3})
    assert any(line.startswith("rope") and line.endswith("WRONG") for line in lines)
    assert lines[-1] == "3 rows, 1 wrong, 3 left out for lack of time"


def test_the_picture_has_the_roof_and_each_point_under_it() -> None:
    rows = [
        timed("rope", "ours", forward=(1e9, 4e9, 2.0), both=(3e9, 9e9, 4.0)),
        timed("rope", "eager", forward=(1e9, 4e9, 8.0)),
        timed("gemm", "ours", forward=(1e12, 1e8, 2.5)),
    ]
    picture = roofline(document(*rows), "bfloat16")
    assert picture is not None
    svg = ET.fromstring(picture)
    (roof,) = (path for path in svg.iter(f"{SVG}path") if path.get("class") == "roof")
    corners = [tuple(map(float, pair.split())) for pair in str(roof.get("d"))[1:].split("L")]
    assert corners[0][1] > corners[1][1] == corners[2][1]
    titles = {str(title.text): shape for shape in svg.iter() for title in shape.findall(f"{SVG}title")}
    assert any("matrix product 500 TFLOP/s" in str(text.text) for text in svg.iter(f"{SVG}text"))
    forward = next(shape for text, shape in titles.items() if text.startswith("rope rows=8 causal forward:"))
    slow = next(shape for text, shape in titles.items() if "(eager)" in text)
    assert forward.get("cx") == slow.get("cx")  # the same work
    assert float(str(forward.get("cy"))) < float(str(slow.get("cy")))  # in less time
    assert all(float(str(shape.get("cy") or shape.get("y"))) > corners[1][1] for shape in list(titles.values())[1:])
    assert sum("TFLOP/s, " in text for text in titles) == 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_there_is_no_picture_without_ceilings_or_times(dtype: str) -> None:
    rows = [timed("rope", "ours", forward=FORWARD)] if dtype == "float16" else []
    assert roofline(document(*rows), dtype) is None


def test_every_operator_is_checked_and_timed_at_real_sizes() -> None:
    assert set(CHECKED) == set(TIMED) == set(OPERATORS)
    assert max(sizes["hidden"] for sizes in CHECKED["rms_norm"]) == 8192
    assert any(sizes.get("tokens") == 4096 for sizes in CHECKED["attention"])


def test_what_was_asked_for_reaches_the_script() -> None:
    wanted = Wanted(("rope", "gemm"), ("float16",), "", check=True, minutes=0.5)
    words = wanted.arguments(Path("bench.json"))
    assert words == [
        "--json",
        "bench.json",
        "--dtype",
        "float16",
        "--only",
        "rope,gemm",
        "--check",
        "--time-limit",
        "30.0",
    ]


def test_without_a_gpu_the_error_says_what_can_be_done_instead() -> None:
    error = no_gpu(Engine("kernels", Path("python"), {}, "cpu", torch_build="cpu"))
    assert error.exit_code is ExitCode.ENVIRONMENT
    assert "torch built for cpu" in error.message
    assert "amdflow kernels tune" in error.hint
    assert "amdflow kernels test" in error.hint
