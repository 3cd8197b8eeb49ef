"""What build files say about include paths, macros and the standard."""

from __future__ import annotations

import json
from pathlib import Path

from amdflow.migrate.build_flags import BuildFlags, Flags
from amdflow.migrate.scan import scan


def flags(root: Path, name: str) -> Flags:
    return BuildFlags(scan(root)).of(root / name)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_makefile_with_variables(tmp_path: Path) -> None:
    make = "INC = -Iutil -I $(ROOT)/third\nROOT=.\nCFLAGS += -std=c++14 -DNDEBUG -DN=4 \\\n  $(INC) -D$(UNKNOWN)\n"
    tree(tmp_path, {"Makefile": make, "a.cu": "", "util/u.h": "", "third/t.h": ""})
    found = flags(tmp_path, "a.cu")
    assert {tmp_path / "util", tmp_path / "third"} <= set(found.folders)
    assert set(found.macros) == {"NDEBUG", "N=4"}
    assert found.standard == "c++14"


def test_cmake(tmp_path: Path) -> None:
    cmake = (
        "set(CMAKE_CUDA_STANDARD 20)\n# include_directories(no)\ninclude_directories(${CMAKE_SOURCE_DIR}/inc)\n"
        "target_include_directories(app PRIVATE lib ${X}/y)\ntarget_compile_definitions(app PUBLIC FAST=1)\n"
    )
    tree(tmp_path, {"CMakeLists.txt": cmake, "a.cu": "", "inc/i.h": "", "lib/l.h": "", "no/n.h": ""})
    found = flags(tmp_path, "a.cu")
    assert {tmp_path / "inc", tmp_path / "lib"} <= set(found.folders)
    assert tmp_path / "no" not in found.folders
    assert (found.macros, found.standard) == (("FAST=1",), "c++20")


def test_setup_py(tmp_path: Path) -> None:
    setup = (
        "setup(ext=[CUDAExtension('x', ['a.cu'], include_dirs=['inc'], define_macros=[('FAST', None)], "
        "extra_compile_args={'nvcc': ['-std=c++20', '-DN=1']})])"
    )
    tree(tmp_path, {"setup.py": setup, "a.cu": "", "inc/i.h": ""})
    found = flags(tmp_path, "a.cu")
    assert tmp_path / "inc" in found.folders
    assert (set(found.macros), found.standard) == ({"FAST", "N=1"}, "c++20")


def test_the_compile_command_of_a_file_wins(tmp_path: Path) -> None:
    rows = [
        {
            "directory": str(tmp_path),
            "file": "a.cu",
            "command": "nvcc -Iinc -isystem sys -DX='\"a b\"' -std=c++20 -include pre.h -c a.cu",
        }
    ]
    tree(
        tmp_path,
        {
            "compile_commands.json": json.dumps(rows),
            "Makefile": "CFLAGS=-DOTHER -std=c++14",
            "a.cu": "",
            "b.cu": "",
            "inc/i.h": "",
            "sys/s.h": "",
        },
    )
    exact, other = flags(tmp_path, "a.cu"), flags(tmp_path, "b.cu")
    assert exact.folders[:2] == (tmp_path / "inc", tmp_path / "sys")
    assert (exact.macros, exact.forced, exact.standard) == (('X="a b"',), ("pre.h",), "c++20")
    assert (other.macros, other.standard) == (("OTHER",), "c++14")


def test_build_files_speak_for_the_folders_below_them(tmp_path: Path) -> None:
    tree(tmp_path, {"Makefile": "F=-DTOP", "sub/Makefile": "F=-DSUB", "sub/a.cu": "", "b.cu": "", "include/i.h": ""})
    assert flags(tmp_path, "sub/a.cu").macros == ("SUB", "TOP")
    assert flags(tmp_path, "b.cu").macros == ("TOP",)
    assert tmp_path / "include" in flags(tmp_path, "sub/a.cu").folders


def test_broken_build_files_say_nothing(tmp_path: Path) -> None:
    tree(tmp_path, {"compile_commands.json": "{", "setup.py": "def (", "CMakeLists.txt": "set(", "a.cu": ""})
    assert flags(tmp_path, "a.cu") == Flags((tmp_path,))
