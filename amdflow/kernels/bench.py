"""``kernels bench``: times on the GPU at hand beside what a user would pick instead. No GPU, no times."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amdflow.errors import AmdflowError, EnvironmentProblem, UsageError
from amdflow.files import portable
from amdflow.kernels.inside.measuring.sizes import OPERATORS
from amdflow.kernels.inside.measuring.summary import is_wrong, problems
from amdflow.kernels.item import SCRIPTS
from amdflow.kernels.session import Session, check_names, open_session
from amdflow.kernels.sources import find_kernels
from amdflow.process import describe_status
from amdflow.toolchain import Engine

DTYPES = ("bfloat16", "float16", "float32")
RESULTS = "bench.json"
_GRACE_SECONDS = 900.0
"""How long the last measurement may go on after the time limit."""


@dataclass(frozen=True)
class Wanted:
    """What is to be measured."""

    operators: Sequence[str] = ()
    """Empty: all."""
    dtypes: Sequence[str] = ("bfloat16",)
    sizes: str = ""
    """``rows=8192,hidden=4096`` for the one operator named; empty: the usual sizes."""
    check: bool = False
    """Compare with float64 at real sizes first."""
    minutes: float | None = None
    """Nothing new is begun after so long."""

    def arguments(self, results: Path) -> list[str]:
        """What ``inside/bench.py`` is called with."""
        words = ["--json", str(results), "--dtype", ",".join(self.dtypes)]
        words += ["--only", ",".join(self.operators)] if self.operators else []
        words += ["--sizes", self.sizes] if self.sizes else []
        words += ["--check"] if self.check else []
        return words + (["--time-limit", str(60 * self.minutes)] if self.minutes else [])


@dataclass(frozen=True)
class Measured:
    """What came of it."""

    document: Mapping[str, Any]
    results: Path
    pictures: tuple[Path, ...]


def bench_kernels(context: Any, wanted: Wanted, output: Path | None) -> Measured:
    """What the command does. Results go to ``output``, else to a folder of this run's below the workdir.

    Raises UsageError for an unknown operator, type or size, EnvironmentProblem without a GPU, AmdflowError when the
    measuring process died; what was measured until then stays on disk.
    """
    check_names(wanted.dtypes, DTYPES, "value type")
    if wanted.sizes and len(wanted.operators) != 1:
        raise UsageError(
            "--sizes needs one operator", hint="for example: --kernel rms_norm --sizes rows=8192,hidden=5120"
        )
    with open_session(context, {}, "bench") as session:
        kernels = [kernel.op for kernel in find_kernels(session.folders) if kernel.declaration.typical]
        check_names(wanted.operators, tuple(dict.fromkeys((*OPERATORS, *kernels))), "operator")
        if session.gpu() is None:
            raise no_gpu(session.engine)
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
        folder = output.absolute() if output else context.workdir / "kernels-bench" / stamp
        return _measure(session, wanted, folder / RESULTS)


def no_gpu(engine: Engine) -> EnvironmentProblem:
    """The error of a machine that has nothing to measure on."""
    build = f"torch built for {engine.torch_build}" if engine.torch_build else "its torch"
    return EnvironmentProblem(
        f"no GPU to measure on: {engine.python} has {build} and sees none; times on a CPU would say nothing of one",
        hint="on a machine with an AMD or NVIDIA GPU: amdflow toolchain install kernels. "
        "Here: `amdflow kernels tune` ranks tile settings by a model, `amdflow kernels test` checks the numbers",
    )


def failure(measured: Measured) -> AmdflowError | None:
    """The error that names what of ours is wrong or failed; None when nothing is."""
    wrong = [row for row in measured.document["rows"] if is_wrong(row)]
    if not wrong:
        return None
    lines = problems({"rows": wrong})
    return AmdflowError(
        "\n    ".join([f"{len(wrong)} of {len(measured.document['rows'])} measurements failed or are wrong", *lines]),
        hint="look at one operator: amdflow kernels bench --kernel NAME --check",
    )


def _measure(session: Session, wanted: Wanted, results: Path) -> Measured:
    results.parent.mkdir(parents=True, exist_ok=True)
    for old in (results, *_pictures(results)):
        old.unlink(missing_ok=True)
    refused: list[str] = []
    terminal = session.run.terminal
    with terminal.progress("measuring", unit="rows") as bar:

        def on_line(line: str) -> None:
            if not line.startswith('{"'):
                return
            said = json.loads(line)
            refused.extend([said["refused"]] if "refused" in said else [])
            if "total" in said:
                bar.update(total=said["total"])
            if row := said.get("row"):
                bar.update(1, note=" ".join(str(row[key]) for key in ("op", "contender") if key in row))

        argv = [str(session.engine.python), str(SCRIPTS / "bench.py"), *wanted.arguments(results)]
        ended = session.run.call(
            argv,
            log="bench.log",
            extra_env=session.environment(),
            on_line=on_line,
            check=False,
            timeout=60 * wanted.minutes + _GRACE_SECONDS if wanted.minutes else None,
        )
    if refused:
        raise UsageError(refused[0], hint="amdflow kernels bench --help")
    log = portable(session.run.logs / "bench.log", session.run.root)
    if not results.is_file():
        raise AmdflowError(f"the measuring process {describe_status(ended.returncode)}", hint=f"its log: {log}")
    if ended.timed_out or ended.returncode not in (0, 1):
        how = "ran past its time limit" if ended.timed_out else describe_status(ended.returncode)
        raise AmdflowError(
            f"the measuring process {how}; what it had measured is in {portable(results, session.run.root)}",
            hint=f"its log: {log}",
        )
    document = json.loads(results.read_text(encoding="utf-8"))
    return Measured(document, results, _pictures(results))


def _pictures(results: Path) -> tuple[Path, ...]:
    return tuple(sorted(results.parent.glob(f"{results.stem}.*.svg")))
