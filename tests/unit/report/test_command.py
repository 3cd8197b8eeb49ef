"""``amdflow report`` as a person types it."""

from __future__ import annotations

from amdflow.files import write_json
from amdflow.report import findings_file
from tests.conftest import CommandLine
from tests.unit.report.manifests import whole_run
from tests.unit.report.reports import MASK, WARP


def test_it_writes_the_page_and_prints_its_path(amdflow: CommandLine) -> None:
    whole_run(amdflow.folder / "out")
    said = amdflow("report")
    assert (said.code, said.out.strip()) == (0, "out/report.html")
    assert "All 5 stages ended well" in (amdflow.folder / "out/report.html").read_text()


def test_json_sums_up_every_stage(amdflow: CommandLine) -> None:
    whole_run(amdflow.folder / "elsewhere")
    said = amdflow("report", "--workdir", "elsewhere", "--output", "pages/run.html", "--format", "json")
    assert said.code == 0, said.err
    assert said.json["report"] == "pages/run.html"
    assert [stage["state"] for stage in said.json["stages"]] == ["ok"] * 5
    assert (amdflow.folder / "pages/run.html").is_file()


def test_bad_places_are_refused_in_one_line(amdflow: CommandLine) -> None:
    nothing = amdflow("report")
    assert nothing.code == 2
    assert "nothing has run here yet" in nothing.err
    assert "amdflow run-all" in nothing.err
    (amdflow.folder / "out").mkdir()
    folder = amdflow("report", "--output", "out")
    assert folder.code == 2
    assert "--output out is a folder" in folder.err


def test_findings_as_annotations(amdflow: CommandLine) -> None:
    whole_run(amdflow.folder / "out")
    missing = amdflow("report", "--format", "github")
    assert missing.code == 2
    assert "amdflow migrate" in missing.err
    write_json(amdflow.folder / "out/migrate/findings.json", findings_file.as_json([MASK, WARP], "cuda_src"))
    said = amdflow("report", "--format", "github")
    assert said.code == 0, said.err
    assert [line.partition(",")[0] for line in said.out.splitlines()] == [
        "::error file=cuda_src/src/a.cu",
        "::notice file=cuda_src/include/c.cuh",
    ]
    assert amdflow("status", "--format", "github").code == 2, "only what has findings"
