"""SARIF and GitHub annotations."""

from __future__ import annotations

from dataclasses import replace

from amdflow.findings import Finding, Severity
from amdflow.report.github import workflow_commands
from amdflow.report.sarif import sarif
from tests.unit.report.reports import MASK, PTX, WARP


def test_sarif_has_rules_levels_and_relative_places() -> None:
    run = sarif([WARP, PTX, MASK, WARP], prefix="cuda_src/")["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["AMF1002", "AMF1001", "AMF1004"]
    assert rules[0]["shortDescription"] == {"text": "Warp size fixed to 32"}
    assert [result["level"] for result in run["results"]] == ["error", "error", "note", "error"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "cuda_src/src/a.cu", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 2, "snippet": {"text": "constexpr int kWarp = 32;"}}


def test_sarif_uris_are_escaped_and_whole_file_findings_have_no_region() -> None:
    odd = sarif([Finding("AMF1", Severity.NOTE, "m", "a b/注#%\udcff.cu")])["runs"][0]["results"][0]
    location = odd["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": "a%20b/%E6%B3%A8%23%25%FF.cu", "uriBaseId": "SRCROOT"}}
    assert "locations" not in sarif([Finding("AMF1", Severity.NOTE, "m")])["runs"][0]["results"][0]


def test_a_sarif_fingerprint_survives_a_moved_line_and_tells_twins_apart() -> None:
    def prints(*findings: Finding) -> list[str]:
        return [result["partialFingerprints"]["amdflow/v1"] for result in sarif(findings)["runs"][0]["results"]]

    assert prints(WARP) == prints(replace(WARP, line=90, snippet="constexpr  int kWarp = 32;"))
    assert prints(WARP) != prints(replace(WARP, path="src/other.cu"))
    assert len(set(prints(WARP, WARP, PTX))) == 3


def test_annotations_come_worst_first_with_their_place() -> None:
    worst, mildest = workflow_commands([MASK, replace(WARP, column=7)], prefix="cuda_src")
    place, _, text = worst.partition(",title=")
    assert place == "::error file=cuda_src/src/a.cu,line=2,col=7"
    assert (
        text == "AMF1002 Warp size fixed to 32::`kWarp` is 32; CDNA runs 64 lanes%0AFix: Ask the device for its width"
    )
    assert mildest == "::notice file=cuda_src/include/c.cuh,line=3,title=AMF1004::mask widened to 64 bits"


def test_annotations_cannot_be_broken_out_of() -> None:
    finding = Finding("AMF1", Severity.SLOW, "50%\r\n::error::fake", "a,b:c%.cu", title="x,y: z")
    assert workflow_commands([finding]) == [
        "::warning file=a%2Cb%3Ac%25.cu,title=AMF1 x%2Cy%3A z::50%25%0D%0A::error::fake"
    ]
