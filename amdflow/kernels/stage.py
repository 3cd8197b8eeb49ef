"""The kernels stage: TileLang kernels to code objects, each held against its target's limits."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from amdflow.errors import AmdflowError, UsageError
from amdflow.files import portable, write_json
from amdflow.findings import Effort, Finding, Severity
from amdflow.gpu.targets import target
from amdflow.kernels import table
from amdflow.kernels.artifacts import INDEX, argument_problem, build_index
from amdflow.kernels.baseline import ACCEPT, NAME, Baseline, read_baseline
from amdflow.kernels.budget import Verdict, judge
from amdflow.kernels.build import LAUNCH, OBJECT, RESOURCES, SOURCE, Built, Line, tool_versions
from amdflow.kernels.config import KernelsConfig
from amdflow.kernels.handoff import Region, from_migrate, published, region_findings
from amdflow.kernels.item import Item, core_count
from amdflow.kernels.lower import Failure
from amdflow.kernels.sources import Folders, Kernel, find_kernels, open_folders
from amdflow.kernels.suggest import fitting_tiles
from amdflow.kernels.tiles import shapes_for, tile_files, tiles_for
from amdflow.pipeline.stage import Input, Outcome, Output, Plan, Request, Run, Stage
from amdflow.toolchain import Engine, Rocm

REPORT = "kernels.json"
_SHOWN_FAILURES = 8
_ELF_AMDGPU = 224
_STEPS = {
    "lowering": "TileLang refuses it",
    "crash": "TileLang crashed",
    "compile": "does not compile",
    "arguments": "cannot be launched",
    "budget": "over budget",
}


@dataclass(frozen=True)
class _Job:
    items: tuple[Item, ...]
    left_out: tuple[Item, ...]
    kernels: tuple[Kernel, ...]
    regions: tuple[Region, ...]
    rocm: Rocm
    engine: Engine
    jobs: int
    source: str
    """The project's folder of kernels, relative to the workspace; it need not exist."""
    baseline: Baseline | None


class KernelsStage(Stage[KernelsConfig]):
    """See the module."""

    name: ClassVar[str] = "kernels"
    version: ClassVar[int] = 1
    payload: ClassVar[str] = "objects"
    summary: ClassVar[str] = "build TileLang kernels for AMD targets"
    upstream: ClassVar[str | None] = "migrate"
    config_type = KernelsConfig

    def plan(self, request: Request[KernelsConfig]) -> Plan:
        """Find kernels, settings and tools. Raises UsageError, EnvironmentProblem."""
        config = request.config
        handed = from_migrate(request.upstream)
        targets = tuple(
            target(name).name for name in dict.fromkeys(config.targets or handed.targets or request.targets)
        )
        folders = open_folders(request.path(config.source), given=config.source)
        kernels = find_kernels(folders, config.kernels)
        every = [item for kernel in kernels for item in _items(folders, kernel, targets, config)]
        if not every:
            raise UsageError(
                f"nothing to build: no chosen kernel has one of the value types {', '.join(config.dtypes)}",
                hint="choose others with kernels.dtypes",
            )
        items = tuple(item for item in every if _possible(item))
        job = _Job(
            items,
            tuple(item for item in every if item not in items),
            tuple(kernels),
            handed.regions,
            request.toolchain.rocm(),
            request.toolchain.engine("kernels"),
            core_count(config.jobs),
            portable(request.path(config.source), request.root),
            read_baseline(folders.folders[0]) if config.baseline == "check" else None,
        )
        tools = tool_versions(job.engine, job.rocm)
        steps = [
            f"lower {len(items)} variants of {len(kernels)} kernels ({', '.join(kernel.op for kernel in kernels)}) with TileLang {tools['tilelang']}",
            f"compile each to a code object with ROCm {tools['rocm']} ({job.rocm.origin}) for {', '.join(targets)}",
            "check LDS, registers, spills and matrix instructions against each target's limits"
            + (" and the baseline" if job.baseline else ""),
        ]
        settings = {
            "kernels": [kernel.op for kernel in kernels],
            "dtypes": list(config.dtypes),
            "baseline": config.baseline,
        }
        return Plan(
            config=settings,
            inputs=_inputs(folders, kernels, targets),
            tools=tools,
            steps=steps,
            targets=targets,
            job=job,
        )

    def execute(self, plan: Plan, run: Run) -> Outcome:
        """Build, judge, publish. Raises AmdflowError that names every kernel which cannot be built or is over budget."""
        job: _Job = plan.job
        line = Line(run, job.engine, job.jobs, job.rocm)
        built = line.make(job.items)
        verdicts = [
            judge(target(one.item.target), one.resources, one.launch, matrix=one.item.kernel.declaration.matrix)
            for one in built
        ]
        line.failures += [
            Failure(one.item, "arguments", problem)
            for one in built
            if (problem := argument_problem(one.launch, one.resources))
        ]
        over = [(one, verdict) for one, verdict in zip(built, verdicts, strict=True) if verdict.problems]
        if line.failures or over:
            raise _refusal(
                [*line.failures, *(_over_budget(one, verdict, line) for one, verdict in over)], len(job.items)
            )
        rows = [table.row(one, verdict) for one, verdict in zip(built, verdicts, strict=True)]
        compared = _compare(job.baseline, rows, plan.tools)
        outputs = [output for one in built for output in _publish(one, run.payload)]
        write_json(run.payload / INDEX, build_index(built, tool_versions(job.engine, job.rocm)))
        outputs.append(Output(run.payload / INDEX, "index", produced_by="amdflow", media_type="application/json"))
        findings = [
            *_remarks(built, verdicts),
            *compared,
            *_gaps(job.left_out),
            *region_findings(job.regions, job.kernels),
        ]
        handoff = published(
            built, targets=plan.targets, payload=run.payload_path, regions=job.regions, kernels=job.kernels
        )
        handoff["source"] = job.source
        write_json(
            run.scratch / REPORT,
            {
                "schema": "amdflow/kernels",
                "version": "1.0",
                "kernels": rows,
                "regions": handoff["regions"],
                "findings": [one.to_json() for one in findings],
            },
        )
        return Outcome(
            outputs=[
                *outputs,
                Output(run.scratch / REPORT, "report", produced_by="amdflow", media_type="application/json"),
            ],
            findings=findings,
            metrics={"built": len(built), "from_cache": sum(one.cached for one in built), "kernels": rows},
            handoff=handoff,
            not_exercised=["no kernel ran on an AMD GPU: `amdflow kernels test` checks their numbers on the CPU"]
            if job.engine.device != "rocm"
            else [],
        )

    def verify(self, plan: Plan, outcome: Outcome, run: Run) -> Sequence[Finding]:  # noqa: ARG002 - the contract
        """Every code object that is handed over must be there, and be one for an AMD GPU."""
        for output in outcome.outputs:
            if output.role == "code-object" and not _is_code_object(output.path):
                raise AmdflowError(
                    f"{output.path.name} of {output.path.parent.name} is no AMD code object",
                    hint="amdflow kernels build --force",
                )
        return ()


STAGE = KernelsStage()


def _compare(baseline: Baseline | None, rows: Sequence[dict[str, Any]], tools: Mapping[str, str]) -> list[Finding]:
    """Raises AmdflowError for kernels that got much worse; with other tools than the baseline's they are findings."""
    if baseline is None:
        return []
    worse = baseline.regressions(rows)
    other = baseline.other_tools(tools)
    if worse and not other:
        lines = [f"{name}: {'; '.join(what)}" for name, what in worse.items()]
        more = [f"and {len(lines) - _SHOWN_FAILURES} more"] if len(lines) > _SHOWN_FAILURES else []
        raise AmdflowError(
            "\n    ".join([f"{len(worse)} kernels are worse than {NAME} has them", *lines[:_SHOWN_FAILURES], *more]),
            hint=f"if that is meant to be: {ACCEPT}",
        )
    return [
        Finding(
            "AMF2004",
            Severity.SLOW,
            f"{name}: {'; '.join(what)} (the baseline was taken with {other})",
            path=f"kernels/{NAME}",
            title="worse than the baseline, with other tools",
            targets=(name.partition("/")[0],),
            fix=f"when these tools are here to stay: {ACCEPT}",
        )
        for name, what in worse.items()
    ]


def _items(folders: Folders, kernel: Kernel, targets: Sequence[str], config: KernelsConfig) -> list[Item]:
    return [
        Item(kernel, arch, dtype, sizes, tiles_for(folders, kernel, arch, {"dtype": dtype, **sizes}))
        for arch in targets
        for dtype in config.dtypes
        if dtype in kernel.declaration.dtypes
        for sizes in shapes_for(folders, kernel)
    ]


def _possible(item: Item) -> bool:
    return not item.kernel.declaration.matrix or target(item.target).matrix is not None


def _inputs(folders: Folders, kernels: Sequence[Kernel], targets: Sequence[str]) -> list[Input]:
    paths = [kernel.path for kernel in kernels] + folders.find("shapes.yaml")
    paths += [path for path in (folders.folders[0] / NAME,) if path.is_file()]
    paths += [path for arch in targets for path in tile_files(folders, arch)]
    found: dict[str, Input] = {}
    for path in dict.fromkeys(paths):
        folder = next(index for index, folder in enumerate(folders.folders) if path.is_relative_to(folder))
        name = f"kernels/{path.relative_to(folders.folders[folder]).as_posix()}"
        name = name if name not in found else f"shipped {name}"
        found[name] = Input(name, path)
    return list(found.values())


def _is_code_object(path: Path) -> bool:
    """Whether the ELF header names the AMD GPU as its machine."""
    with path.open("rb") as stream:
        header = stream.read(20)
    return header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == _ELF_AMDGPU


def _publish(built: Built, payload: Path) -> list[Output]:
    folder = payload / built.item.name
    folder.mkdir(parents=True)
    tools = {
        SOURCE: ("source", "tilelang"),
        OBJECT: ("code-object", "clang"),
        LAUNCH: ("launch", "tilelang"),
        RESOURCES: ("resources", "llvm-readelf"),
    }
    outputs = []
    for name, (role, tool) in tools.items():
        shutil.copyfile(built.folder / name, folder / name)
        outputs.append(Output(folder / name, role, produced_by=tool))
    return outputs


def _over_budget(built: Built, verdict: Verdict, line: Line) -> Failure:
    item = built.item
    fitting = fitting_tiles(item, line)
    advice = "no smaller tile of a few fits either"
    if fitting is not None:
        words = ", ".join(f"{name}: {value}" for name, value in fitting.items())
        advice = f"`{item.kernel.op}: {{{words}}}` in kernels/tiles/{item.target}.yaml fits"
    return Failure(item, "budget", f"{'; it '.join(verdict.problems)}; {advice}")


def _refusal(failures: Sequence[Failure], total: int) -> AmdflowError:
    lines = [f"{len(failures)} of {total} kernel builds failed" if len(failures) > 1 else ""]
    for failure in failures[:_SHOWN_FAILURES]:
        what = _STEPS[failure.step]
        log = f" (log: {failure.log})" if failure.log else ""
        lines.append(
            f"{failure.item.kernel.name}: {failure.item.variant} for {failure.item.target}: {what}: {failure.message}{log}"
        )
    if len(failures) > _SHOWN_FAILURES:
        lines.append(f"and {len(failures) - _SHOWN_FAILURES} more")
    first = failures[0].item
    return AmdflowError(
        "\n    ".join(line for line in lines if line),
        hint=f"change it, then: amdflow kernels build --kernel {first.kernel.op} --arch {first.target}",
    )


def _remarks(built: Sequence[Built], verdicts: Sequence[Verdict]) -> list[Finding]:
    return [
        Finding(
            "AMF2001",
            Severity.SLOW,
            f"{one.item.variant} {remark}",
            path=one.item.kernel.name,
            title="registers spill",
            targets=(one.item.target,),
            fix=f"smaller tiles or more threads for {one.item.kernel.op} in kernels/tiles/{one.item.target}.yaml",
        )
        for one, verdict in zip(built, verdicts, strict=True)
        for remark in verdict.remarks
    ]


def _gaps(left_out: Sequence[Item]) -> list[Finding]:
    pairs = dict.fromkeys((item.kernel.op, item.kernel.name, item.target) for item in left_out)
    return [
        Finding(
            "AMF2002",
            Severity.NOTE,
            f"{op} is not built for {arch}: it needs matrix instructions, {arch} has none",
            path=name,
            title="no matrix instructions",
            effort=Effort.NONE,
            targets=(arch,),
        )
        for op, name, arch in pairs
    ]
