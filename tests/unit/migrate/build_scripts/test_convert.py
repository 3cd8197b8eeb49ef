"""A tree's build scripts together: what is read, what one says to another, what is left to a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amdflow.migrate.build_scripts.convert import BuildScripts, convert_scripts
from amdflow.migrate.build_scripts.tables import BuildTables, Library
from amdflow.migrate.rules.build_files import kind_of
from amdflow.migrate.scan import scan
from tests.unit.migrate.build_scripts.scripts import TABLES, TARGETS, cmake, make, setup


def convert(folder: Path, files: dict[str, str], tables: BuildTables = TABLES) -> BuildScripts:
    for name, text in ({"kernel.cu": ""} | files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return convert_scripts(scan(folder), tables, TARGETS)


def test_each_kind_is_converted_and_others_are_kept(tmp_path: Path) -> None:
    scripts = convert(
        tmp_path,
        {
            "CMakeLists.txt": "project(a CUDA)\n",
            "Makefile": "CC = nvcc\n",
            "setup.py": 'CUDAExtension("a", [], libraries=["cublas"])\n',
            "plain/Makefile": "CC = gcc\n",
            "meson.build": "project('a', 'cuda')\n",
            "compile_commands.json": "[]",
        },
    )
    assert set(scripts.converted) == {"CMakeLists.txt", "Makefile", "setup.py"}
    assert set(scripts.originals) == {*scripts.converted, "plain/Makefile", "meson.build"}
    assert scripts.current("plain/Makefile").text == "CC = gcc\n"


def test_modules_and_folders_know_of_each_other(tmp_path: Path) -> None:
    scripts = convert(
        tmp_path,
        {
            "CMakeLists.txt": "project(a CXX)\ninclude(cmake/cuda.cmake)\nadd_subdirectory(k)\n",
            "cmake/cuda.cmake": "enable_language(CUDA)\nfind_package(CUDAToolkit REQUIRED)\n",
            "k/CMakeLists.txt": "add_library(k k.cu)\ntarget_link_libraries(k cusolver)\n",
            "k/k.cu": "",
        },
    )
    assert "find_package(hipsolver CONFIG REQUIRED)" in scripts.current("cmake/cuda.cmake").text
    assert scripts.current("k/CMakeLists.txt").text == (
        "set_source_files_properties(k.cu PROPERTIES LANGUAGE HIP)\nadd_library(k k.cu)\ntarget_link_libraries(k roc::hipsolver)\n"
    )


def test_kept_regions_stay(tmp_path: Path) -> None:
    text = "CC = nvcc\n# amdflow: keep\nOLD = nvcc -arch=sm_35\n# amdflow: end\nF = nvcc -lineinfo\n"
    done = convert(tmp_path, {"Makefile": text}).current("Makefile")
    assert done.text == text.replace("CC = nvcc", "CC = hipcc").replace(
        "F = nvcc -lineinfo", "F = hipcc -gline-tables-only"
    )


def test_tables_are_the_users_to_extend(tmp_path: Path) -> None:
    tables = BuildTables(
        {"pool": Library("pool_hip", "pool::hip", "pool_hip")}, {"ours": "-fours"}, {"their": "--t={value}"}
    )
    scripts = convert(tmp_path, {"Makefile": "CC = nvcc\nF = -lpool --ours -their 4\n"}, tables)
    assert scripts.current("Makefile").text == "CC = hipcc\nF = -lpool_hip -fours --t=4\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/CMakeLists.txt", "cmake"),
        ("x.cmake", "cmake"),
        ("Makefile.gpu", "make"),
        ("setup.py", "setup.py"),
        ("a/BUILD", "other"),
        ("compile_commands.json", ""),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert kind_of(name) == kind


PIECES = st.sampled_from(
    ["nvcc", " -arch=sm_70", "\\\n", "\n", "\t", "$(CC)", "-Xcompiler ", '"', "'", "=", "CC ", "#", "-lcublas", "(", ")", "project(a CUDA)",
     "set(CUDA_NVCC_FLAGS ", "$<$<COMPILE_LANGUAGE:CUDA>:", ">", ";", "${X}", "CUDA::cudart", "cuda_add_library(", "PROPERTIES ", "[", "]", "é",
     "CUDAExtension(", "-gencode", ",", "\r\n", "CUDA_SEPARABLE_COMPILATION ON", "set_target_properties(", "find_package(CUDA", "a.cu "]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_text_breaks_a_converter_and_lines_without_cuda_stay(text: str) -> None:
    for converter in (make, cmake, setup):
        untouched = "# a comment of nobody's\n"
        assert converter(untouched + text).startswith(untouched)
