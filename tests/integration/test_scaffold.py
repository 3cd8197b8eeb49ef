"""``amdflow scaffold`` with the real HIP compiler, after a real migration of a small tree in which several things are broken."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CommandLine

FILES = {
    "src/ops.cu": """\
#include <cuda_runtime.h>
#include "steps.cuh"
#define BLOCK 128

namespace ops {
namespace {
struct Row { float first; int length; };

__global__ void broken_kernel(float* out, const float* in, Row row) {
  out[threadIdx.x] = ordered(in[threadIdx.x]) + row.first;
  undeclared_thing(out);
}

template <typename T>
__global__ void uses_broken(T* out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = broken_step(n);
}
}  // namespace

void run(float* out, const float* in) {
  broken_kernel<<<4, BLOCK>>>(out, in, Row{1.0f, 2});
  uses_broken<float><<<1, BLOCK>>>(out, 5);
}
}  // namespace ops
""",
    "src/steps.cuh": """\
#pragma once
__device__ inline float ordered(float x) { return x * 2.0f; }
__device__ inline int broken_step(int n) { return nowhere_declared; }
""",
}


@dataclass(frozen=True)
class Done:
    folder: Path
    amdflow: CommandLine
    said: list[dict[str, Any]]

    def of(self, name: str) -> dict[str, Any]:
        return next(item for item in self.said if item["function"] == name)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("scaffold")
    for name, text in FILES.items():
        (folder / "cuda" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cuda" / name).write_text(text)
    amdflow = CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "none")})
    assert amdflow("migrate", "cuda", "--arch", "gfx942").code == 0
    said = amdflow("scaffold", "--format", "json")
    assert said.code == 0, said.err
    return Done(folder, amdflow, said.json)


def test_each_function_with_a_blocking_finding_gets_one_that_is_broken_only_inside(done: Done) -> None:
    assert [item["function"] for item in done.said] == ["broken_kernel", "broken_step"]
    for item, line in zip(done.said, (11, 3), strict=True):
        assert item["state"] == "blocked in the function"
        assert all(error["own"] for error in item["errors"])
        assert [finding["line"] for finding in item["findings"]] == [line]
        assert (done.folder / item["folder"] / "README.md").is_file()
    assert done.of("broken_kernel")["folder"] == "scaffold/src/ops.cu/broken_kernel"


def test_mending_the_function_makes_it_compile_and_the_edit_is_kept(done: Done) -> None:
    folder = done.folder / done.of("broken_kernel")["folder"]
    code = folder / "code_under_test.hpp"
    text = code.read_text()
    assert "broken_step" not in text.replace("steps.cuh", "")
    code.write_text(text.replace("undeclared_thing(out);", ""))
    again = done.amdflow("scaffold", "broken_kernel", "--format", "json").json[0]
    assert (again["state"], again["edited"]) == ("compiles", True)
    assert "undeclared_thing" not in code.read_text()
    forced = done.amdflow("scaffold", "broken_kernel", "--force", "--format", "json").json[0]
    assert (forced["state"], forced["edited"]) == ("blocked in the function", False)


def test_a_function_that_needs_a_broken_one_waits_for_it_and_names_it(done: Done) -> None:
    item = done.amdflow("scaffold", "uses_broken", "--format", "json").json[0]
    assert item["state"] == "waits for another flagged place"
    assert {(error["path"], error["line"], error["in"]) for error in item["errors"]} == {
        ("src/steps.cuh", 3, "broken_step")
    }


def test_the_program_says_loudly_that_its_reference_is_not_written(done: Done, tmp_path: Path) -> None:
    """Host code of the program, run: the answer comes before any GPU is asked for."""
    compiler = shutil.which("g++")
    assert compiler
    source = done.folder / done.of("broken_kernel")["folder"] / "broken_kernel.hip"
    assert "SCAFFOLD_NOT_WRITTEN" in source.read_text()
    support = source.with_name("scaffold.hpp").read_text()
    stand_in = tmp_path / "hip"
    stand_in.mkdir()
    (stand_in / "hip_runtime.h").write_text(
        "#pragma once\n#define __host__\n#define __device__\nenum hipError_t { hipSuccess };\nenum K { hipMemcpyHostToDevice, hipMemcpyDeviceToHost };\n"
        'inline const char* hipGetErrorString(hipError_t) { return ""; }\ninline hipError_t hipFree(void*) { return hipSuccess; }\n'
        "inline hipError_t hipMalloc(void**, unsigned long) { return hipSuccess; }\n"
        "inline hipError_t hipMallocManaged(void**, unsigned long) { return hipSuccess; }\n"
        "inline hipError_t hipMemcpy(void*, const void*, unsigned long, K) { return hipSuccess; }\n"
    )
    (tmp_path / "scaffold.hpp").write_text(support)
    (tmp_path / "main.cpp").write_text(
        '#include "scaffold.hpp"\nint main(int count, char**) {\n  amdflow_scaffold::Buffer<float> x("x", 8);\n'
        "  if (count > 1) { x.host()[3] += 1; return int(x.differences(1e-3)); }\n"
        '  SCAFFOLD_NOT_WRITTEN("reference() of k()");\n}\n'
    )
    from amdflow import process

    program = tmp_path / "program"
    process.run([compiler, "-std=c++17", f"-I{tmp_path}", str(tmp_path / "main.cpp"), "-o", str(program)], cwd=tmp_path)
    loud = process.run([str(program)], cwd=tmp_path, check=False)
    assert loud.returncode == 77
    assert "reference() of k() is not written yet" in loud.stderr
    differs = process.run([str(program), "compare"], cwd=tmp_path, check=False)
    assert differs.returncode == 1
    assert "x: 1 of 8 elements differ" in differs.stdout


def test_a_place_names_its_function_and_nothing_is_said_clearly(done: Done) -> None:
    listed = done.amdflow("scaffold", "cuda/src/ops.cu:10", "--list", "--format", "json")
    assert [item["function"] for item in listed.json] == ["broken_kernel"]
    whole = done.amdflow("scaffold", "src/ops.cu", "--list", "--format", "json")
    assert {item["function"] for item in whole.json} == {"broken_kernel", "uses_broken", "run"}
    nothing = done.amdflow("scaffold", "no_such_function")
    assert nothing.code == 2
    assert "no function fits 'no_such_function'" in nothing.err
    assert "amdflow scaffold --list" in nothing.err


def test_scaffolds_stay_out_of_the_sources_and_of_foreign_folders(done: Done) -> None:
    inside = done.amdflow("scaffold", "--output", "cuda/scaffold")
    assert inside.code == 2
    assert "inside a tree of sources" in inside.err
    foreign = done.folder / "elsewhere" / "src" / "ops.cu" / "broken_kernel"
    foreign.mkdir(parents=True)
    (foreign / "mine.txt").write_text("mine")
    said = done.amdflow("scaffold", "broken_kernel", "--output", "elsewhere")
    assert said.code == 2
    assert (foreign / "mine.txt").read_text() == "mine"
    assert done.amdflow("scaffold", "--from-manifest", "nowhere").code == 2


def test_changed_sources_are_not_mistaken_for_the_migrated_ones(done: Done) -> None:
    source = done.folder / "cuda" / "src" / "ops.cu"
    before = source.read_text()
    source.write_text("\n" + before)
    try:
        said = done.amdflow("scaffold", "--list")
    finally:
        source.write_text(before)
    assert said.code == 2
    assert "has changed since it was migrated" in said.err
