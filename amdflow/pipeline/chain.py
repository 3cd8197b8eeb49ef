"""run-all: every stage in order, each fed by the manifest of the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from amdflow.errors import AmdflowError, UsageError
from amdflow.pipeline.runner import StageReport
from amdflow.terminal import Terminal


@dataclass(frozen=True)
class Selection:
    """Which part of the chain to run."""

    order: Sequence[str]
    start: str | None = None
    until: str | None = None

    @property
    def names(self) -> list[str]:
        """The chosen stages, in order. Raises UsageError for unknown names or an empty choice."""
        for name in (self.start, self.until):
            if name is not None and name not in self.order:
                raise UsageError(f"no stage is called {name!r}", hint=f"stages: {', '.join(self.order)}")
        first = self.order.index(self.start) if self.start else 0
        last = self.order.index(self.until) if self.until else len(self.order) - 1
        if first > last:
            raise UsageError(
                f"--from {self.start} comes after --until {self.until}",
                hint=f"stages run in this order: {', '.join(self.order)}",
            )
        return list(self.order[first : last + 1])


@dataclass
class ChainReport:
    """What became of each stage, in order."""

    stages: list[StageReport] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """The first status that is not 0."""
        return next((stage.exit_code for stage in self.stages if stage.exit_code), 0)


def run_chain(names: Sequence[str], run_one: Callable[[str], StageReport], terminal: Terminal) -> ChainReport:
    """Run the stages; on a failure, add the command that goes on from there to the error."""
    report = ChainReport()
    for name in names:
        try:
            report.stages.append(run_one(name))
        except AmdflowError:
            terminal.say(
                f"\nstopped at {name}; what is done stays. When it is mended: amdflow run-all --from {name}",
                style="bold",
            )
            raise
    return report
