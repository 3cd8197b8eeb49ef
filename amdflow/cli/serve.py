"""``amdflow serve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amdflow.cli.options import ConfigFile, DryRun, FormatOption, FromManifest, Quiet
from amdflow.terminal import Format, Terminal

if TYPE_CHECKING:
    from amdflow.pipeline.runner import StageReport


Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        help="Model directory, exported folder, workdir or export manifest; default: what the workdir's export made.",
        show_default=False,
    ),
]
Engine = Annotated[
    str | None, typer.Option("--engine", help="auto (the default), sglang, vllm or transformers.", show_default=False)
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        help="Address to listen on, 127.0.0.1 by default; anything but loopback is reachable by others.",
        show_default=False,
    ),
]
Port = Annotated[
    int | None,
    typer.Option("--port", "-p", help="TCP port; default: 30000, or the next free one.", show_default=False),
]
ServedName = Annotated[
    str | None, typer.Option("--served-name", help="The model's name in requests.", show_default=False)
]
Profile = Annotated[
    str | None,
    typer.Option("--profile", help="Launch profile (serving/profiles); default: by the GPU.", show_default=False),
]
Image = Annotated[
    str | None,
    typer.Option(
        "--image", help="Take the engine from this container image (docker or podman, AMD GPU).", show_default=False
    ),
]
EngineArg = Annotated[
    list[str] | None,
    typer.Option(
        "--engine-arg", help="An option of the engine's own, as name=value or name; repeatable.", show_default=False
    ),
]
ReadyTimeout = Annotated[
    float | None,
    typer.Option("--ready-timeout", help="Seconds until it must be ready; default: the profile's.", show_default=False),
]
SmokePrompt = Annotated[
    str | None,
    typer.Option("--smoke-prompt", help="The question it must answer before it counts as served.", show_default=False),
]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Leave it running and return; see amdflow endpoint.")]


def serve(
    model: Model = None,
    engine: Engine = None,
    host: Host = None,
    port: Port = None,
    served_name: ServedName = None,
    profile: Profile = None,
    image: Image = None,
    engine_arg: EngineArg = None,
    ready_timeout: ReadyTimeout = None,
    smoke_prompt: SmokePrompt = None,
    detach: Detach = False,
    from_manifest: FromManifest = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
) -> None:
    """Serve a model over an OpenAI-compatible endpoint, once it has been checked and has answered a question.

    Stays until Ctrl-C or SIGTERM, then lets requests in flight finish and exits 0.

    Example: amdflow serve --model out/ --detach
    """
    from amdflow.cli.context import run_stage

    flags = {
        "model": str(model.absolute()) if model else None,
        "engine": engine,
        "host": host,
        "port": port,
        "served_name": served_name,
        "profile": profile,
        "image": image,
        "engine_args": engine_arg or None,
        "ready_timeout": ready_timeout,
        "smoke_prompt": smoke_prompt,
        "keep_running": True if detach else "attached",
    }
    report = run_stage(
        "serve",
        flags,
        from_manifest=from_manifest,
        dry_run=dry_run,
        config=config,
        format=format,
        quiet=quiet,
    )
    if report.manifest is not None and not detach:
        _attend(report, Terminal(format, quiet=quiet), config)


def render(report: StageReport, terminal: Terminal) -> None:
    """Show what the stage did."""
    assert report.manifest is not None
    handoff, metrics = report.manifest.handoff, report.manifest.metrics
    terminal.say(f"  asked: {metrics['prompt']}")
    terminal.say(f"  answer: {str(metrics['answer']).strip() or '(empty)'}")
    terminal.say(
        f"  ready in {metrics['ready_seconds']} s, {metrics['tokens_per_second']} tokens/s on {metrics['device']}"
    )
    if report.manifest.findings.get("silent"):
        terminal.warn("the answer does not look like one; the whole exchange is in smoke.json beside the manifest")
    if not metrics["left_running"]:
        return
    terminal.success(f"serving {handoff['model']} at {handoff['url']}/v1")
    body = f'{{"model": "{handoff["model"]}", "messages": [{{"role": "user", "content": "hello"}}]}}'
    terminal.say(f"  try: curl {handoff['url']}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'")


def _attend(report: StageReport, terminal: Terminal, config: Path | None) -> None:
    from amdflow.config import load_project
    from amdflow.serve.endpoint import ENDPOINT_NAME, Endpoint, record_path
    from amdflow.serve.foreground import attend

    endpoint = Endpoint.load(report.manifest_path.parent / ENDPOINT_NAME)
    assert endpoint is not None
    terminal.say("  Ctrl-C stops it")
    root = load_project(Path.cwd().absolute(), explicit=config).root
    attend(endpoint, root=root, record=record_path(report.manifest_path.parent.parent), terminal=terminal)
