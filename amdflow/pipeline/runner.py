"""Runs one stage: lock, freshness, scratch folder, verify, publish, manifest. The only place that knows the order."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from amdflow import __version__
from amdflow.config import Resolved
from amdflow.errors import AmdflowError, Cancelled, ExitCode, from_os_error
from amdflow.files import canonical_json, sha256_file, sha256_text
from amdflow.findings import count_by_severity
from amdflow.pipeline.freshness import NOTHING_TAKEN, Identity, check_outputs, digest_taken, outputs_digest
from amdflow.pipeline.manifest import (
    Artifact,
    ErrorRecord,
    Manifest,
    Status,
    Timing,
    Upstream,
    UpstreamRecord,
    find_manifest,
)
from amdflow.pipeline.publish import check_foreign, describe_outputs, publish, recover
from amdflow.pipeline.stage import Outcome, Plan, Request, Run, Stage
from amdflow.pipeline.workspace import Destination, check_writable, locked
from amdflow.terminal import Terminal


@dataclass(frozen=True)
class Options:
    """How to run a stage, as opposed to what it should do."""

    force: bool = False
    dry_run: bool = False
    rehash: bool = False
    """Re-read outputs instead of trusting size and mtime."""


@dataclass(frozen=True)
class StageReport:
    """What became of a stage. ``manifest`` is None after a dry run."""

    stage: str
    manifest: Manifest | None
    manifest_path: Path
    skipped: bool
    reason: str

    @property
    def exit_code(self) -> int:
        """The command's exit status."""
        return self.manifest.exit_code if self.manifest else ExitCode.OK


@dataclass(frozen=True)
class Runner:
    """Everything a stage run needs besides the stage: where, with which tools, on which machine."""

    root: Path
    terminal: Terminal
    toolchain: Any
    environment: Callable[[], Mapping[str, Any]]
    options: Options = Options()

    def run(
        self,
        stage: Stage[Any],
        resolved: Resolved[Any],
        destination: Destination,
        *,
        targets: Sequence[str],
        upstream: Upstream | None,
    ) -> StageReport:
        """Run ``stage`` unless its last good result is still right.

        Raises AmdflowError (after writing a ``failed`` or ``cancelled`` manifest) when it does not end well.
        """
        request: Request[BaseModel] = Request(
            resolved.value, self.root, tuple(targets), upstream, self.terminal, self.toolchain
        )
        plan = stage.plan(request)
        if not plan.from_upstream:
            upstream = None
        if self.options.dry_run:
            return self._dry_run(stage, plan, destination, upstream)
        check_writable(destination.evidence)
        with locked(destination.private, stage.name):
            recover(destination)
            return _Attempt(self, stage, plan, dict(resolved.sources), destination, upstream).run()

    def _dry_run(
        self, stage: Stage[Any], plan: Plan, destination: Destination, upstream: Upstream | None
    ) -> StageReport:
        identity, _inputs = identify(stage, plan, upstream)
        fresh, reason = judge(stage, plan, identity, destination, self.options)
        self.terminal.heading(f"{stage.name}: would {'be skipped' if fresh else 'run'} ({reason})")
        for step in plan.steps:
            self.terminal.say(f"  {step}")
        return StageReport(stage.name, None, destination.manifest, skipped=True, reason=reason)


def judge(
    stage: Stage[Any], plan: Plan, identity: Identity, destination: Destination, options: Options
) -> tuple[bool, str]:
    """Is the last result fresh, and why (not). Raises AmdflowError when only ``--force`` may overwrite hand-made edits."""
    previous = find_manifest(destination.manifest)
    if not stage.cached:
        return False, "never cached"
    if previous is None:
        return False, "no earlier result"
    if not previous.status.good:
        return False, f"the last attempt {'was cancelled' if previous.status is Status.CANCELLED else 'failed'}"
    state = check_outputs(previous, destination.evidence, rehash=options.rehash)
    unsaved = [path for path in state.edited if not _is_kept(stage, plan, destination, path)]
    if unsaved and not options.force:
        raise AmdflowError(
            f"{stage.name}: {len(unsaved)} output files were edited by hand ({', '.join(unsaved[:3])}); running again would overwrite them",
            hint=f"{stage.edit_advice or 'keep your edits'}, go on with the stage after it (amdflow run-all --from NEXT), or drop them with --force",
        )
    if options.force:
        return False, "--force"
    reasons = identity.changes_since(Identity.recorded(previous))
    if reasons:
        return False, "; ".join(reasons)
    if state.missing:
        return False, f"{len(state.missing)} outputs are gone ({state.missing[0]})"
    return True, "nothing it depends on has changed"


def _is_kept(stage: Stage[Any], plan: Plan, destination: Destination, path: str) -> bool:
    name = destination.name_in_payload(path)
    return bool(name) and stage.is_kept(plan, name, destination.evidence / path)


def identify(stage: Stage[Any], plan: Plan, upstream: Upstream | None) -> tuple[Identity, list[Artifact]]:
    """What the result depends on, and the inputs described."""
    inputs = []
    for item in plan.inputs:
        found = item.path.stat()
        inputs.append(
            Artifact(name=item.name, path=item.name, sha256=sha256_file(item.path), size=found.st_size, role=item.role)
        )
    identity = Identity.of(
        stage=stage.name,
        stage_version=stage.version,
        config=plan.config,
        inputs={item.name: item.sha256 for item in inputs},
        tools=plan.tools,
        targets=plan.targets,
        upstream=digest_taken(_taken_digest(plan), outputs_digest(upstream.manifest)) if upstream else "",
    )
    return identity, inputs


def _taken_digest(plan: Plan) -> str:
    if plan.taken is None:
        return ""
    return sha256_text(canonical_json(plan.taken)) if plan.taken else NOTHING_TAKEN


class _Attempt:
    """One attempt at one stage, under the lock."""

    def __init__(
        self,
        runner: Runner,
        stage: Stage[Any],
        plan: Plan,
        sources: dict[str, str],
        destination: Destination,
        upstream: Upstream | None,
    ) -> None:
        self.runner, self.stage, self.plan, self.sources = runner, stage, plan, sources
        self.destination, self.upstream = destination, upstream
        self.identity, self.inputs = identify(stage, plan, upstream)
        self.started = datetime.now(UTC)
        self.clock = time.monotonic()
        self.run_id = f"{self.started:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
        scratch = destination.scratch(self.identity.key)
        self.work = Run(
            scratch,
            scratch / stage.payload,
            _relative(destination.payload, destination.evidence),
            destination.logs(self.run_id),
            destination.cache,
            runner.root,
            destination.evidence,
            runner.terminal,
        )

    def run(self) -> StageReport:
        terminal, destination = self.runner.terminal, self.destination
        fresh, reason = judge(self.stage, self.plan, self.identity, destination, self.runner.options)
        if fresh:
            terminal.heading(f"{self.stage.name}: skipped, {reason}")
            destination.attempt.unlink(missing_ok=True)
            return StageReport(
                self.stage.name, find_manifest(destination.manifest), destination.manifest, skipped=True, reason=reason
            )
        check_foreign((f"../{name}" for name in self.plan.writes), destination, force=self.runner.options.force)
        terminal.heading(f"{self.stage.name}: {self.stage.summary} ({reason})")
        try:
            self._prepare()
            outcome = self.stage.execute(self.plan, self.work)
            verified = [*outcome.findings, *self.stage.verify(self.plan, outcome, self.work)]
            manifest = self._good(outcome, count_by_severity(verified))
            unsaved = (
                item.path for item in manifest.outputs if not _is_kept(self.stage, self.plan, destination, item.path)
            )
            check_foreign(unsaved, destination, force=self.runner.options.force)
            publish(self.work.scratch, self.work.payload, manifest, destination, keep_added=self.stage.keeps_added)
        except AmdflowError as error:
            self._failed(error)
            raise
        except OSError as error:
            problem = from_os_error(error, where=destination.evidence)
            self._failed(problem)
            raise problem from error
        except Exception as error:
            self._failed(AmdflowError(f"internal error: {type(error).__name__}: {error}"))
            raise
        terminal.success(f"{self.stage.name}: {manifest.status.replace('_', ' ')} in {manifest.timing.seconds:.1f} s")
        return StageReport(self.stage.name, manifest, destination.manifest, skipped=False, reason=reason)

    def _prepare(self) -> None:
        self.destination.drop_other_scratch(self.identity.key)
        self.destination.drop_old_logs()
        if self.work.scratch.exists() and not self.stage.resumable:
            shutil.rmtree(self.work.scratch)
        for folder in (self.work.payload, self.work.logs, self.work.cache):
            folder.mkdir(parents=True, exist_ok=True)

    def _good(self, outcome: Outcome, findings: dict[str, int]) -> Manifest:
        outputs = describe_outputs(outcome.outputs, self.work.scratch, self.work.payload, self.destination)
        status = (
            Status.OK_WITH_FINDINGS
            if any(count for severity, count in findings.items() if severity != "note")
            else Status.OK
        )
        return self._manifest(
            status,
            ExitCode.FINDINGS if outcome.over_limit else ExitCode.OK,
            outputs=outputs,
            findings=findings,
            metrics=dict(outcome.metrics),
            handoff=dict(outcome.handoff),
            not_exercised=list(outcome.not_exercised),
        )

    def _failed(self, error: AmdflowError) -> None:
        status = Status.CANCELLED if isinstance(error, Cancelled) else Status.FAILED
        manifest = self._manifest(status, error.exit_code, error=ErrorRecord(message=error.message, hint=error.hint))
        previous = find_manifest(self.destination.manifest)
        try:
            manifest.save(self.destination.attempt if previous and previous.status.good else self.destination.manifest)
        except OSError as problem:
            self.runner.terminal.warn(f"the manifest of this attempt could not be written: {problem.strerror}")

    def _manifest(self, status: Status, exit_code: int, **fields: Any) -> Manifest:
        previous = find_manifest(self.destination.attempt) or find_manifest(self.destination.manifest)
        upstream = None
        if self.upstream:
            upstream = UpstreamRecord(
                stage=self.upstream.manifest.stage,
                path=_relative(self.upstream.path, self.destination.evidence),
                sha256=sha256_file(self.upstream.path),
                outputs_digest=outputs_digest(self.upstream.manifest),
                taken_digest=_taken_digest(self.plan),
            )
        return Manifest(
            stage=self.stage.name,
            stage_version=self.stage.version,
            run_id=self.run_id,
            attempt=previous.attempt + 1 if previous and previous.key == self.identity.key else 1,
            amdflow=__version__,
            status=status,
            exit_code=int(exit_code),
            key=self.identity.key,
            inputs=self.inputs,
            config=dict(self.plan.config),
            config_sources=self.sources,
            toolchain=dict(self.plan.tools),
            targets=list(self.plan.targets),
            environment=dict(self.runner.environment()),
            commands=self.work.commands,
            upstream=upstream,
            timing=Timing(
                started=self.started.isoformat(timespec="seconds"),
                ended=datetime.now(UTC).isoformat(timespec="seconds"),
                seconds=round(time.monotonic() - self.clock, 3),
            ),
            **fields,
        )


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path, start)).as_posix()
