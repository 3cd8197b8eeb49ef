"""Migration reports to test with."""

from __future__ import annotations

from collections.abc import Sequence

from amdflow.findings import Effort, Finding, Severity
from amdflow.report.migrated import Dependency
from amdflow.report.migration import FileResult, MigrationReport

ORIGINAL = "#include <cuda_runtime.h>\nconstexpr int kWarp = 32;\nvoid f(float** p) { cudaMalloc(p, 4); }\n"
MIGRATED = "#include <hip/hip_runtime.h>\nconstexpr int kWarp = 32;\nvoid f(float** p) { hipMalloc(p, 4); }\n"
WARP = Finding(
    "AMF1002",
    Severity.SILENT,
    "`kWarp` is 32; CDNA runs 64 lanes",
    "src/a.cu",
    2,
    title="Warp size fixed to 32",
    fix="Ask the device for its width",
    effort=Effort.HOURS,
    snippet="constexpr int kWarp = 32;",
    targets=("gfx942",),
)
PTX = Finding(
    "AMF1001",
    Severity.COMPILE,
    "inline PTX `prmt.b32`",
    "src/b.cu",
    3,
    title="Inline PTX",
    fix="Use a builtin",
    effort=Effort.MINUTES,
)
MASK = Finding("AMF1004", Severity.NOTE, "mask widened to 64 bits", "include/c.cuh", 3, effort=Effort.NONE)


def unit(path: str, state: str = "ok", other: str = "ok") -> FileResult:
    return FileResult(path, "hipify-clang", "translated", {"gfx942": state, "gfx1100": other}, path)


def header(path: str) -> FileResult:
    return FileResult(
        path,
        "text map",
        "translated as text",
        {"gfx942": "not a unit", "gfx1100": "not a unit"},
        path,
        ["hipify-clang crashed"],
    )


def migration(
    files: Sequence[FileResult] | None = None, findings: Sequence[Finding] = (WARP, PTX, MASK)
) -> MigrationReport:
    listed = (
        list(files) if files is not None else [unit("src/a.cu"), unit("src/b.cu", "failed"), header("include/c.cuh")]
    )
    return MigrationReport(
        source="cuda_src",
        targets=["gfx942", "gfx1100"],
        tools={"hipify-clang": "22.0.0"},
        files=listed,
        findings=list(findings),
        sources={file.path: (ORIGINAL, MIGRATED) for file in listed},
        seconds=12.5,
        dependencies=[
            Dependency("cuDNN", "MIOpen", "partial", "Not one to one.", 1, 3, ["src/b.cu"], {"cudnnFoo": 2}),
            Dependency("NCCL", "RCCL", "drop-in", "", 1, 0, ["src/a.cu"]),
        ],
        metrics={"files_per_second": 1.25, "files_by_method": {"text map": 1}},
    )
