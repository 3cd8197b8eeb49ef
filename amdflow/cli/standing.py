"""Where the pipeline stands, without running anything."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amdflow import stages
from amdflow.cli.context import Context
from amdflow.errors import AmdflowError
from amdflow.files import portable
from amdflow.pipeline.manifest import Manifest, find_manifest
from amdflow.pipeline.runner import Options, identify, judge
from amdflow.pipeline.stage import Request
from amdflow.report.progress import report_names


@dataclass(frozen=True)
class Standing:
    """One stage's last result and what the next run would do."""

    stage: str
    result: str
    ended: str
    took: str
    next_run: str
    fresh: bool
    reports: tuple[str, ...] = ()
    """Paths of its reports, relative to the current folder where they lie below it."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def standing(context: Context) -> list[Standing]:
    """For every stage, in order."""
    return [_one(context, name) for name in stages.ORDER]


def _one(context: Context, name: str) -> Standing:
    stage = stages.load(name)
    destination = context.destination(stage)
    manifest = find_manifest(destination.manifest)
    attempt = find_manifest(destination.attempt)
    fresh, next_run = False, ""
    try:
        resolved = context.project.resolve(name, stage.config_type)
        upstream = context.upstream(stage)
        plan = stage.plan(
            Request(
                resolved.value,
                context.project.root,
                context.settings.targets,
                upstream,
                context.terminal,
                context.toolchain,
            )
        )
        identity, _inputs = identify(stage, plan, upstream if plan.from_upstream else None)
        fresh, reason = judge(stage, plan, identity, destination, Options())
        fresh = fresh or (not stage.cached and manifest is not None and manifest.status.good)
        next_run = f"{'skip' if fresh and stage.cached else 'run'}: {reason}"
    except AmdflowError as error:
        next_run = f"cannot run: {error.message.splitlines()[0]}"
    return Standing(
        name,
        _result(manifest, attempt),
        manifest.timing.ended if manifest else "",
        f"{manifest.timing.seconds:.1f} s" if manifest else "",
        next_run,
        fresh,
        tuple(portable(destination.evidence / name, Path.cwd()) for name in report_names(destination.evidence)),
    )


def _result(manifest: Manifest | None, attempt: Manifest | None) -> str:
    if manifest is None:
        return "not run"
    result = manifest.status.replace("_", " ")
    return f"{result} (a later attempt: {attempt.status})" if attempt else result
