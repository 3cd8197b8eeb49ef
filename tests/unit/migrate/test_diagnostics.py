"""What the compiler says, as findings with one root cause each."""

from __future__ import annotations

from pathlib import Path

from amdflow.findings import Finding
from amdflow.migrate.diagnostics import read_problems, root_causes

PAYLOAD = Path("/out/hip")
OUTPUT = """\
In file included from /out/hip/src/a.cu:3:
/out/hip/src/b.cuh:10:5: error: use of undeclared identifier 'cudaInitDevice'
/out/hip/src/b.cuh:20:5: error: use of undeclared identifier 'cudaInitDevice'
/rocm/include/hip/sync.h:99:3: error: static assertion failed: The mask must be a 64-bit integer
/out/hip/src/a.cu:7:9: note: in instantiation of function template specialization 'f<int>' requested here
2 errors generated when compiling for gfx942.
"""


def causes(*outputs: tuple[str, str]) -> list[Finding]:
    problems = [problem for unit, output in outputs for problem in read_problems(output, unit, "gfx942", PAYLOAD)]
    return root_causes(problems, lambda _path, line: line - 1, lambda name: name == "mine")


def test_errors_of_one_cause_are_one_finding_at_the_original_line() -> None:
    found = causes(("src/a.cu", OUTPUT), ("src/c.cu", OUTPUT))
    assert [(finding.path, finding.line) for finding in found] == [("src/b.cuh", 9), ("src/a.cu", 6)]
    assert found[0].extra["count"] == 2
    assert found[0].extra["units"] == ["src/a.cu", "src/c.cu"]
    assert "(2 places, 2 units)" in found[0].message
    assert found[0].targets == ("gfx942",)


def test_an_error_in_a_system_header_counts_for_the_line_that_led_there() -> None:
    found = causes(("src/a.cu", OUTPUT))
    assert "64-bit" in found[1].message
    assert (found[1].path, found[1].line) == ("src/a.cu", 6)


def test_one_missing_header_is_one_finding() -> None:
    line = "/out/hip/{}:1:10: fatal error: 'torch/extension.h' file not found\n"
    found = causes(*((f"{n}.cu", line.format(f"{n}.cu")) for n in range(40)))
    assert [finding.id for finding in found] == ["AMF1004"]
    assert found[0].extra["header"] == "torch/extension.h"
    assert found[0].extra["count"] == 40


def test_a_linker_message_without_a_place_is_kept() -> None:
    found = causes(
        (
            "a.cu",
            "ld.lld: error: undefined hidden symbol: f(int)\nclang: error: linker command failed with exit code 1\n",
        )
    )
    assert [(finding.path, finding.line) for finding in found] == [("a.cu", 0)]
    assert "undefined hidden symbol" in found[0].message


def test_a_compiler_that_dies_silently_is_reported() -> None:
    assert "without a word" in causes(("a.cu", ""))[0].message
    assert "Segmentation fault" in causes(("a.cu", "Stack dump:\nSegmentation fault\n"))[0].message


def test_names_of_the_tree_do_not_tell_causes_apart() -> None:
    lines = "/out/hip/a.cu:1:1: error: no member named 'mine' in 'T'\n/out/hip/a.cu:2:1: error: no member named 'x' in 'T'\n"
    assert len(causes(("a.cu", lines))) == 2
