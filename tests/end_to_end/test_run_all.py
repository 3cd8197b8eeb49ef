"""The whole pipeline on real tools: each stage fed by the manifest of the one before, a second run that skips, one page at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amdflow.pipeline.manifest import Status, read_manifest
from amdflow.stages import ORDER
from tests.conftest import CommandLine

pytestmark = pytest.mark.usefixtures("no_orphans")


def test_run_all_then_again_then_with_a_change(project: CommandLine) -> None:
    root = project.folder
    first = project("run-all", "--format", "json")
    assert first.code == 0, first.err
    assert [item["stage"] for item in first.json["stages"]] == list(ORDER)
    assert not any(item["skipped"] for item in first.json["stages"])

    manifests = {name: read_manifest(root / "out" / name / "manifest.json") for name in ORDER}
    for name, manifest in manifests.items():
        assert manifest.status in (Status.OK, Status.OK_WITH_FINDINGS), name
        assert manifest.error is None
        text = (root / "out" / name / "manifest.json").read_text()
        assert str(root) not in text, f"{name} has an absolute path of the workspace in its manifest"
        for artifact in manifest.outputs:
            assert (root / "out" / name / artifact.path).is_file(), artifact.path
    for name, before in zip(ORDER[1:], ORDER[:-1], strict=True):
        upstream = manifests[name].upstream
        assert upstream is not None
        assert upstream.stage == before
    assert "hipMalloc" in (root / "out/migrate" / manifests["migrate"].handoff["tree"] / "scale.cu").read_text()
    assert manifests["kernels"].handoff["ops"]["rms_norm"]["gfx942"]
    assert [step for step, _loss in manifests["finetune"].metrics["loss"]][-1] == 8
    smoke = json.loads((root / "out/serve/smoke.json").read_text())
    assert smoke["finish_reason"] in ("stop", "length")
    assert smoke["prompt_tokens"] > 0
    page = (root / "out/report.html").read_text()
    assert all(name in page for name in ORDER)

    second = project("run-all", "--format", "json")
    assert second.code == 0, second.err
    assert [item["skipped"] for item in second.json["stages"]] == [True, True, True, True, False]
    assert all(item["reason"] for item in second.json["stages"])

    training = json.loads((root / "train.yaml").read_text())
    (root / "train.yaml").write_text(json.dumps(training | {"learning_rate": 2e-3}))
    dry = project("run-all", "--dry-run")
    assert dry.code == 0, dry.err
    assert "learning_rate" in dry.err
    standing = {row["stage"]: row for row in project("status", "--format", "json").json}
    assert standing["migrate"]["fresh"]
    assert not standing["finetune"]["fresh"]
    assert project("status", "--check").code == 4


def test_a_broken_stage_stops_the_chain_and_names_the_way_on(project: CommandLine) -> None:
    (project.folder / "data/tiny.jsonl").unlink()
    said = project("run-all", "--from", "finetune")
    assert said.code == 2
    assert "tiny.jsonl" in said.err
    assert "amdflow run-all --from finetune" in said.err


def test_a_bad_section_far_down_is_refused_before_anything_runs(project: CommandLine) -> None:
    config = project.folder / "amdflow.yaml"
    config.write_text(config.read_text().replace("serve: {", "serve: {prot: 1, "))
    said = project("run-all")
    assert said.code == 2
    assert "unknown key 'prot' (did you mean port?)" in said.err
    assert not (project.folder / "out").exists()


def test_init_makes_a_project_that_knows_itself(amdflow: CommandLine) -> None:
    assert amdflow("init", "new project").code == 0
    new = CommandLine(amdflow.folder / "new project", amdflow.environment)
    assert new("config", "show").code == 0
    dry = new("run-all", "--dry-run", "--until", "kernels")
    assert dry.code == 0, dry.err
    assert "migrate: would run" in dry.err
    again = amdflow("init", "new project")
    assert again.code == 2
    assert "already is an amdflow project" in again.err
    assert Path(new.folder / ".github/workflows/amdflow.yml").is_file()
