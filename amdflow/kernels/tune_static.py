"""Candidates without a card: built for their target, held against its limits, ranked by the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amdflow import process
from amdflow.files import canonical_json, sha256_text
from amdflow.gpu.targets import target
from amdflow.kernels.budget import judge
from amdflow.kernels.build import CPU_LIBRARY, LAUNCH, OBJECT, Built, Line, tool_versions
from amdflow.kernels.check import check_items
from amdflow.kernels.compile import host_compiler
from amdflow.kernels.item import Item
from amdflow.kernels.sources import Case
from amdflow.kernels.tune_model import VERSION, estimate, read_mix
from amdflow.kernels.tune_space import Outcome, Settings, Task
from amdflow.pipeline.stage import Run
from amdflow.toolchain import Engine, Rocm


@dataclass(frozen=True, eq=False)
class Candidate(Item):
    """An item among others that differ from it in nothing but the tile settings."""

    @property
    def name(self) -> str:
        """The item's name and what tells its settings from others."""
        return f"{super().name}+{sha256_text(canonical_json(dict(self.tiles)))[:12]}"


@dataclass(frozen=True)
class Model:
    """Admits and ranks settings by their code objects."""

    run: Run
    engine: Engine
    rocm: Rocm
    jobs: int
    measures = False
    how = "ranked by a model, not measured"

    @property
    def batch(self) -> int:
        """How many are built at a time: enough that starting TileLang does not count."""
        return 4 * self.jobs

    @property
    def tools(self) -> Mapping[str, Any]:
        """What outcomes depend on."""
        return {**tool_versions(self.engine, self.rocm), "model": VERSION}

    def outcomes(self, task: Task, batch: Sequence[Settings]) -> list[Outcome]:
        """What each of ``batch`` comes to; those that do not build or fit are out. One that was not reached is left out."""
        line = Line(self.run, self.engine, self.jobs, self.rocm)
        items: dict[Item, Settings] = {candidate(task, settings, task.target): settings for settings in batch}
        found = [self._ranked(task, items[one.item], one) for one in line.make(list(items), title=task.title)]
        steps = {"budget": "", "lowering": "TileLang refuses it: ", "crash": "TileLang crashed: ", "compile": ""}
        return found + [
            Outcome(items[failure.item], None, steps[failure.step] + failure.message.splitlines()[0])
            for failure in line.failures
        ]

    def _ranked(self, task: Task, settings: Settings, built: Built) -> Outcome:
        facts, resources, launch = target(task.target), built.resources, built.launch
        verdict = judge(facts, resources, launch, matrix=task.kernel.declaration.matrix)
        waves = verdict.occupancy.waves_per_simd
        shown = {
            "waves": waves,
            "vgprs": facts.registers(resources.vgprs, resources.agprs),
            "lds": verdict.lds,
            "spills": resources.vgpr_spills,
        }
        if verdict.problems:
            return Outcome(settings, None, "; ".join(verdict.problems), shown)
        argv = [str(self.rocm.tool("llvm-objdump")), "--disassemble", "--no-show-raw-insn", "--no-leading-addr"]
        listing = process.run([*argv, "--symbolize-operands", str(built.folder / OBJECT)])
        sizes = {**task.run, **task.sizes}
        cost = estimate(task.target, resources, waves, launch, read_mix(listing.stdout), sizes)
        if cost is None:
            return Outcome(settings, None, f"{task.kernel.name} does not say what work it does", shown)
        return Outcome(settings, 1e3 * cost["seconds"], "", shown | {"bound": cost["bound"]})


def candidate(task: Task, settings: Settings, on: str) -> Candidate:
    """The item of ``task`` with ``settings``, built for ``on``."""
    return Candidate(task.kernel, on, task.dtype, task.sizes, {**task.tiles, **settings})


def fitting_cases(task: Task) -> list[Case]:
    """The kernel's own numeric tests that give all that is given at launch; those of the same mode, where there are any."""
    wanted = set(task.run) - set(task.sizes)
    cases = [case for case in task.kernel.cases if wanted <= set(case.run)]
    return [case for case in cases if _mode(case.build) == _mode(task.sizes)] or cases


def _mode(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes that are no numbers: what makes another kernel of it (causal, a layout, an activation)."""
    return {name: value for name, value in sizes.items() if isinstance(value, bool | str)}


def numbers_on_cpu(task: Task, settings: Settings, model: Model) -> str:
    """``right``, ``wrong``, or why the kernel with these settings could not be tried on the CPU."""
    compiler = host_compiler(model.rocm)
    cases = fitting_cases(task)
    if not compiler or not cases:
        return "there is no C++ compiler here" if not compiler else "none of its cases has these sizes"
    line = Line(model.run, model.engine, model.jobs, None, compiler)
    built = line.make([candidate(task, settings, "cpu")], title="checking on the CPU")
    if not built:
        return f"it does not build for the CPU: {line.failures[0].message.splitlines()[0]}"
    pairs: list[tuple[Item, Case]] = [(built[0].item, replace_build(case, task)) for case in cases]
    extra = [{"library": str(built[0].folder / CPU_LIBRARY), "launch": str(built[0].folder / LAUNCH)}] * len(pairs)
    results = check_items(pairs, extra, model.engine, model.run, "cpu")
    return "right" if all(result.passed for result in results) else "wrong"


def replace_build(case: Case, task: Task) -> Case:
    """The case at the task's fixed sizes."""
    return Case(build=dict(task.sizes), run=case.run)
