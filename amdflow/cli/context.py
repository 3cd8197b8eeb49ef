"""Puts together what a command needs: the project, the terminal, the runner. Everything heavy is imported here, when a command runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from amdflow.terminal import Format, Terminal

if TYPE_CHECKING:
    from amdflow.config import Project, ProjectConfig
    from amdflow.pipeline.manifest import Upstream
    from amdflow.pipeline.runner import Options, Runner, StageReport
    from amdflow.pipeline.stage import Stage
    from amdflow.pipeline.workspace import Destination
    from amdflow.toolchain import Toolchain


@dataclass(frozen=True)
class Context:
    """An opened workspace."""

    project: Project
    settings: ProjectConfig
    terminal: Terminal
    toolchain: Toolchain

    @property
    def workdir(self) -> Path:
        """Absolute."""
        return (self.project.root / self.settings.workdir).absolute()

    def runner(self, options: Options) -> Runner:
        """A runner for this workspace."""
        from amdflow.gpu.machine import describe_machine
        from amdflow.pipeline.runner import Runner

        return Runner(self.project.root, self.terminal, self.toolchain, describe_machine, options)

    def destination(self, stage: Stage[Any], output: Path | None = None) -> Destination:
        """Where ``stage`` writes."""
        from amdflow.pipeline.workspace import Destination

        return (
            Destination.at_output(output.absolute(), stage.name)
            if output
            else Destination.in_workdir(self.workdir, stage.name, stage.payload)
        )

    def upstream(self, stage: Stage[Any], explicit: Path | None = None) -> Upstream | None:
        """The manifest that feeds ``stage``: the named one, or the workdir's when it is there and good."""
        from amdflow.errors import UsageError
        from amdflow.pipeline.manifest import MANIFEST_NAME, Upstream, find_manifest

        if explicit is not None:
            path = explicit / MANIFEST_NAME if explicit.is_dir() else explicit
            if stage.upstream is None:
                raise UsageError(
                    f"{stage.name} is the first stage and takes no manifest", hint="leave --from-manifest away"
                )
            return Upstream.read(path.absolute(), stage=stage.upstream)
        if stage.upstream is None:
            return None
        path = self.workdir / stage.upstream / MANIFEST_NAME
        manifest = find_manifest(path)
        return Upstream(path, manifest, root=self.workdir) if manifest and manifest.status.good else None


def open_context(
    *,
    format: Format = Format.HUMAN,
    quiet: bool = False,
    config: Path | None = None,
    arch: str | None = None,
    start: Path | None = None,
) -> Context:
    """Read ``amdflow.yaml`` (or do without) and find the toolchain's settings."""
    from amdflow.config import ProjectConfig, load_project
    from amdflow.gpu.targets import target_names
    from amdflow.toolchain import Toolchain

    project = load_project((start or Path.cwd()).absolute(), explicit=config)
    flags = {"targets": tuple(name.strip() for name in arch.split(",") if name.strip())} if arch is not None else {}
    settings = project.resolve("", ProjectConfig, flags).value
    settings = settings.model_copy(update={"targets": target_names(settings.targets)})
    return Context(project, settings, Terminal(format, quiet=quiet), Toolchain(settings.toolchain))


def run_stage(
    name: str,
    flags: Mapping[str, Any],
    *,
    output: Path | None = None,
    force: bool = False,
    dry_run: bool = False,
    verify: bool = False,
    from_manifest: Path | None = None,
    format: Format = Format.HUMAN,
    quiet: bool = False,
    config: Path | None = None,
    arch: str | None = None,
) -> StageReport:
    """Run one stage as a command: resolve its section, run it, render, exit with its status when that is not 0."""
    from amdflow import stages
    from amdflow.pipeline.runner import Options

    context = open_context(format=format, quiet=quiet, config=config, arch=arch)
    stage = stages.load(name)
    resolved = context.project.resolve(name, stage.config_type, flags)
    runner = context.runner(Options(force=force, dry_run=dry_run, rehash=verify))
    report = runner.run(
        stage,
        resolved,
        context.destination(stage, output),
        targets=context.settings.targets,
        upstream=context.upstream(stage, from_manifest),
    )
    if report.manifest is not None:
        render(report, context.terminal)
        context.terminal.say(f"  manifest: {_shown(report.manifest_path)}")
        context.terminal.data(report.manifest.model_dump(mode="json", by_alias=True))
    if report.exit_code:
        raise typer.Exit(report.exit_code)
    return report


def render(report: StageReport, terminal: Terminal) -> None:
    """Show what a stage did, as its own command does."""
    import_module(f"amdflow.cli.{report.stage}").render(report, terminal)


def _shown(path: Path) -> str:
    from amdflow.files import portable

    return portable(path, Path.cwd())
