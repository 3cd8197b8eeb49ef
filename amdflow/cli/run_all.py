"""``amdflow run-all``."""

from __future__ import annotations

from typing import Annotated

import typer

from amdflow.cli.options import Arch, ConfigFile, DryRun, FormatOption, Quiet, Verify
from amdflow.terminal import Format


def run_all(
    start: Annotated[
        str | None,
        typer.Option("--from", help="Start at this stage; the ones before are taken as they are.", show_default=False),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Stop after this stage.", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Run every chosen stage, even if nothing changed.")] = False,
    keep_serving: Annotated[bool, typer.Option("--keep-serving", help="Leave the server running at the end.")] = False,
    dry_run: DryRun = False,
    verify: Verify = False,
    arch: Arch = None,
    config: ConfigFile = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
) -> None:
    """Run migrate, kernels, finetune, export and serve; skip what is fresh.

    Example: amdflow run-all --until export
    """
    from amdflow import stages
    from amdflow.cli.context import open_context, render
    from amdflow.files import portable
    from amdflow.pipeline.chain import Selection, run_chain
    from amdflow.pipeline.runner import Options, StageReport
    from amdflow.report.run import write_run_report

    names = Selection(stages.ORDER, start, until).names
    context = open_context(format=format, quiet=quiet, config=config, arch=arch)
    loaded = {name: stages.load(name) for name in names}
    flags = {"serve": {"keep_running": True}} if keep_serving else {}
    # every section is checked before the first stage starts: a typo in `serve:` must not cost a training run
    resolved = {
        name: context.project.resolve(name, stage.config_type, flags.get(name)) for name, stage in loaded.items()
    }
    runner = context.runner(Options(force=force, dry_run=dry_run, rehash=verify))

    def run_one(name: str) -> StageReport:
        stage = loaded[name]
        report = runner.run(
            stage,
            resolved[name],
            context.destination(stage),
            targets=context.settings.targets,
            upstream=context.upstream(stage),
        )
        if report.manifest is not None and not report.skipped:
            render(report, context.terminal)
        return report

    report_page = context.workdir / "report.html"
    try:
        chain = run_chain(names, run_one, context.terminal)
    finally:
        if not dry_run and context.workdir.is_dir():
            write_run_report(context.workdir, report_page)
            context.terminal.say(f"\nreport: {portable(report_page, context.project.root)}")
            context.terminal.say(f"manifests: {portable(context.workdir, context.project.root)}/<stage>/manifest.json")
    context.terminal.data(
        {
            "stages": [
                {
                    "stage": item.stage,
                    "skipped": item.skipped,
                    "reason": item.reason,
                    "status": item.manifest.status if item.manifest else None,
                    "manifest": portable(item.manifest_path, context.project.root),
                }
                for item in chain.stages
            ],
            "report": portable(report_page, context.project.root),
        }
    )
    if chain.exit_code:
        raise typer.Exit(chain.exit_code)
