"""Rule findings and compiler errors become one list, each place said once."""

from __future__ import annotations

from amdflow.findings import Finding, Severity
from amdflow.migrate.evidence import look_first_at
from amdflow.migrate.gather import join, still_holds


def rule(line: int, severity: Severity = Severity.COMPILE, rule_id: str = "AMF1204") -> Finding:
    return Finding(rule_id, severity, f"line {line}", "a.cuh", line, title="Bits")


def error(*lines: int, count: int = 0) -> Finding:
    places = [f"a.cuh:{line}" for line in lines]
    extra = {"places": places, "count": count or len(places), "units": ["a.cu", "b.cu"]}
    return Finding(
        "AMF1002", Severity.COMPILE, "invalid constraint", "a.cuh", lines[0], targets=("gfx942",), extra=extra
    )


def test_an_error_that_rules_explain_is_not_said_twice() -> None:
    found = join([rule(3), rule(9)], [error(3, 9)])
    assert [(finding.id, finding.line, finding.targets) for finding in found] == [
        ("AMF1204", 3, ("gfx942",)),
        ("AMF1204", 9, ("gfx942",)),
    ]


def test_an_error_with_a_place_of_its_own_stays() -> None:
    assert [finding.id for finding in join([rule(3)], [error(3, 4)])] == ["AMF1204", "AMF1002"]
    assert [finding.id for finding in join([rule(3)], [error(3, count=90)])] == ["AMF1204", "AMF1002"]
    assert [finding.id for finding in join([rule(3, Severity.SILENT)], [error(3)])] == ["AMF1204", "AMF1002"]


def test_what_to_look_at_first() -> None:
    silent = [rule(line, Severity.SILENT, "AMF1102") for line in range(1, 4)]
    shown = look_first_at([*silent, rule(50), error(7, 8)])
    assert [(cause["id"], cause["severity"]) for cause in shown] == [
        ("AMF1002", "compile"),
        ("AMF1204", "compile"),
        ("AMF1102", "silent"),
    ]
    assert shown[2]["message"] == "Bits (3 places)"


def test_warnings_of_the_tool_about_what_was_translated_since_go() -> None:
    unsupported = "'cublasGetStatusString' is unsupported in 'HIP'."
    assert still_holds(unsupported, "puts(cublasGetStatusString(s));")
    assert not still_holds(unsupported, "puts(hipblasStatusToString(s));  // cublasGetStatusString")
    assert not still_holds("'ulong4' is deprecated in CUDA.", "ulong4 a;")
    assert still_holds("Undocumented feature.", "")
