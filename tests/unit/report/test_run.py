from __future__ import annotations

import json
from pathlib import Path

import pytest

from amdflow.findings import Severity
from amdflow.pipeline.manifest import CommandRecord, Status
from amdflow.report.metrics import plain, show
from amdflow.report.run import ROWS_SHOWN, summarise, write_run_report
from tests.unit.report.manifests import KERNEL, MACHINE, manifest, save, whole_run
from tests.unit.report.reports import WARP
from tests.unit.report.test_migration import Page


def page(workdir: Path) -> str:
    """The page's visible words, white space made single."""
    write_run_report(workdir, workdir / "report.html")
    return " ".join(" ".join(Page((workdir / "report.html").read_text(encoding="utf-8")).text).split())


def test_a_whole_run_is_shown_with_all_it_holds(tmp_path: Path) -> None:
    whole_run(tmp_path)
    text = page(tmp_path)
    assert "All 5 stages ended well" in text
    for words in (
        "1 min 30 s",
        "from 2.5 at step 1 to 1.5 at step 3",
        "1 value was not finite",
        "1.75 at step 3",
        "Who are you? <i>",
        "A pirate & a friend.",
        "11.4",
        "every tensor finite",
        "1.23 MB",
        "ab" * 32,
        "tool 'a b.cu'",
        "build-7",
        "no AMD GPU was found",
        "clang",
        "nested.depth",
        "amdflow.yaml",
        "hipify-clang 10, text map 2",
    ):
        assert words in text, words
    assert "did not" not in text


def test_nothing_run_is_said_plainly(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "No stage has run yet" in text
    assert "amdflow run-all --from migrate" in text


def test_a_part_of_the_chain_names_what_is_missing(tmp_path: Path) -> None:
    save(tmp_path, manifest("migrate"))
    text = page(tmp_path)
    assert "1 of 5 stages have run" in text
    assert "kernels, finetune, export and serve have not run." in text


@pytest.mark.parametrize(
    ("status", "said"), [(Status.FAILED, "finetune failed"), (Status.CANCELLED, "finetune was cancelled")]
)
def test_a_failed_stage_is_the_headline(tmp_path: Path, status: Status, said: str) -> None:
    whole_run(tmp_path)
    save(tmp_path, manifest("finetune", status, metrics={}, outputs=[]))
    text = page(tmp_path)
    assert f"{said}; 4 of 5 stages ended well" in text
    assert "finetune fell over" in text
    assert "stand up again" in text


def test_a_failed_attempt_over_a_good_result_shows_both(tmp_path: Path) -> None:
    whole_run(tmp_path)
    save(tmp_path, manifest("finetune", Status.FAILED, metrics={}), "attempt.json")
    text = page(tmp_path)
    assert "finetune failed" in text
    assert "The last good result, of 2026-11-30T10:01:30+00:00, is kept" in text
    assert "from 2.5 at step 1" in text


@pytest.mark.parametrize(
    "content",
    [
        '{"schema": "amdfl',
        "[]",
        '{"schema": "amdflow/manifest", "version": "9.0"}',
        '{"schema": "amdflow/manifest", "version": "1.0"}',
        "\0",
    ],
)
def test_a_manifest_that_cannot_be_read_is_shown_as_that(tmp_path: Path, content: str) -> None:
    whole_run(tmp_path)
    (tmp_path / "export" / "manifest.json").write_text(content)
    text = page(tmp_path)
    assert "export has a manifest that cannot be read; 4 of 5 stages ended well" in text
    assert summarise(tmp_path)["stages"][3]["error"]


def test_a_stage_made_from_something_older_is_named(tmp_path: Path) -> None:
    whole_run(tmp_path)
    assert "earlier result" not in page(tmp_path)
    save(tmp_path, manifest("kernels", upstream=None, handoff={"ops": {"new": 1}}))
    assert "finetune was made from an earlier result of the stage before." in page(tmp_path)


def test_findings_that_need_a_person_are_in_the_headline_and_the_worst_are_listed(tmp_path: Path) -> None:
    whole_run(tmp_path)
    save(tmp_path, manifest("migrate", Status.OK_WITH_FINDINGS, findings={"silent": 2, "note": 4}))
    (tmp_path / "migrate" / "findings.json").write_text(json.dumps({"findings": [WARP.to_json()]}))
    text = page(tmp_path)
    assert "All 5 stages ended; 2 findings need a person" in text
    assert "Warp size fixed to 32" in text
    (tmp_path / "migrate" / "findings.json").write_text("{")
    assert "silent 2" in page(tmp_path)


def test_a_stage_with_a_report_of_its_own_is_linked_instead_of_listed(tmp_path: Path) -> None:
    whole_run(tmp_path)
    save(tmp_path, manifest("migrate", Status.OK_WITH_FINDINGS, findings={"silent": 2}))
    (tmp_path / "migrate" / "findings.json").write_text(json.dumps({"findings": [WARP.to_json()]}))
    (tmp_path / "migrate" / "report.html").write_text("x")
    text = page(tmp_path)
    assert "silent 2" in text
    assert "Warp size fixed to 32" not in text
    assert 'href="migrate/report.html"' in (tmp_path / "report.html").read_text()
    assert "report.sarif" not in (tmp_path / "report.html").read_text()
    (tmp_path / "migrate" / "report.sarif").write_text("{}")
    (tmp_path / "migrate" / "report.md").write_text("x")
    assert "The same for other tools: report.md , report.sarif ." in page(tmp_path)
    assert 'href="migrate/report.sarif"' in (tmp_path / "report.html").read_text()


def test_links_are_right_when_the_page_lies_elsewhere(tmp_path: Path) -> None:
    whole_run(tmp_path / "out put")
    (tmp_path / "out put" / "migrate" / "report.html").write_text("x")
    (tmp_path / "pages").mkdir()
    write_run_report(tmp_path / "out put", tmp_path / "pages" / "run.html")
    assert 'href="../out%20put/migrate/report.html"' in (tmp_path / "pages" / "run.html").read_text()


def test_what_was_not_exercised_is_said(tmp_path: Path) -> None:
    whole_run(tmp_path)
    save(tmp_path, manifest("serve", not_exercised=["no HIP kernel ran: <CPU>"]))
    text = page(tmp_path)
    assert "1 thing could not be exercised on this machine" in text
    assert "no HIP kernel ran: <CPU>" in text


def test_long_lists_are_cut_and_say_so_with_failures_first(tmp_path: Path) -> None:
    commands = [
        CommandRecord(argv=["cc", f"{number}.cu"], exit_code=int(number == 999), seconds=0.1) for number in range(1000)
    ]
    save(tmp_path, manifest("migrate", commands=commands))
    text = page(tmp_path)
    assert "cc 999.cu" in text
    assert f"{1000 - ROWS_SHOWN} more are in the manifest." in text


def test_another_machine_is_named_and_gpus_are_listed(tmp_path: Path) -> None:
    whole_run(tmp_path)
    gpu = {"gfx": "gfx942", "name": "Instinct MI300X", "memory_gb": 192}
    save(tmp_path, manifest("migrate", environment={**MACHINE, "host": "node-2", "gpus": [gpu]}))
    text = page(tmp_path)
    assert "migrate ran on another machine" in text
    only = tmp_path / "only"
    save(only, manifest("migrate", environment={**MACHINE, "gpus": [gpu]}))
    assert "Instinct MI300X" in page(only)


def test_the_same_manifests_give_the_same_page(tmp_path: Path) -> None:
    whole_run(tmp_path)
    page(tmp_path)
    first = (tmp_path / "report.html").read_bytes()
    page(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == first


def test_a_kernel_over_its_targets_lds_stands_out_only_where_it_is() -> None:
    table = show({"kernels": [KERNEL, {**KERNEL, "target": "gfx950"}]}).tables[0]
    heads = [cell.text for cell in table.columns]
    assert heads[:5] == ["kernel", "dtype", "target", "sizes", "matrix instr."]
    assert table.rows[0][3].text == "head 128, causal yes"
    dynamic, limit = heads.index("LDS dynamic"), heads.index("LDS limit")
    assert [(row[dynamic].bad, row[limit].text) for row in table.rows] == [(True, "65,536"), (False, "163,840")]


def test_spills_stand_out_and_unknown_targets_are_no_error() -> None:
    table = show({"kernels": [{**KERNEL, "target": "gfx9999", "spills": 174}]}).tables[0]
    assert [cell.text for cell in table.rows[0] if cell.bad] == ["174"]


def test_no_metric_is_lost_whatever_its_shape() -> None:
    shown = show(
        {
            "a_b": 1,
            "empty": [],
            "none": None,
            "map": {"x": 1.5},
            "rows": [{"k": 1}, {"other": True}],
            "by": {"p": {"q": 2}},
            "mixed": [1, {"z": 2}],
            "yes": True,
        }
    )
    assert shown.facts == [
        ("a b", "1"),
        ("empty", "none"),
        ("none", "–"),
        ("map", "x 1.5"),
        ("mixed", '[1, {"z": 2}]'),
        ("yes", "yes"),
    ]
    assert [[cell.text for cell in row] for row in shown.tables[0].rows] == [["1", "–"], ["–", "yes"]]
    assert [cell.text for cell in shown.tables[1].rows[0]] == ["p", "2"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (12345.678, "12,346"),
        (0.00012345, "0.0001234"),
        (1234567, "1,234,567"),
        (["a", 2], "a, 2"),
        (["a b", "c"], "a b; c"),
        ({"a": 1, "b": None}, "a 1, b –"),
        ("", "–"),
        (float("nan"), "nan"),
    ],
)
def test_values_are_written_for_people(value: object, said: str) -> None:
    assert plain(value) == said


def test_the_headline_of_one_open_finding_is_singular(tmp_path: Path) -> None:
    whole_run(tmp_path)
    save(tmp_path, manifest("migrate", findings={Severity.COMPILE.value: 1}))
    assert summarise(tmp_path)["headline"] == "All 5 stages ended; 1 finding needs a person"
