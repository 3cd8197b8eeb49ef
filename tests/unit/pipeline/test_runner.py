"""The runner with a stage of its own: freshness, failure, resume, publishing, locks."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from amdflow.config import Model, Resolved
from amdflow.errors import AmdflowError, Cancelled, UsageError
from amdflow.findings import Finding, Severity
from amdflow.pipeline.manifest import Status, Upstream, read_manifest
from amdflow.pipeline.publish import recover
from amdflow.pipeline.runner import Options, Runner, StageReport
from amdflow.pipeline.stage import Input, Outcome, Output, Plan, Request, Run, Stage
from amdflow.pipeline.workspace import Destination, locked
from amdflow.terminal import Terminal


class CopyConfig(Model):
    suffix: str = "!"


class Copy(Stage[CopyConfig]):
    """Copies ``source.txt`` with a suffix; can be told to fail."""

    name, version, payload, summary = "copy", 1, "tree", "copy a file"
    config_type = CopyConfig
    resumable = True
    keeps_added = True
    edit_advice = "write them down"

    def __init__(self) -> None:
        self.runs = 0
        self.failure: Exception | None = None
        self.findings: list[Finding] = []
        self.over_limit = False
        self.from_upstream = True
        self.taken: object = None
        self.kept: set[str] = set()

    def plan(self, request: Request[CopyConfig]) -> Plan:
        source = request.root / "source.txt"
        return Plan(
            config={"suffix": request.config.suffix},
            inputs=[Input("source.txt", source)],
            tools={"cp": "1"},
            steps=["copy"],
            targets=request.targets,
            job=request,
            from_upstream=self.from_upstream,
            taken=self.taken,
        )

    def is_kept(self, plan: Plan, name: str, path: Path) -> bool:
        return name in self.kept and path.is_file()

    def execute(self, plan: Plan, run: Run) -> Outcome:
        self.runs += 1
        if self.failure:
            (run.scratch / "half").write_text("half")
            raise self.failure
        target = run.payload / "deep" / "copy.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(plan.job.path("source.txt").read_text() + plan.config["suffix"])
        (run.scratch / "report.md").write_text("report")
        return Outcome(
            [Output(target, "source"), Output(run.scratch / "report.md", "report")],
            self.findings,
            {"size": 1},
            {"tree": "tree"},
            over_limit=self.over_limit,
        )


class Tidy(Copy):
    keeps_added = False


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "source.txt").write_text("hello")
    return tmp_path


def go(
    stage: Copy,
    root: Path,
    *,
    output: Path | None = None,
    targets: Sequence[str] = ("gfx942",),
    suffix: str = "!",
    upstream: Upstream | None = None,
    **options: bool,
) -> StageReport:
    destination = (
        Destination.at_output(output, "copy") if output else Destination.in_workdir(root / "out", "copy", "tree")
    )
    runner = Runner(root, Terminal(quiet=True), None, lambda: {"host": "test"}, Options(**options))
    return runner.run(
        stage, Resolved(CopyConfig(suffix=suffix), {"suffix": "flag"}), destination, targets=targets, upstream=upstream
    )


def test_a_run_leaves_outputs_and_a_manifest_that_describes_them(root: Path) -> None:
    report = go(Copy(), root)
    assert (root / "out/copy/tree/deep/copy.txt").read_text() == "hello!"
    manifest = read_manifest(root / "out/copy/manifest.json")
    assert (manifest.status, manifest.exit_code, report.skipped) == (Status.OK, 0, False)
    assert [(item.path, item.size, item.role) for item in manifest.outputs] == [
        ("tree/deep/copy.txt", 6, "source"),
        ("report.md", 6, "report"),
    ]
    assert manifest.inputs[0].name == "source.txt"
    assert str(root) not in (root / "out/copy/manifest.json").read_text()


def test_a_second_run_is_skipped_and_each_kind_of_change_is_named(root: Path) -> None:
    stage = Copy()
    go(stage, root)
    again = go(stage, root)
    assert (again.skipped, again.reason, stage.runs) == (True, "nothing it depends on has changed", 1)
    assert 'config suffix changed: "!" -> "?"' in go(stage, root, suffix="?").reason
    assert "targets changed: gfx942 -> gfx1100" in go(stage, root, suffix="?", targets=["gfx1100"]).reason
    (root / "source.txt").write_text("other")
    assert "input file source.txt changed" in go(stage, root, suffix="?", targets=["gfx1100"]).reason
    assert go(stage, root, suffix="?", targets=["gfx1100"], force=True).reason == "--force"


def test_a_touched_output_is_still_fresh_but_an_edited_one_stops_the_run(root: Path) -> None:
    stage = Copy()
    go(stage, root)
    copy = root / "out/copy/tree/deep/copy.txt"
    os.utime(copy)
    assert go(stage, root).skipped
    copy.write_text("edited")
    with pytest.raises(AmdflowError, match="edited by hand"):
        go(stage, root, suffix="?")
    assert copy.read_text() == "edited"
    go(stage, root, force=True)
    assert copy.read_text() == "hello!"


def test_a_missing_output_is_made_again(root: Path) -> None:
    stage = Copy()
    go(stage, root)
    (root / "out/copy/tree/deep/copy.txt").unlink()
    assert "outputs are gone" in go(stage, root).reason
    assert (root / "out/copy/tree/deep/copy.txt").is_file()


def test_only_rehashing_sees_an_edit_that_kept_size_and_time(root: Path) -> None:
    stage = Copy()
    go(stage, root)
    copy = root / "out/copy/tree/deep/copy.txt"
    before = copy.stat()
    copy.write_text("HELLO!")
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert go(stage, root).skipped
    with pytest.raises(AmdflowError, match="edited by hand"):
        go(stage, root, rehash=True)


def test_a_failure_keeps_the_last_good_result_and_says_so_beside_it(root: Path) -> None:
    stage = Copy()
    go(stage, root)
    stage.failure = AmdflowError("it broke", hint="mend it")
    with pytest.raises(AmdflowError, match="it broke"):
        go(stage, root, suffix="?")
    assert (root / "out/copy/tree/deep/copy.txt").read_text() == "hello!"
    assert read_manifest(root / "out/copy/manifest.json").status is Status.OK
    attempt = read_manifest(root / "out/copy/attempt.json")
    assert (attempt.status, attempt.error and attempt.error.message, attempt.exit_code) == (
        Status.FAILED,
        "it broke",
        1,
    )
    stage.failure = None
    go(stage, root, suffix="?")
    assert not (root / "out/copy/attempt.json").exists()
    assert not (root / "out/copy/half").exists() or stage.resumable


def test_a_first_failure_and_a_cancel_are_the_manifest(root: Path) -> None:
    stage = Copy()
    stage.failure = OSError(errno.ENOSPC, "No space left on device", "x")
    with pytest.raises(AmdflowError, match="x: the disk is full"):
        go(stage, root)
    manifest = read_manifest(root / "out/copy/manifest.json")
    assert (manifest.status, manifest.error and manifest.error.message) == (Status.FAILED, "x: the disk is full")
    stage.failure = Cancelled(signal.SIGINT)
    with pytest.raises(Cancelled):
        go(stage, root)
    manifest = read_manifest(root / "out/copy/manifest.json")
    assert (manifest.status, manifest.exit_code, manifest.attempt) == (Status.CANCELLED, 130, 2)
    with pytest.raises(AmdflowError, match="did not end well"):
        Upstream.read(root / "out/copy/manifest.json")


def test_findings_and_limits_reach_status_and_exit_code(root: Path) -> None:
    stage = Copy()
    stage.findings = [Finding("X1", Severity.NOTE, "fine")]
    assert go(stage, root).manifest is not None
    assert read_manifest(root / "out/copy/manifest.json").status is Status.OK
    stage.findings, stage.over_limit = [Finding("X2", Severity.SILENT, "bad")], True
    report = go(stage, root, force=True)
    assert report.exit_code == 3
    assert read_manifest(root / "out/copy/manifest.json").status is Status.OK_WITH_FINDINGS


def test_output_option_delivers_the_payload_and_keeps_strangers(root: Path) -> None:
    stage, target = Copy(), root / "hip"
    go(stage, root, output=target)
    assert (target / "deep/copy.txt").read_text() == "hello!"
    manifest = read_manifest(target / "amdflow-report/manifest.json")
    assert manifest.outputs[0].path == "../deep/copy.txt"
    assert go(stage, root, output=target).skipped
    stranger = root / "theirs"
    (stranger / "deep").mkdir(parents=True)
    (stranger / "deep/copy.txt").write_text("mine")
    with pytest.raises(UsageError, match="not from amdflow: deep/copy.txt"):
        go(stage, root, output=stranger)
    assert (stranger / "deep/copy.txt").read_text() == "mine"


def test_a_dry_run_writes_nothing(root: Path) -> None:
    report = go(Copy(), root, dry_run=True)
    assert (report.manifest, report.reason) == (None, "no earlier result")
    assert not (root / "out").exists()


def test_upstream_changes_count_by_content_not_by_run(root: Path) -> None:
    first = Copy()
    go(first, root)
    second = Copy()
    path = root / "out/copy/manifest.json"
    other = root / "second"
    other.mkdir()
    (other / "source.txt").write_text("x")
    go(second, other, upstream=Upstream.read(path))
    go(first, root, force=True)
    assert go(second, other, upstream=Upstream.read(path)).skipped
    (root / "source.txt").write_text("changed")
    go(first, root)
    assert go(second, other, upstream=Upstream.read(path)).reason == "what the stage before handed over changed"
    second.taken = ["only this"]
    go(second, other, upstream=Upstream.read(path))
    (root / "source.txt").write_text("changed again")
    go(first, root)
    assert go(second, other, upstream=Upstream.read(path)).skipped
    second.taken = ["that"]
    assert go(second, other, upstream=Upstream.read(path)).reason == "what the stage before handed over changed"
    second.from_upstream = False
    report = go(second, other, upstream=Upstream.read(path), force=True)
    assert report.manifest is not None
    assert report.manifest.upstream is None


def test_a_result_that_takes_nothing_stays_right_whatever_the_stage_before_does(root: Path) -> None:
    first, second = Copy(), Copy()
    second.taken = {}
    path, other = root / "out/copy/manifest.json", root / "second"
    other.mkdir()
    (other / "source.txt").write_text("x")
    go(second, other)
    go(first, root)
    report = go(second, other, upstream=Upstream.read(path))
    assert report.skipped, "the stage before has run since"
    go(second, other, upstream=Upstream.read(path), force=True)
    (root / "source.txt").write_text("changed")
    go(first, root)
    report = go(second, other, upstream=Upstream.read(path))
    assert report.skipped
    assert report.manifest is not None
    assert report.manifest.upstream is not None, "where it stands in the chain is still told"
    second.taken = ["that"]
    assert go(second, other, upstream=Upstream.read(path)).reason == "what the stage before handed over changed"


def test_a_read_only_folder_is_named(root: Path) -> None:
    (root / "file").write_text("")
    with pytest.raises(UsageError, match="is a file, not a folder"):
        go(Copy(), root, output=root / "file" / "x")


def test_two_runs_at_once_the_second_names_the_first(root: Path) -> None:
    private = root / "out/.amdflow"
    code = f"from pathlib import Path; import time; from amdflow.pipeline.workspace import locked\nwith locked(Path({str(private)!r}), 'x'): print('held', flush=True); time.sleep(30)"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AmdflowError, match=f"another amdflow run is at work here: .*process {holder.pid}"):
            go(Copy(), root)
    finally:
        holder.kill()
        holder.communicate()
    with locked(private, "after"):
        pass
    assert go(Copy(), root).reason == "no earlier result"


def test_a_publish_cut_between_its_renames_is_finished(root: Path) -> None:
    stage = Copy()
    go(stage, root)
    destination = Destination.in_workdir(root / "out", "copy", "tree")
    trash = destination.private / "trash" / "copy-x"
    trash.parent.mkdir(parents=True, exist_ok=True)
    os.replace(destination.evidence, trash)
    recover(destination)
    assert go(stage, root).skipped
    os.replace(destination.evidence, destination.scratch("0" * 64))
    recover(destination)
    assert go(stage, root).skipped
    assert not any(trash.parent.iterdir())


def test_a_kill_at_any_moment_leaves_old_or_new_but_never_half(root: Path) -> None:
    """SIGKILL at many moments of a run that replaces a good result; whatever is there is whole, and the next run ends right."""
    script = root / "run.py"
    script.write_text(
        f"import sys; sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}\nfrom pathlib import Path\nfrom test_runner import Copy, go\ngo(Copy(), Path({str(root)!r}), suffix=sys.argv[1])\n"
    )
    go(Copy(), root, suffix="0")
    for moment in range(12):
        child = subprocess.Popen([sys.executable, str(script), str(moment + 1)])
        time.sleep(0.1 + 0.06 * moment)
        child.kill()
        child.wait()
        destination = Destination.in_workdir(root / "out", "copy", "tree")
        recover(destination)
        manifest = read_manifest(destination.manifest)
        assert manifest.status is Status.OK
        assert (destination.payload / "deep/copy.txt").read_text() == "hello" + manifest.config["suffix"]
    assert go(Copy(), root, suffix="end").manifest is not None
    assert (root / "out/copy/tree/deep/copy.txt").read_text() == "helloend"


def manifest_with(root: Path, **changes: Any) -> Path:
    go(Copy(), root)
    path = root / "out/copy/manifest.json"
    data = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(data))
    return path


def test_a_newer_manifest_is_refused_and_unknown_fields_are_not(root: Path) -> None:
    assert read_manifest(manifest_with(root, version="1.9", something_new=1)).stage == "copy"
    path = manifest_with(root, version="2.0")
    with pytest.raises(UsageError, match=r"manifest version 2.0, this amdflow reads up to 1.0"):
        read_manifest(path)
    with pytest.raises(UsageError, match=r"manifest version 2.0"):
        go(Copy(), root)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"schema": "other"}', '{"schema": "amdflow/manifest", "version": "1.0"}']
)
def test_a_torn_manifest_means_not_done(root: Path, content: str) -> None:
    go(Copy(), root)
    path = root / "out/copy/manifest.json"
    path.write_text(content)
    with pytest.raises(UsageError):
        read_manifest(path)
    assert go(Copy(), root).reason == "no earlier result"


def test_paths_cannot_leave_the_workspace(root: Path) -> None:
    go(Copy(), root)
    secret = root / "secret"
    secret.write_text("x")
    path = root / "out/copy/manifest.json"
    for bad in ("../../secret", "/etc/passwd"):
        upstream = Upstream.read(path, root=root / "out")
        upstream.manifest.outputs[0].path = bad
        with pytest.raises(UsageError, match="leaves"):
            upstream.file(upstream.manifest.outputs[0])


@pytest.mark.parametrize("delivered", [False, True])
def test_an_edit_that_is_kept_elsewhere_does_not_stop_the_run(root: Path, delivered: bool) -> None:
    stage, output = Copy(), root / "delivered" if delivered else None
    go(stage, root, output=output)
    copy = (output or root / "out/copy/tree") / "deep/copy.txt"
    copy.write_text("edited")
    with pytest.raises(AmdflowError, match="edited by hand") as stopped:
        go(stage, root, output=output, suffix="?")
    assert stopped.value.hint.startswith("write them down, ")
    stage.kept = {"deep/copy.txt"}
    go(stage, root, output=output, suffix="?")
    assert copy.read_text() == "hello?"


def test_a_kept_file_of_a_persons_own_may_become_an_output(root: Path) -> None:
    stage, output = Copy(), root / "delivered"
    (output / "deep").mkdir(parents=True)
    (output / "deep/copy.txt").write_text("mine")
    with pytest.raises(UsageError, match="not from amdflow"):
        go(stage, root, output=output)
    stage.kept = {"deep/copy.txt"}
    go(stage, root, output=output)
    assert (output / "deep/copy.txt").read_text() == "hello!"


def test_files_that_people_added_to_the_payload_stay(root: Path) -> None:
    stage = Copy()
    go(stage, root)
    tree = root / "out/copy/tree"
    (tree / "build").mkdir()
    (tree / "build/a.o").write_text("object")
    (tree / "link").symlink_to("build/a.o")
    go(stage, root, suffix="?")
    assert (tree / "deep/copy.txt").read_text() == "hello?"
    assert (tree / "build/a.o").read_text() == "object"
    assert (tree / "link").is_symlink()
    go(Tidy(), root, suffix="!!")
    assert not (tree / "build").exists()
