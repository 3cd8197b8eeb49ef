"""``kernels tune``: searches tile settings, on the card at hand or by the model, and writes what wins to the user's tiles."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from amdflow.config import nearest
from amdflow.errors import AmdflowError, EnvironmentProblem, UsageError
from amdflow.files import canonical_json, portable, sha256_text
from amdflow.gpu.targets import TARGETS, target
from amdflow.kernels.check import ALLOWED
from amdflow.kernels.item import core_count
from amdflow.kernels.session import Session, check_names, open_session
from amdflow.kernels.sources import Kernel, find_kernels
from amdflow.kernels.tiles import shapes_for, tiles_for
from amdflow.kernels.tune_card import Card
from amdflow.kernels.tune_space import Outcome, Settings, Task, best_of, key_of, next_batch
from amdflow.kernels.tune_static import Model, numbers_on_cpu
from amdflow.kernels.tune_store import Store
from amdflow.kernels.tune_tiles import entry_key, write_entry

WORTH_WRITING = 0.98
"""A winner must take at most this share of today's time: less is noise."""


class Judge(Protocol):
    """Says what settings come to."""

    @property
    def measures(self) -> bool:
        """Whether its scores are times of a card."""

    @property
    def how(self) -> str:
        """How the scores came about, in words."""

    @property
    def batch(self) -> int:
        """How many settings it likes to be given at a time."""

    @property
    def tools(self) -> Mapping[str, Any]:
        """What its answers depend on beside the task."""

    def outcomes(self, task: Task, batch: Sequence[Settings]) -> list[Outcome]:
        """What each of the settings comes to; one that was not reached is left out."""


@dataclass(frozen=True)
class Wanted:
    """What the command was asked for."""

    kernels: Sequence[str] = ()
    """Empty: all that say what there is to try."""
    dtypes: Sequence[str] = ("bfloat16",)
    arch: Sequence[str] = ()
    """gfx names; empty: the card at hand, else the project's targets."""
    shape: Mapping[str, Any] | None = None
    """Sizes for the one kernel named; None: those of shapes.yaml at the kernel's typical launch."""
    minutes: float = 10.0
    write: bool | None = None
    """None: write what was measured, not what was ranked."""
    jobs: int = 0


@dataclass(frozen=True)
class Tuned:
    """What came of one task."""

    task: Task
    outcomes: Sequence[Outcome]
    measured: bool
    how: str
    seconds: float
    best: Outcome | None = None
    written: Path | None = None
    note: str = ""
    """Why nothing was written, or what to know of what was."""

    @property
    def today(self) -> Outcome | None:
        """What the settings in use came to."""
        return next((one for one in self.outcomes if key_of(one.settings) == key_of(self.task.today)), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; outcomes best first."""
        ranked = sorted(self.outcomes, key=lambda one: (one.score is None, one.score or 0.0))
        return {
            "kernel": self.task.kernel.op,
            "target": self.task.target,
            "dtype": self.task.dtype,
            "sizes": dict(self.task.sizes),
            "run": dict(self.task.run),
            "how": self.how,
            "measured": self.measured,
            "possible": self.task.size,
            "today": dict(self.task.today),
            "best": None if self.best is None else dict(self.best.settings),
            "written": None if self.written is None else str(self.written),
            "note": self.note,
            "seconds": round(self.seconds, 1),
            "outcomes": [one.to_json() for one in ranked],
        }


def tune_kernels(context: Any, wanted: Wanted) -> list[Tuned]:
    """What the command does. Raises UsageError for what is unknown or cannot be tuned, EnvironmentProblem without tools.

    Cancelling it keeps what is known: the same command again goes on from there.
    """
    check_names(wanted.dtypes, list(ALLOWED), "value type")
    flags = {"kernels": tuple(wanted.kernels), "jobs": wanted.jobs or None}
    with open_session(context, {name: value for name, value in flags.items() if value}, "tune") as session:
        gpu = session.gpu()
        targets = [target(name).name for name in wanted.arch]
        targets = targets or ([gpu["target"]] if gpu else list(context.settings.targets))
        tasks = [task for name in targets for task in tasks_for(session, wanted, name)]
        if not tasks:
            raise UsageError(
                f"nothing to tune: no chosen kernel has one of the value types {', '.join(wanted.dtypes)}",
                hint="choose others with --dtype",
            )
        deadline = time.monotonic() + 60 * wanted.minutes
        results = []
        for index, task in enumerate(tasks):
            judge = _judge(context, session, task.target, gpu)
            left = deadline - time.monotonic()
            if index and left <= 0:
                results.append(Tuned(task, (), judge.measures, judge.how, 0.0, note="not begun: no time was left"))
            else:
                results.append(_tune(session, judge, task, wanted, left / (len(tasks) - index)))
        return results


def tasks_for(session: Session, wanted: Wanted, name: str) -> list[Task]:
    """What there is to tune for one target. Raises UsageError for a kernel that says nothing of what to try."""
    kernels = find_kernels(session.folders, tuple(wanted.kernels))
    for kernel in kernels:
        if wanted.kernels and not kernel.space:
            raise UsageError(
                f"{kernel.name} does not say what there is to try",
                hint='add for example TUNE = {"block_m": [64, 128]} beside its CASES',
            )
    if wanted.shape is not None and len(wanted.kernels) != 1:
        raise UsageError("--shape needs one kernel", hint="for example: --kernel rms_norm --shape hidden=5120")
    facts = TARGETS.get(name)
    chosen = [one for one in kernels if one.space and not (one.declaration.matrix and facts and not facts.matrix)]
    if not chosen:
        raise UsageError(f"nothing to tune for {name}", hint="matrix operators need a target with matrix instructions")
    found = []
    for kernel in chosen:
        for sizes, run in shapes_of(session, kernel, wanted.shape):
            for dtype in (one for one in wanted.dtypes if one in kernel.declaration.dtypes):
                tiles = tiles_for(session.folders, kernel, name, {"dtype": dtype, **sizes})
                found.append(Task(_asked_at(kernel, run), name, dtype, sizes, run, tiles))
    return found


def shapes_of(
    session: Session, kernel: Kernel, shape: Mapping[str, Any] | None
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of sizes fixed at build time and sizes given at launch. Raises UsageError for a size the kernel does not have."""
    declared, typical = kernel.declaration.sizes, kernel.declaration.typical
    shape = shape or {}
    known = [*declared, *typical]
    for name in shape:
        if name not in known:
            raise UsageError(
                f"{kernel.op} has no size {name!r}{nearest(name, known)}", hint=f"sizes: {', '.join(known)}"
            )
    fixed = {name: value for name, value in shape.items() if name in declared}
    run = {name: value for name, value in {**typical, **shape}.items() if name not in fixed}
    return [(dict(sizes), run) for sizes in ([fixed] if fixed else shapes_for(session.folders, kernel))]


def _asked_at(kernel: Kernel, run: Mapping[str, Any]) -> Kernel:
    """The kernel as one whose typical launch is ``run``: what its work is stated at, and what it is cached by."""
    if run == kernel.declaration.typical:
        return kernel
    declaration = kernel.declaration.model_copy(update={"typical": dict(run)})
    return replace(kernel, declaration=declaration, sha256=sha256_text(kernel.sha256 + canonical_json(dict(run))))


def _judge(context: Any, session: Session, name: str, gpu: Mapping[str, str] | None) -> Judge:
    jobs = core_count(session.config.jobs)
    if gpu is None or gpu["target"] != name:
        return Model(session.run, session.engine, context.toolchain.rocm(), jobs)
    model = None
    if name in TARGETS:
        with suppress(EnvironmentProblem):  # a card can judge by itself, only later
            model = Model(session.run, session.engine, context.toolchain.rocm(), jobs)
    return Card(session, gpu["name"], jobs, model)


def _tune(session: Session, judge: Judge, task: Task, wanted: Wanted, seconds: float) -> Tuned:
    store = Store(session.run.cache.parent / "kernels-tune", task, judge.tools)
    session.run.terminal.heading(f"{task.title}: {task.size} settings, {len(store.outcomes)} known; {judge.how}")
    started = time.monotonic()
    search(task, judge, store, seconds)
    result = Tuned(task, store.outcomes, judge.measures, judge.how, time.monotonic() - started)
    return conclude(session, judge, result, wanted)


def search(task: Task, judge: Judge, store: Store, seconds: float) -> None:
    """Try settings, near to the best so far first, until all are known or ``seconds`` are over; one batch is always tried.

    Raises AmdflowError when a batch comes to nothing at all.
    """
    started, begun = time.monotonic(), len(store.outcomes)
    while True:
        spent, done = time.monotonic() - started, len(store.outcomes) - begun
        if done and spent >= seconds:
            return
        room = judge.batch if not done else int((seconds - spent) / (spent / done))
        batch = next_batch(task, store.outcomes, max(1, min(judge.batch, room)))
        if not batch:
            return
        outcomes = judge.outcomes(task, batch)
        if not outcomes:
            raise AmdflowError(f"{task.title}: none of {len(batch)} settings could be tried", hint="amdflow doctor")
        for outcome in outcomes:
            store.add(outcome)


def conclude(session: Session, judge: Judge, result: Tuned, wanted: Wanted) -> Tuned:
    """Choose the winner, and write it where that was asked for."""
    best = best_of(result.outcomes)
    result = replace(result, best=best)
    today = result.today
    if best is None:
        return replace(result, note="none of the settings tried so far can be used")
    if today is not None and today.score is not None and (best.score or 0.0) > WORTH_WRITING * today.score:
        return replace(result, best=today, note="nothing tried is better than the settings in use")
    if not (judge.measures if wanted.write is None else wanted.write):
        note = "not written: --no-write" if judge.measures else "not written: --write puts it into your tile file"
        return replace(result, note=note)
    note = ""
    if isinstance(judge, Model):
        numbers = numbers_on_cpu(result.task, best.settings, judge)
        if numbers == "wrong":
            return replace(result, note="not written: its numbers are wrong on the CPU")
        note = "numbers checked on the CPU" if numbers == "right" else f"numbers not checked: {numbers}"
    path = session.source / "tiles" / f"{result.task.target}.yaml"
    comment = f"{judge.how}, {datetime.now(UTC):%Y-%m-%d}"
    if judge.measures and today is not None and today.score is not None:
        comment += f": {best.score:.4g} ms, before {today.score:.4g}"
    write_entry(path, entry_key(result.task), best.settings, comment)
    session.run.terminal.say(f"  wrote {portable(path, Path.cwd())}")
    return replace(result, written=path, note=note)
