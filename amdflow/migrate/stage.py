"""The migrate stage: scan, translate, fix, compile, report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from amdflow import __version__
from amdflow.config import ProjectConfig, load_project
from amdflow.errors import AmdflowError, EnvironmentProblem, UsageError
from amdflow.files import portable
from amdflow.findings import Finding
from amdflow.migrate import annotate
from amdflow.migrate.compile_check import Compiler
from amdflow.migrate.config import MigrateConfig
from amdflow.migrate.hipify import Hipify
from amdflow.migrate.migration import Job, Migration
from amdflow.migrate.records import record
from amdflow.migrate.records.apply import FOLDER as RECORDS
from amdflow.migrate.records.merge import check_available
from amdflow.migrate.rules.catalogue import Catalogue, load_catalogue
from amdflow.migrate.scan import Kind, scan
from amdflow.migrate.text import decode
from amdflow.pipeline.stage import Input, Outcome, Plan, Request, Run, Stage
from amdflow.toolchain import CudaHeaders, Rocm


@dataclass(frozen=True)
class _Tools:
    rocm: Rocm
    cuda: CudaHeaders
    hipify: Path


class MigrateStage(Stage[MigrateConfig]):
    """CUDA sources in, HIP sources out."""

    name: ClassVar[str] = "migrate"
    version: ClassVar[int] = 1
    payload: ClassVar[str] = "hip"
    summary: ClassVar[str] = "CUDA sources to HIP sources"
    config_type = MigrateConfig
    keeps_added: ClassVar[bool] = True
    edit_advice: ClassVar[str] = 'keep them with `amdflow record --why "..."`'

    def plan(self, request: Request[MigrateConfig]) -> Plan:
        """Read the tree's names, find the tools, load the rules."""
        config = request.config
        if not config.source:
            raise UsageError(
                "no source folder given",
                hint="amdflow migrate ./cuda_src, or `source:` in the migrate section of amdflow.yaml",
            )
        root = request.path(config.source)
        config = config.model_copy(update={"source": portable(root, request.root)})
        workdir = load_project(request.root).resolve("", ProjectConfig).value.workdir
        if root == request.path(workdir):
            raise UsageError(
                f"{root} is both the source folder and the workdir", hint="set another `workdir:` in amdflow.yaml"
            )
        tree = scan(root, exclude=config.exclude, outputs=[request.root / workdir])
        catalogue = load_catalogue(request.root)
        tools = _find_tools(request)
        records = _records(request.root, config.source)
        jobs = config.jobs or os.cpu_count() or 1
        code = sum(entry.is_code for entry in tree.entries)
        build = sum(entry.kind is Kind.BUILD for entry in tree.entries)
        steps = [
            f"read {len(tree.entries)} files of {config.source}: {code} sources and headers, {build} build files",
            f"translate them with hipify-clang {tools.rocm.version}, {jobs} at a time; as text where it fails",
            f"compile every translation unit for {', '.join(request.targets)}"
            if config.compile
            else "compile nothing (--no-compile)",
            f"look for {len(catalogue.rules)} kinds of hazards in the original sources{_own_rules(catalogue)}",
            "write report.html, report.md and findings.json",
        ]
        if records:
            steps.insert(-1, f"merge {len(records)} recorded manual changes ({RECORDS}) into the output")
        job = Job(
            config,
            tree,
            tuple(request.targets),
            jobs,
            catalogue,
            _hipify(tools),
            _compiler(tools.rocm),
            _include_folder(tools.rocm.root),
            tuple(records.values()),
        )
        return Plan(
            config=config.model_dump(mode="json", exclude={"jobs"}) | {"rules": catalogue.digest},
            inputs=[
                *(Input(entry.name, entry.path, entry.kind.value) for entry in tree.entries),
                *(Input(portable(file, request.root), file, "record") for file in records),
            ],
            tools={
                "hipify-clang": tools.rocm.version,
                "rocm": tools.rocm.version,
                "cuda-headers": tools.cuda.version,
                "amdflow": __version__,
            },
            steps=steps,
            targets=request.targets,
            job=job,
            writes=[entry.name for entry in tree.entries],
        )

    def execute(self, plan: Plan, run: Run) -> Outcome:
        """Do the work; everything is said in the outcome's findings."""
        return Migration(plan.job, plan.tools, run).run()

    def is_kept(self, plan: Plan, name: str, path: Path) -> bool:
        """Whether a record holds the file as a person left it."""
        job: Job = plan.job
        known = next((kept for kept in job.records if kept.path == name), None)
        return known is not None and path.is_file() and annotate.strip(decode(path.read_bytes())) == known.edited

    def verify(self, plan: Plan, outcome: Outcome, run: Run) -> Sequence[Finding]:
        """No file is missing from the output, and no source changed under our hands."""
        job: Job = plan.job
        if not outcome.outputs:
            raise AmdflowError("the migration wrote nothing", hint="this is a fault of amdflow: please report it")
        removed = {kept.path for kept in job.records if kept.deleted}
        for entry in job.tree.entries:
            if entry.name not in removed and not (run.payload / entry.name).is_file():
                raise AmdflowError(
                    f"{entry.name} is missing from the migrated tree",
                    hint="this is a fault of amdflow: please report it with the file",
                )
            now = entry.path.stat()
            matters = entry.is_code or entry.kind is Kind.BUILD  # a log that grows in the tree does not
            if matters and (now.st_size, now.st_mtime_ns) != (entry.size, entry.changed):
                raise AmdflowError(
                    f"{entry.path} was changed while it was being migrated",
                    hint="run the same command again; unchanged files are not translated twice",
                )
        return ()


def _records(root: Path, source: str) -> dict[Path, record.Record]:
    """The workspace's records, without those of another source folder that is still there."""
    found = {
        file: kept
        for file, kept in record.read_all(root / RECORDS).items()
        if kept.header.source in ("", source) or not (root / kept.header.source).is_dir()
    }
    if found:
        check_available()
    return found


def _own_rules(catalogue: Catalogue) -> str:
    if not catalogue.own:
        return ""
    replaced = f"; {', '.join(sorted(catalogue.replaced))} in the place of shipped ones" if catalogue.replaced else ""
    return f" ({len(catalogue.own)} of them from migration/rules{replaced})"


def _find_tools(request: Request[MigrateConfig]) -> _Tools:
    rocm: Rocm = request.toolchain.rocm()
    if rocm.hipify is None:
        raise EnvironmentProblem(
            f"ROCm {rocm.version} in {rocm.root} has no hipify-clang", hint="amdflow toolchain install rocm"
        )
    return _Tools(rocm, request.toolchain.cuda_headers(), rocm.hipify)


def _hipify(tools: _Tools) -> Hipify:
    tool, cuda = tools.rocm.needed_hipify(), tools.cuda
    # a system's own Thrust and CUB (rocThrust) would be found before CUDA's, which do not mix with them
    options = (*tools.rocm.hipify_flags(cuda), f"--extra-arg=-isystem{cuda.root / 'include'}")
    clang = tool.resource_dir.parents[2] / "bin" / "clang" if len(tool.resource_dir.parents) > 2 else None
    found = clang if clang is not None and clang.is_file() else None
    return Hipify(tools.hipify, options, f"{tool.version}+cuda{cuda.version}", found)


def _compiler(rocm: Rocm) -> Compiler:
    flags = rocm.compile_flags()
    host = [flag for flag in flags if flag not in ("-x", "hip") and not flag.startswith(("--rocm", "--hip"))]
    return Compiler(
        rocm.clang,
        tuple(flags),
        ("-x", "c", "-D__HIP_PLATFORM_AMD__", f"-idirafter{_include_folder(rocm.root)}", *host),
        rocm.version,
        (_include_folder(rocm.root),),
    )


def _include_folder(root: Path) -> Path:
    """Where ROCm's headers lie: ``include`` in ROCm's own layout, ``usr/include`` in a distribution's."""
    return next(
        (folder for folder in (root / "include", root / "usr" / "include") if (folder / "hip").is_dir()),
        root / "include",
    )


STAGE = MigrateStage()
