"""Converted CMake files are CMake that configures and builds: old and new idioms, and a folder of its own for the sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow import process
from amdflow.content import shipped
from amdflow.migrate.build_scripts.convert import convert_scripts
from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.scan import scan
from tests.integration.hip_builds import cmake, configure, targets_of

SOURCE = "#include <hip/hip_runtime.h>\n__device__ float half_of(float x);\n"
DEVICE = "#include <hip/hip_runtime.h>\n__device__ float half_of(float x) { return x / 2; }\n"
KERNEL = "__global__ void k(float* x) { x[threadIdx.x] = half_of(x[threadIdx.x]); }\nvoid go(float* x) { k<<<1, 64>>>(x); }\n"
MAIN = "#include <hip/hip_runtime_api.h>\nvoid go(float*);\nint main() { float* x; if (hipMalloc((void**)&x, 256)) return 1; go(x); }\n"

FIND_CUDA = """\
cmake_minimum_required(VERSION 2.8.12)
project(old)
find_package(CUDA 9.0 REQUIRED)
set(CUDA_NVCC_FLAGS ${CUDA_NVCC_FLAGS};-O1;--expt-extended-lambda;-gencode arch=compute_70,code=sm_70)
list(APPEND CUDA_NVCC_FLAGS -Xcompiler -fPIC)
set(CUDA_SEPARABLE_COMPILATION ON)
include_directories(${CUDA_INCLUDE_DIRS})
file(GLOB SOURCES "src/*.cu")
cuda_add_executable(app ${SOURCES} src/main.cpp OPTIONS -use_fast_math)
target_link_libraries(app ${CUDA_LIBRARIES})
"""
MODERN = """\
cmake_minimum_required(VERSION 3.18)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 70 80)
endif()
project(modern LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -Xcompiler \\"-Wall,-Wextra\\" --use_fast_math")
add_subdirectory(src)
"""
MODERN_BELOW = """\
set(NOTHING plain.txt)
set(DEVICE_SOURCES device.cu kernel.cu)
add_executable(app main.cpp)
target_sources(app PRIVATE ${DEVICE_SOURCES})
set_target_properties(app PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_ARCHITECTURES "70;80" CUDA_STANDARD 17)
target_compile_features(app PRIVATE cuda_std_17)
target_compile_options(app PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wno-unused>
  "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:SHELL:-Xptxas -v>")
target_link_libraries(app PRIVATE CUDA::cudart CUDA::cudadevrt)
"""


@pytest.mark.parametrize(
    "files", [{"CMakeLists.txt": FIND_CUDA}, {"CMakeLists.txt": MODERN, "src/CMakeLists.txt": MODERN_BELOW}]
)
def test_a_converted_project_builds_a_program_with_device_code_in_two_files(
    tmp_path: Path, files: dict[str, str]
) -> None:
    source = tmp_path / "source"
    sources = {"src/device.cu": DEVICE, "src/kernel.cu": SOURCE + KERNEL, "src/main.cpp": MAIN}
    for name, text in (files | sources).items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    scripts = convert_scripts(scan(source), load_catalogue(shipped("migration").parent).build, ("gfx942", "gfx1100"))
    for name in files:
        (source / name).write_text(scripts.current(name).text)
    build = tmp_path / "build"
    configure(source, build)
    process.run([cmake(), "--build", str(build)], timeout=600)
    (program,) = build.rglob("app")
    assert targets_of(program) == {"gfx942", "gfx1100"}
