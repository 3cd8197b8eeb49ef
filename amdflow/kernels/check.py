"""``kernels test``: every kernel beside its float64 reference, on the CPU, and on the GPU where there is one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from amdflow.errors import AmdflowError, EnvironmentProblem, UsageError
from amdflow.files import write_json
from amdflow.kernels.build import CPU_LIBRARY, LAUNCH, Line
from amdflow.kernels.compile import host_compiler
from amdflow.kernels.item import SCRIPTS, SHORT, Item, alone, core_count, sizes_text
from amdflow.kernels.session import Session, check_names, open_session
from amdflow.kernels.sources import Case, Folders, Kernel, find_kernels
from amdflow.kernels.tiles import tiles_for
from amdflow.pipeline.stage import Run
from amdflow.process import describe_status
from amdflow.toolchain import Engine, Rocm

ALLOWED: dict[str, float] = alone(SCRIPTS / "measuring" / "tolerance.py").ALLOWED


@dataclass(frozen=True)
class Result:
    """One test."""

    kernel: str
    dtype: str
    on: str
    """``cpu``, ``cuda`` or a gfx name."""
    sizes: dict[str, Any]
    open_sizes: bool
    """Built with sizes left open, as the code objects for training are."""
    worst: float | None
    allowed: float
    error: str = ""

    @property
    def passed(self) -> bool:
        """Whether the worst error is small enough."""
        return not self.error and self.worst is not None and self.worst <= self.allowed

    def cells(self) -> list[str]:
        """As a row of text."""
        worst = "-" if self.worst is None else f"{self.worst:.1e}"
        return [
            self.kernel,
            SHORT[self.dtype],
            self.on,
            sizes_text(self.sizes),
            worst,
            f"{self.allowed:.1e}",
            "ok" if self.passed else self.error or "WRONG",
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        finite = self.worst if self.worst is None or math.isfinite(self.worst) else None
        return asdict(self) | {"worst": finite, "passed": self.passed}


@dataclass(frozen=True)
class Suite:
    """What is tested with what."""

    folders: Folders
    kernels: Sequence[Kernel]
    dtypes: Sequence[str]
    """Empty: float32 and all that a kernel has."""
    engine: Engine
    rocm: Rocm | None
    jobs: int

    def items(self, target: str) -> list[tuple[Item, Case]]:
        """What runs on ``target``; on a GPU every size is fixed, since TileLang's own launcher can't solve for factors."""
        found = []
        for kernel in self.kernels:
            if not kernel.cases:
                raise UsageError(
                    f"{kernel.path} has no CASES, so there is nothing to test",
                    hint="CASES = [{'build': {...}, 'run': {...}}]",
                )
            names = self.dtypes or dict.fromkeys(
                (*(("float32",) if target == "cpu" else ()), *kernel.declaration.dtypes)
            )
            for dtype in names:
                if dtype != "float32" and dtype not in kernel.declaration.dtypes:
                    continue
                for case in kernel.cases:
                    sizes = (
                        case.build
                        if target == "cpu"
                        else case.build
                        | {name: case.run[name] for name in kernel.declaration.sizes if name in case.run}
                    )
                    found.append(
                        (
                            Item(
                                kernel,
                                target,
                                dtype,
                                sizes,
                                tiles_for(self.folders, kernel, target, {"dtype": dtype, **sizes}),
                            ),
                            case,
                        )
                    )
        return found


def run_suite(suite: Suite, session: Session) -> list[Result]:
    """Run everything. Raises EnvironmentProblem without a C++ compiler, AmdflowError when a kernel does not build."""
    compiler = host_compiler(suite.rocm)
    if not compiler:
        raise EnvironmentProblem(
            "no C++ compiler to run kernels on the CPU with",
            hint="apt install g++, or `amdflow toolchain install rocm`",
        )
    results = _on_cpu(suite, session.run, compiler)
    gpu = session.gpu()
    if gpu is not None:
        pairs = suite.items(gpu["target"])
        results += check_items(pairs, [{}] * len(pairs), suite.engine, session.run, "gpu")
    return results


def failure(results: Sequence[Result]) -> AmdflowError | None:
    """The error that says which tests failed; None when all passed."""
    wrong = [result for result in results if not result.passed]
    if not wrong:
        return None
    names = ", ".join(dict.fromkeys(f"{result.kernel} {SHORT[result.dtype]} on {result.on}" for result in wrong))
    return AmdflowError(
        f"{len(wrong)} of {len(results)} kernel tests failed: {names}",
        hint=f"look at one: amdflow kernels test --kernel {wrong[0].kernel} --dtype {wrong[0].dtype}",
    )


def _on_cpu(suite: Suite, run: Run, compiler: list[str]) -> list[Result]:
    pairs = suite.items("cpu")
    distinct = {item.name: item for item, _case in pairs}
    line = Line(run, suite.engine, suite.jobs, None, compiler)
    built = {one.item.name: one for one in line.make(list(distinct.values()), title="building for the CPU")}
    if line.failures:
        first = line.failures[0]
        raise AmdflowError(
            f"{first.item.kernel.name}: {first.item.variant} does not build for the CPU ({first.step}): {first.message}",
            hint=f"the whole log: {first.log}",
        )
    extra = [
        {"library": str(built[item.name].folder / CPU_LIBRARY), "launch": str(built[item.name].folder / LAUNCH)}
        for item, _case in pairs
    ]
    return check_items(pairs, extra, suite.engine, run, "cpu")


def check_items(
    pairs: Sequence[tuple[Item, Case]], extra: Sequence[dict[str, str]], engine: Engine, run: Run, on: str
) -> list[Result]:
    """Run each item at its case's sizes; ``extra`` names what was built for the CPU. Items that crash it fail."""
    orders = run.scratch / f"check-{on}.json"
    jobs = [
        {
            "id": f"{index} {item.name}",
            "module": str(item.kernel.path),
            "target": item.target,
            "build": item.build,
            "run": case.run,
            "dtype": item.dtype,
            **more,
        }
        for index, ((item, case), more) in enumerate(zip(pairs, extra, strict=True))
    ]
    write_json(orders, jobs)
    answers: dict[str, dict[str, Any]] = {}
    with run.terminal.progress(f"testing on the {on.upper()}", total=len(jobs), unit="tests") as bar:

        def on_line(line: str) -> None:
            if line.startswith('{"id"'):
                answer = json.loads(line)
                answers[answer["id"]] = answer
                bar.update(1)

        argv = [str(engine.python), str(SCRIPTS / "check.py"), "run", str(orders)]
        ended = run.call(argv, log=f"check-{on}.log", extra_env=engine.environment(), on_line=on_line, check=False)
    results = []
    for job, (item, case) in zip(jobs, pairs, strict=True):
        answer = answers.get(str(job["id"]), {"error": f"the test process {describe_status(ended.returncode)}"})
        results.append(
            Result(
                item.kernel.op,
                item.dtype,
                item.target,
                {**item.sizes, **case.run},
                any(name in case.run for name in item.kernel.declaration.sizes),
                answer.get("worst"),
                ALLOWED[item.dtype] * item.kernel.declaration.slack,
                answer.get("error", ""),
            )
        )
    return results


def check_kernels(context: Any, flags: dict[str, Any], dtypes: Sequence[str]) -> list[Result]:
    """What the command does: resolve the section, take the workspace's lock, run the suite."""
    check_names(dtypes, list(ALLOWED), "value type")
    with open_session(context, flags, "test") as session:
        kernels = find_kernels(session.folders, session.config.kernels)
        rocm = None if host_compiler(None) else context.toolchain.rocm()
        jobs = core_count(session.config.jobs)
        return run_suite(Suite(session.folders, kernels, dtypes, session.engine, rocm, jobs), session)
