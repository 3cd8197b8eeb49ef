"""CMake files: the idioms of CUDA projects, old and new, and what becomes of them."""

from __future__ import annotations

import pytest

from amdflow.migrate.build_scripts.cmake import convert_cmake
from amdflow.migrate.build_scripts.cmake_tree import CMakeTree
from tests.unit.migrate.build_scripts.scripts import TABLES, TARGETS, cmake

DEFAULT = 'set(CMAKE_HIP_ARCHITECTURES gfx942 gfx1100 CACHE STRING "GPU architectures to build for")\n'
PREFIX = "list(APPEND CMAKE_PREFIX_PATH ${CMAKE_HIP_COMPILER_ROCM_ROOT} $ENV{ROCM_PATH} /opt/rocm)\n"
HIP = f"{PREFIX}find_package(hip CONFIG REQUIRED)\n"
FAST = (
    "-fgpu-flush-denormals-to-zero{0}-fgpu-approx-transcendentals{0}-fno-hip-fp32-correctly-rounded-divide-sqrt{0}"
    "-ffp-contract=fast"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("project(a LANGUAGES CXX CUDA)\n", f"{DEFAULT}project(a LANGUAGES CXX HIP)\n"),
        ("project(a C CXX CUDA)\n", f"{DEFAULT}project(a C CXX HIP)\n"),
        ("project(a LANGUAGES CUDA)\n", f"{DEFAULT}project(a LANGUAGES CXX HIP)\n"),
        ("project(CUDA LANGUAGES CXX)\n", "project(CUDA LANGUAGES CXX)\n"),
        ("if(X)\n  enable_language(CUDA)\nendif()\n", f"if(X)\n  {DEFAULT}  enable_language(HIP)\nendif()\n"),
        (
            "check_language(CUDA)\nif(CMAKE_CUDA_COMPILER)\nendif()\n",
            "check_language(HIP)\nif(CMAKE_HIP_COMPILER)\nendif()\n",
        ),
        (
            "cmake_minimum_required(VERSION 3.10)\nproject(a CUDA)\n",
            f"cmake_minimum_required(VERSION 3.21)\n{DEFAULT}project(a CXX HIP)\n",
        ),
        (
            "cmake_minimum_required(VERSION 3.25...3.30)\nproject(a CUDA)\n",
            f"cmake_minimum_required(VERSION 3.25...3.30)\n{DEFAULT}project(a CXX HIP)\n",
        ),
        (
            "cmake_minimum_required(VERSION 3.10)\nproject(a CXX)\n",
            "cmake_minimum_required(VERSION 3.10)\nproject(a CXX)\n",
        ),
    ],
)
def test_the_language(before: str, after: str) -> None:
    assert cmake(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("set(CMAKE_CUDA_ARCHITECTURES 70 80)\n", DEFAULT),
        (
            'set(CMAKE_CUDA_ARCHITECTURES "70;80" CACHE STRING "x" FORCE)\n',
            'set(CMAKE_HIP_ARCHITECTURES "gfx942;gfx1100" CACHE STRING "x" FORCE)\n',
        ),
        (
            "if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)\n  set(CMAKE_CUDA_ARCHITECTURES native)\nendif()\nproject(a CUDA)\n",
            f"if(NOT DEFINED CMAKE_HIP_ARCHITECTURES)\n  {DEFAULT}endif()\nproject(a CXX HIP)\n",
        ),
        (
            "set_target_properties(a PROPERTIES CUDA_ARCHITECTURES 80 CUDA_STANDARD 17)\n",
            'set_target_properties(a PROPERTIES HIP_ARCHITECTURES "${CMAKE_HIP_ARCHITECTURES}" HIP_STANDARD 17)\n',
        ),
        (
            "set_property(TARGET a PROPERTY CUDA_ARCHITECTURES 80 90)\n",
            'set_property(TARGET a PROPERTY HIP_ARCHITECTURES "${CMAKE_HIP_ARCHITECTURES}")\n',
        ),
    ],
)
def test_architectures_can_be_set_from_outside(before: str, after: str) -> None:
    assert cmake(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("find_package(CUDAToolkit REQUIRED)\n", HIP),
        ("find_package(CUDAToolkit 12 QUIET)\n", HIP.replace("REQUIRED", "QUIET")),
        (
            "  find_package(CUDAToolkit REQUIRED)\n  target_link_libraries(a PRIVATE CUDA::curand CUDA::cudart)\n",
            "  " + HIP.replace("\n", "\n  ") + "find_package(hiprand CONFIG REQUIRED)\n"
            "  target_link_libraries(a PRIVATE hip::hiprand hip::host)\n",
        ),
        ("find_package(CUDAToolkitExtra)\n", "find_package(CUDAToolkitExtra)\n"),
    ],
)
def test_packages(before: str, after: str) -> None:
    assert cmake(before, top="project(x CUDA)", name="sub/CMakeLists.txt") == after


def test_packages_are_those_that_folders_below_use() -> None:
    made = cmake(
        "project(a CUDA)\nfind_package(CUDAToolkit)\n", below="target_link_libraries(k CUDA::cufft cusparse)\n"
    )
    assert "find_package(hipfft CONFIG)" in made
    assert "find_package(hipsparse CONFIG)" in made
    assert "hiprand" not in made


def test_a_bare_library_is_found_where_it_is_first_named() -> None:
    assert cmake("target_link_libraries(a cublas m)\ntarget_link_libraries(b cublas)\n") == (
        f"{PREFIX}find_package(hipblas CONFIG REQUIRED)\ntarget_link_libraries(a roc::hipblas m)\n"
        "target_link_libraries(b roc::hipblas)\n"
    )


def test_old_find_cuda() -> None:
    before = (
        "project(old)\nfind_package(CUDA REQUIRED)\nset(CUDA_NVCC_FLAGS ${CUDA_NVCC_FLAGS};-O3;-arch=sm_70)\n"
        'list(APPEND CUDA_NVCC_FLAGS "-use_fast_math" -Xcompiler -fPIC)\n'
        "cuda_add_executable(app main.cu OPTIONS -lineinfo)\ntarget_link_libraries(app ${CUDA_CUBLAS_LIBRARIES} ${CUDA_LIBRARIES})\n"
    )
    assert cmake(before) == (
        f"project(old)\n{DEFAULT}enable_language(HIP)\n{HIP}find_package(hipblas CONFIG REQUIRED)\n"
        f'set(CMAKE_HIP_FLAGS "${{CMAKE_HIP_FLAGS}} -O3")\n'
        f'string(APPEND CMAKE_HIP_FLAGS " {FAST.format(" ")} -fPIC")\n'
        "set_source_files_properties(main.cu PROPERTIES LANGUAGE HIP)\n"
        "add_executable(app main.cu)\ntarget_link_libraries(app hip::host)\n"
        "target_compile_options(app PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-gline-tables-only>)\n"
        "target_link_libraries(app roc::hipblas hip::host)\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "add_library(k a.cu b.cpp)\n",
            "set_source_files_properties(a.cu PROPERTIES LANGUAGE HIP)\nadd_library(k a.cu b.cpp)\n",
        ),
        (
            "project_add(NAME k SOURCES a.cu)\n",
            "set_source_files_properties(a.cu PROPERTIES LANGUAGE HIP)\nproject_add(NAME k SOURCES a.cu)\n",
        ),
        (
            "file(GLOB SRC *.cu)\nadd_library(k ${SRC})\n",
            (
                'file(GLOB SRC *.cu)\nset(hip_sources ${SRC})\nlist(FILTER hip_sources INCLUDE REGEX "\\\\.cu$")\n'
                "set_source_files_properties(${hip_sources} PROPERTIES LANGUAGE HIP)\nadd_library(k ${SRC})\n"
            ),
        ),
        ("set(SRC a.cpp b.cpp)\nadd_library(k ${SRC})\n", "set(SRC a.cpp b.cpp)\nadd_library(k ${SRC})\n"),
        (
            "set_source_files_properties(a.cpp PROPERTIES LANGUAGE CUDA)\n",
            "set_source_files_properties(a.cpp PROPERTIES LANGUAGE HIP)\n",
        ),
        ("message(STATUS a.cu)\n", "message(STATUS a.cu)\n"),
    ],
)
def test_sources_are_marked_as_hip(before: str, after: str) -> None:
    assert cmake(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -lineinfo")\n',
            'set(CMAKE_HIP_FLAGS "${CMAKE_HIP_FLAGS} -gline-tables-only")\n',
        ),
        (
            'string(APPEND CMAKE_CUDA_FLAGS_RELEASE " --use_fast_math")\n',
            f'string(APPEND CMAKE_HIP_FLAGS_RELEASE " {FAST.format(" ")}")\n',
        ),
        (
            "target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra>)\n",
            "target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-Wall;-Wextra>)\n",
        ),
        (
            'target_compile_options(a PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler -Wall,-Wextra>")\n',
            'target_compile_options(a PRIVATE "$<$<COMPILE_LANGUAGE:HIP>:SHELL:-Wall -Wextra>")\n',
        ),
        (
            "add_compile_options($<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-use_fast_math>)\n",
            f"add_compile_options($<$<COMPILE_LANG_AND_ID:HIP,Clang>:{FAST.format(';')}>)\n",
        ),
        (
            "add_compile_options($<$<COMPILE_LANGUAGE:CXX,CUDA>:-O3>)\n",
            "add_compile_options($<$<COMPILE_LANGUAGE:CXX,HIP>:-O3>)\n",
        ),
        (
            "target_compile_features(a PUBLIC cxx_std_17 cuda_std_17)\n",
            "target_compile_features(a PUBLIC cxx_std_17 hip_std_17)\n",
        ),
        ("set(CMAKE_CUDA_STANDARD 17)\nset(CMAKE_CUDA_RUNTIME_LIBRARY Static)\n", "set(CMAKE_HIP_STANDARD 17)\n"),
        (
            "set_target_properties(a PROPERTIES\n  CUDA_SEPARABLE_COMPILATION ON\n  FOLDER x)\n",
            (
                "set_target_properties(a PROPERTIES\n  FOLDER x)\n"
                "target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)\n"
                "target_link_options(a PUBLIC $<$<LINK_LANGUAGE:HIP>:-fgpu-rdc>)\n"
            ),
        ),
        ("set_target_properties(a PROPERTIES CUDA_SEPARABLE_COMPILATION OFF)\n", "\n"),
        ("include_directories(${CUDAToolkit_INCLUDE_DIRS})\n", "include_directories(${hip_INCLUDE_DIRS})\n"),
        (
            "target_link_libraries(a PUBLIC CUDA::cudart CUDA::cudadevrt b)\n",
            "target_link_libraries(a PUBLIC hip::host b)\n",
        ),
        ("list(GET CUDAToolkit_INCLUDE_DIRS 0 FIRST)\n", "list(GET hip_INCLUDE_DIRS 0 FIRST)\n"),
        ("include_directories(${CUDA_INCLUDE_DIR})\n", "include_directories(${CUDA_INCLUDE_DIR})\n"),
        ("if(TARGET CUDA::cublas)\nendif()\n", "if(TARGET roc::hipblas)\nendif()\n"),
    ],
)
def test_options_properties_and_targets(before: str, after: str) -> None:
    assert cmake(before, top="find_package(CUDAToolkit)", name="sub/CMakeLists.txt") == after


@pytest.mark.parametrize(
    "text",
    [
        "if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 11)\nendif()\n",
        'if(CMAKE_CUDA_COMPILER STREQUAL "nvcc")\nendif()\n',
        "target_link_libraries(a CUDA::cupti CUDA::nppc)\n",
        "add_custom_command(OUTPUT k.ptx COMMAND ${CMAKE_CUDA_COMPILER} -ptx k.cu)\n",
        "list(APPEND CMAKE_CUDA_ARCHITECTURES 90)\n",
        "set(CMAKE_CUDA_HOST_COMPILER g++)\n",
        "# project(a CUDA)\nproject(a CXX)\n",
        "set(A [==[CUDA::cublas ${CUDA_INCLUDE_DIRS} nvcc -arch=sm_80]==])\n",
        "set(CUDA_FLAG_TEXT [[--use_fast_math\n-lcudart]])\n",
        'option(USE_CUDA "CUDA" ON)\n',
        "project(a CUDA\n",
    ],
)
def test_what_is_not_understood_is_left_alone(text: str) -> None:
    assert cmake(text) == text


@pytest.mark.parametrize("text", ["add_library(k a.cu)\n", "file(GLOB S *.cu)\nadd_library(k ${S})\nproject(a CUDA)\n"])
def test_a_converted_file_is_converted_already(text: str) -> None:
    assert cmake(cmake(text)) == cmake(text)


def test_places_and_line_endings() -> None:
    text = "# one\r\nproject(a\r\n  LANGUAGES CUDA)\r\nset(CMAKE_CUDA_STANDARD 17)\r\n"
    done = convert_cmake("CMakeLists.txt", text, TABLES, TARGETS, tree=CMakeTree({"CMakeLists.txt": text}, [], TABLES))
    assert done is not None
    assert done.text.count("\n") == done.text.count("\r\n") == 5
    assert [(fix.rule, fix.line) for fix in done.applied] == [("AMF1512", 2), ("AMF1510", 3), ("AMF1510", 4)]
    assert [done.lines.original(line) for line in range(1, 7)] == [1, 2, 2, 3, 4, 5]
