"""What the tests of build scripts share."""

from __future__ import annotations

from amdflow.content import shipped
from amdflow.migrate.build_scripts.cmake import convert_cmake
from amdflow.migrate.build_scripts.cmake_tokens import read_commands
from amdflow.migrate.build_scripts.cmake_tree import CMakeTree
from amdflow.migrate.build_scripts.make import convert_makefile
from amdflow.migrate.build_scripts.setup_py import convert_setup
from amdflow.migrate.rules.catalogue import load_catalogue

TARGETS = ("gfx942", "gfx1100")
TABLES = load_catalogue(shipped("migration").parent).build


def make(text: str) -> str:
    """A makefile, converted."""
    done = convert_makefile("Makefile", text, TABLES, TARGETS)
    return done.text if done else text


def cmake(text: str, name: str = "CMakeLists.txt", **others: str) -> str:
    """A CMake file, converted; ``others`` are CMakeLists.txt files in folders beside or below it, ``top`` the one above."""
    files = {name: text} | {
        "CMakeLists.txt" if folder == "top" else f"{folder}/CMakeLists.txt": other for folder, other in others.items()
    }
    tree = CMakeTree(files, ["kernel.cu", "src/kernel.cu", "below/kernel.cu"], TABLES)
    done = convert_cmake(name, text, TABLES, TARGETS, tree=tree)
    if done is None:
        return text
    assert read_commands(done.text) is not None, "the converted file cannot be read as CMake"
    return done.text


def setup(text: str) -> str:
    """A setup.py, converted."""
    done = convert_setup("setup.py", text, TABLES, TARGETS)
    return done.text if done else text
