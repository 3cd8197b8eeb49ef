"""Candidates on the card at hand: compiled, checked and timed in child processes that may hang or crash."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from amdflow.errors import EnvironmentProblem
from amdflow.files import portable, write_json
from amdflow.gpu.targets import TARGETS
from amdflow.kernels.build import tool_versions
from amdflow.kernels.check import ALLOWED
from amdflow.kernels.item import SCRIPTS, in_parallel
from amdflow.kernels.session import Session
from amdflow.kernels.tune_space import Outcome, Settings, Task
from amdflow.kernels.tune_static import Model, fitting_cases
from amdflow.process import describe_status

_LIMIT_SECONDS = 120
"""For one candidate: compiling takes the longest."""
_CASES = 3
_FELL_SILENT = "Timeout ("
"""How faulthandler begins what it says of a job that ran past the limit."""
Answers = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Card:
    """Measures settings on the GPU that the engine's torch sees."""

    session: Session
    name: str
    jobs: int
    model: Model | None = None
    """Admits candidates by their code objects first, where the card is AMD's and there is a ROCm compiler."""
    measures = True

    @property
    def batch(self) -> int:
        """How many are compiled at a time, before they are measured one by one."""
        return max(8, 2 * self.jobs)

    @property
    def how(self) -> str:
        """How the scores came about."""
        return f"measured on {self.name}"

    @property
    def tools(self) -> Mapping[str, Any]:
        """What outcomes depend on."""
        engine = self.session.engine
        return {**tool_versions(engine, None), "card": self.name, "runtime": engine.torch_runtime}

    def outcomes(self, task: Task, batch: Sequence[Settings]) -> list[Outcome]:
        """What each of ``batch`` comes to; those that do not build, fit or compute the right thing are out."""
        out: list[Outcome] = []
        if self.model is not None and task.target in TARGETS:
            judged = self.model.outcomes(task, batch)
            out = [one for one in judged if one.score is None]
            batch = [one.settings for one in judged if one.score is not None]
        jobs = {str(index): self._job(task, settings, str(index)) for index, settings in enumerate(batch)}
        hands = [list(jobs.values())[start :: self.jobs] for start in range(min(self.jobs, len(jobs)))]
        compiled: Answers = {}
        for answers in in_parallel(
            lambda pair: self._all("compile", pair[1], pair[0]), list(enumerate(hands)), self.jobs
        ):
            compiled |= answers
        ready = [job for name, job in jobs.items() if "error" not in compiled[name]]
        answers = compiled | self._all("measure", ready, 0)
        return out + [_outcome(batch[int(name)], answers[name]) for name in jobs]

    def _job(self, task: Task, settings: Settings, name: str) -> dict[str, Any]:
        fixed = {size: task.run[size] for size in task.kernel.declaration.sizes if size in task.run}
        sizes = {**fixed, **task.sizes}
        cases = [case.run for case in fitting_cases(task)][:_CASES]
        return {
            "id": name,
            "module": str(task.kernel.path),
            "target": task.target,
            "dtype": task.dtype,
            "build": {"dtype": task.dtype, **sizes, **task.tiles, **settings},
            "sizes": {**task.run, **sizes},
            "cases": cases or [dict(task.run)],
            "allowed": ALLOWED[task.dtype] * task.kernel.declaration.slack,
        }

    def _all(self, mode: Literal["compile", "measure"], jobs: Sequence[dict[str, Any]], number: int) -> Answers:
        """Every job's answer. A job that ends the process has that for an answer, and a new process goes on after it."""
        answers: Answers = {}
        while left := [job for job in jobs if job["id"] not in answers]:
            answers |= self._process(mode, left, f"{mode}-{number}")
        return answers

    def _process(self, mode: str, jobs: Sequence[dict[str, Any]], name: str) -> Answers:
        run, engine = self.session.run, self.session.engine
        orders = run.scratch / f"tune-{name}.json"
        write_json(orders, {"limit": _LIMIT_SECONDS, "jobs": list(jobs)})
        answers: Answers = {}
        started: list[str] = []

        def on_line(line: str) -> None:
            if line.startswith('{"start"'):
                started.append(json.loads(line)["start"])
            elif line.startswith('{"id"'):
                answer = json.loads(line)
                answers[answer["id"]] = answer

        ended = run.call(
            [str(engine.python), str(SCRIPTS / "tune.py"), mode, str(orders)],
            log=f"tune-{name}.log",
            extra_env=self.session.environment(),
            on_line=on_line,
            check=False,
            timeout=_LIMIT_SECONDS * (len(jobs) + 1),
        )
        if not started:
            raise EnvironmentProblem(
                f"TileLang does not start in {engine.python}: its process {describe_status(ended.returncode)}",
                hint=f"its log: {portable(run.logs / f'tune-{name}.log', run.root)}",
            )
        if started[-1] not in answers:
            hung = ended.timed_out or _FELL_SILENT in ended.stderr
            how = f"took longer than {_LIMIT_SECONDS} s" if hung else f"its process {describe_status(ended.returncode)}"
            answers[started[-1]] = {"id": started[-1], "error": how}
        return answers


def _outcome(settings: Settings, answer: Mapping[str, Any]) -> Outcome:
    if "error" in answer:
        return Outcome(settings, None, str(answer["error"]))
    return Outcome(settings, float(answer["ms"]), "", {"worst": answer["worst"]})
