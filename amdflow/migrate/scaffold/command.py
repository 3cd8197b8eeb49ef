"""``amdflow scaffold``: what it prints and in which order things happen."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from amdflow.errors import UsageError
from amdflow.files import portable
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.scaffold.build import Builder, Scaffold, flagged_json, to_json
from amdflow.migrate.scaffold.check import Checker, State
from amdflow.migrate.scaffold.extract import ItemIndex
from amdflow.migrate.scaffold.flagged import Flagged, find_flagged
from amdflow.migrate.scaffold.published import Published, read_published
from amdflow.migrate.text import counted
from amdflow.terminal import Terminal
from amdflow.toolchain import Toolchain


def list_flagged(manifest: Path, root: Path, wanted: str, terminal: Terminal) -> None:
    """Print the functions that need a person. Raises UsageError when no migration has been published."""
    published = read_published(manifest, root)
    found = find_flagged(published, ItemIndex(published.texts, published.graph), wanted)
    terminal.data([flagged_json(flagged) for flagged in found])
    terminal.table(
        ("function", "where", "findings"),
        [(flagged.name, f"{flagged.file}:{flagged.first}", _ids(flagged)) for flagged in found],
    )
    terminal.print(f"{counted(len(found), 'function')} to work on" if found else "no finding lies in a function")


def scaffold(
    manifest: Path,
    root: Path,
    wanted: str,
    output: Path,
    toolchain: Toolchain,
    terminal: Terminal,
    *,
    jobs: int = 0,
    force: bool = False,
) -> list[Scaffold]:
    """Write and compile the scaffolds of the functions that ``wanted`` names, all flagged ones when it is empty."""
    published = read_published(manifest, root)
    if output.resolve().is_relative_to(published.source) or output.resolve().is_relative_to(published.tree.resolve()):
        raise UsageError(
            f"the scaffolds would lie in {output}, inside a tree of sources",
            hint="write them elsewhere: --output DIR",
        )
    rocm = toolchain.rocm()
    items = ItemIndex(published.texts, published.graph)
    flagged = find_flagged(published, items, wanted)
    targets = published.manifest.targets
    builder = Builder(published, items, Checker(rocm, targets), output, targets=targets, force=force)
    with terminal.progress("scaffold", len(flagged), "functions") as bar:
        done = builder.all(flagged, jobs or os.cpu_count() or 1, lambda name: bar.update(1, note=name))
    _show(done, published, root, terminal)
    return done


def _show(done: Sequence[Scaffold], published: Published, root: Path, terminal: Terminal) -> None:
    terminal.data([to_json(item, root) for item in done])
    if not done:
        terminal.print("no finding that needs a person lies in a function: nothing to scaffold")
        return
    lines: dict[str, LineMap] = {}
    terminal.table(
        ("scaffold", "state", "findings", "first error"),
        [
            (
                portable(item.folder, root),
                f"{item.state.value}{' (edited, kept)' if item.kept else ''}",
                _ids(item.flagged),
                _first_error(item, published, lines),
            )
            for item in done
        ],
    )
    counts = Counter(item.state for item in done)
    told = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    terminal.print(f"{counted(len(done), 'scaffold')}: {told}")
    terminal.say("  next:     open README.md in one of them; `make run` there compiles and runs it")


def _first_error(item: Scaffold, published: Published, lines: dict[str, LineMap]) -> str:
    if not item.blockers:
        return ""
    blocker = next((each for each in item.blockers if not each.own), item.blockers[0])
    if blocker.path in published.texts:
        known = lines.setdefault(blocker.path, published.lines(blocker.path))
        place = f"{blocker.path}:{known.original(blocker.line)}"
    else:
        place = f"{blocker.path}:{blocker.line}"
    return f"{place}: {blocker.message[:90]}"


def _ids(flagged: Flagged) -> str:
    return " ".join(dict.fromkeys(finding.id for finding in flagged.findings))
