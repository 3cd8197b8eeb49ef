"""One self-contained page of a whole run, from the manifests of its stages."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from amdflow import __version__
from amdflow.files import canonical_json
from amdflow.findings import Severity
from amdflow.pipeline.freshness import flatten
from amdflow.pipeline.manifest import CommandRecord, Manifest
from amdflow.report.metrics import Shown, Table, plain, show, table, words
from amdflow.report.page import write_page
from amdflow.report.progress import NOT_RUN, UNREADABLE, StageView, read_stages, report_names
from amdflow.report.readiness import MEANING, NEEDS_A_PERSON, join_words

PURPOSE = {
    "migrate": "CUDA sources to HIP sources, compiled for each target",
    "kernels": "TileLang kernels to code objects",
    "finetune": "training with LLaMA-Factory",
    "export": "merged and verified SafeTensors",
    "serve": "an OpenAI-compatible endpoint, proven by a chat completion",
}
ROWS_SHOWN = 200
"""Commands and files listed of a stage; its manifest holds the rest."""
FINDINGS_SHOWN = 10


@dataclass(frozen=True)
class Section:
    """A stage as the page shows it."""

    view: StageView
    shown: Shown
    commands: Sequence[tuple[str, CommandRecord]]
    """Shell-quoted words and the record; what failed comes first."""
    settings: Sequence[tuple[str, str, str]]
    """Key, value, where it came from."""
    report_links: Sequence[tuple[str, str]]
    """Name and address of each report that the stage left."""


def write_run_report(workdir: Path, path: Path) -> None:
    """Write the page of the run in ``workdir`` to ``path``. Whatever is missing, torn or failed is shown as just that."""
    views = read_stages(workdir)
    environment, elsewhere = _environment(views)
    write_page(
        path,
        "run.html.j2",
        scripts=("chart.js",),
        version=__version__,
        name=workdir.absolute().parent.name,
        workdir=workdir.name,
        title=headline(views),
        lead=_lead(views),
        sections=[_section(view, path.absolute().parent) for view in views],
        purpose=PURPOSE,
        severities=list(Severity),
        meaning=MEANING,
        environment=environment,
        gpus=_gpus(views),
        elsewhere=elsewhere,
        rows_shown=ROWS_SHOWN,
        findings_shown=FINDINGS_SHOWN,
    )


def summarise(workdir: Path) -> dict[str, Any]:
    """What ``amdflow report --format json`` prints beside the page's path."""
    views = read_stages(workdir)
    return {
        "headline": headline(views),
        "stages": [
            {
                "stage": view.name,
                "state": view.state,
                "seconds": view.last.timing.seconds if view.last else None,
                "key": view.last.key if view.last else None,
                "findings": dict(view.last.findings) if view.last else {},
                "error": view.problem or (view.last.error.message if view.last and view.last.error else None),
                "outdated": view.outdated,
                "not_exercised": list(view.manifest.not_exercised) if view.manifest else [],
            }
            for view in views
        ],
    }


def headline(views: Sequence[StageView]) -> str:
    """What a person wants to know first: whether it ended well, and if not, where it stopped."""
    done = [view for view in views if view.good]
    stopped = next((view for view in views if not view.good and view.state != NOT_RUN), None)
    if stopped:
        said = (
            "has a manifest that cannot be read"
            if stopped.state == UNREADABLE
            else {"cancelled": "was cancelled"}.get(stopped.state, stopped.state)
        )
        return f"{stopped.name} {said}; {len(done)} of {len(views)} stages ended well"
    if not done:
        return "No stage has run yet"
    if len(done) < len(views):
        return f"{len(done)} of {len(views)} stages have run"
    needs = sum(_needs_a_person(view) for view in views)
    if needs:
        return f"All {len(views)} stages ended; {needs:,} {'finding needs' if needs == 1 else 'findings need'} a person"
    return f"All {len(views)} stages ended well"


def _lead(views: Sequence[StageView]) -> str:
    parts = []
    outdated = [view.name for view in views if view.outdated]
    missing = [view.name for view in views if view.state == NOT_RUN]
    if any(view.good for view in views) and missing:
        parts.append(f"{join_words(missing)} {'has' if len(missing) == 1 else 'have'} not run.")
    if outdated:
        parts.append(
            f"{join_words(outdated)} {'was' if len(outdated) == 1 else 'were'} made from an earlier result of the stage before."
        )
    for view in views:
        needs = _needs_a_person(view)
        if needs:
            parts.append(
                f"{view.name} has {needs:,} {'finding that needs' if needs == 1 else 'findings that need'} a person."
            )
    untried = sum(len(view.manifest.not_exercised) for view in views if view.manifest)
    if untried:
        parts.append(
            f"{untried} {'thing' if untried == 1 else 'things'} could not be exercised on this machine; each is named below."
        )
    return " ".join(parts)


def _needs_a_person(view: StageView) -> int:
    return sum(view.manifest.findings.get(severity, 0) for severity in NEEDS_A_PERSON) if view.manifest else 0


def _section(view: StageView, page_folder: Path) -> Section:
    last = view.last
    commands = sorted(last.commands, key=lambda command: command.exit_code == 0) if last else []
    return Section(
        view,
        show(view.manifest.metrics) if view.manifest else Shown(),
        [(shlex.join(command.argv), command) for command in commands[:ROWS_SHOWN]],
        [
            (key, plain(value), last.config_sources.get(key.partition(".")[0], ""))
            for key, value in flatten(last.config).items()
        ]
        if last
        else [],
        [
            (name, quote(Path(os.path.relpath((view.folder / name).absolute(), page_folder)).as_posix()))
            for name in report_names(view.folder)
        ],
    )


def _environment(views: Sequence[StageView]) -> tuple[list[tuple[str, str]], list[str]]:
    """The machine of the latest attempt, and the stages that ran on another one."""
    latest = _latest(views)
    if latest is None:
        return [], []
    manifests = [view.last for view in views if view.last]
    facts = [(words(key), plain(value)) for key, value in flatten(latest.environment).items() if key != "gpus"]
    return facts, [manifest.stage for manifest in manifests if _machine(manifest) != _machine(latest)]


def _machine(manifest: Manifest) -> str:
    return canonical_json([manifest.environment.get(key) for key in ("host", "gpus")])


def _latest(views: Sequence[StageView]) -> Manifest | None:
    """The manifest that was written last; the later stage's where times are equal."""
    manifests = sorted((view.last for view in views if view.last), key=lambda manifest: manifest.timing.ended)
    return manifests[-1] if manifests else None


def _gpus(views: Sequence[StageView]) -> Table | None:
    latest = _latest(views)
    found = latest.environment.get("gpus") if latest else None
    if not isinstance(found, list) or not found or not all(isinstance(row, dict) for row in found):
        return None
    return table("GPUs", found)
