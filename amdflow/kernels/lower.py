"""Drives ``inside/lower.py``: TileLang, in its own environment, turns kernels into HIP C++ (or C for the CPU)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from amdflow.errors import EnvironmentProblem
from amdflow.files import canonical_json, portable, write_json
from amdflow.gpu.targets import TARGETS
from amdflow.kernels.item import SCRIPTS, Item, in_parallel
from amdflow.pipeline.stage import Run
from amdflow.process import describe_status
from amdflow.toolchain import Engine

_WORTH_A_PROCESS = 4
"""Kernels that take as long to lower as TileLang takes to start."""


@dataclass(frozen=True)
class Failure:
    """An item that could not be built."""

    item: Item
    step: str
    """``lowering``, ``crash``, ``compile`` or ``budget``."""
    message: str
    log: str = ""
    """Where the whole story is, relative to the workspace."""


@dataclass
class Lowered:
    """What came of lowering."""

    include: str = ""
    """Folder of the headers that the sources include."""
    failures: list[Failure] = field(default_factory=list)


def lower(items: Mapping[Path, Item], run: Run, engine: Engine, jobs: int, *, done: Callable[[Item], None]) -> Lowered:
    """Lower every item into its folder, ``jobs`` processes at a time. ``done`` is called after each, from any thread."""
    twins: dict[str, list[tuple[Path, Item]]] = {}
    for folder, item in items.items():
        twins.setdefault(_source_key(item), []).append((folder, item))
    pairs = sorted(
        (same[0] for same in twins.values()), key=lambda pair: not pair[1].kernel.declaration.matrix
    )  # the slow ones are dealt out first
    workers = min(jobs, -(-len(pairs) // _WORTH_A_PROCESS))
    hands = [pairs[start::workers] for start in range(workers)]
    result = Lowered()

    def work(numbered: tuple[int, Sequence[tuple[Path, Item]]]) -> None:
        number, hand = numbered
        include, failures = _lower_hand(number, dict(hand), run, engine, done)
        result.include = include or result.include
        result.failures.extend(failures)

    in_parallel(work, list(enumerate(hands)), max(1, len(hands)))
    failed = {failure.item: failure for failure in result.failures}
    for (folder, first), *others in twins.values():
        for twin_folder, twin in others:
            if first in failed:
                result.failures.append(replace(failed[first], item=twin))
            elif (folder / "launch.json").is_file():
                shutil.copytree(folder, twin_folder)
                done(twin)
    return result


def _source_key(item: Item) -> str:
    """Equal for items that give the same source: TileLang asks for no more of a target than its generation."""
    facts = TARGETS.get(item.target)
    return canonical_json([item.kernel.sha256, facts.dialect if facts else item.target, item.build, dict(item.sizes)])


def _lower_hand(
    number: int, hand: Mapping[Path, Item], run: Run, engine: Engine, done: Callable[[Item], None]
) -> tuple[str, list[Failure]]:
    orders = run.scratch / f"lower-{number}.json"
    log = f"lower-{number}.log"
    by_name = {item.name: item for item in hand.values()}
    write_json(
        orders,
        [
            {
                "id": item.name,
                "module": str(item.kernel.path),
                "target": item.target,
                "build": item.build,
                "sizes": dict(item.sizes),
                "typical": item.kernel.declaration.typical,
                "folder": str(folder),
            }
            for folder, item in hand.items()
        ],
    )
    answers: dict[str, dict[str, Any]] = {}
    include = [""]

    def on_line(line: str) -> None:
        if not line.startswith('{"'):
            return
        answer = json.loads(line)
        include[0] = answer.get("include", include[0])
        if answer.get("id") in by_name:
            answers[answer["id"]] = answer
            done(by_name[answer["id"]])

    ended = run.call(
        [str(engine.python), str(SCRIPTS / "lower.py"), str(orders)],
        log=log,
        extra_env=engine.environment(),
        on_line=on_line,
        check=False,
    )
    orders.unlink()
    if not answers and not include[0]:
        last = next((line for line in reversed(ended.stderr.splitlines()) if line.strip()), "it said nothing")
        raise EnvironmentProblem(
            f"TileLang does not start in {engine.python}: {last}", hint="amdflow toolchain install kernels --force"
        )
    where = portable(run.logs / log, run.root)
    failures = [
        Failure(by_name[name], "lowering", answer["error"], where)
        for name, answer in answers.items()
        if not answer["ok"]
    ]
    silent = [item for name, item in by_name.items() if name not in answers]
    if silent:
        failures.append(Failure(silent[0], "crash", f"its process {describe_status(ended.returncode)}", where))
    return include[0], failures
