"""What the CMake files of a tree say together: the packages they need, where CUDA's toolkit is found, where .cu files are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from amdflow.migrate.build_scripts.cmake_tokens import Command, read_commands
from amdflow.migrate.build_scripts.tables import BuildTables, Library

LINK_COMMANDS = frozenset({"target_link_libraries", "link_libraries", "cuda_link_libraries"})
_LINK_KEYWORDS = frozenset({"LINK_LIBRARIES", "LIBRARIES", "LIBS", "LINK_LIBS"})
_TOOLKIT = frozenset({"CUDA", "CUDAToolkit"})
TARGET = re.compile(r"\bCUDA::(\w+)")
LIBRARY_VARIABLE = re.compile(r"\$\{(?:CUDA|CUDAToolkit)_(\w+?)_(?:LIBRARY|LIBRARIES)\}")
_RUNTIME = re.compile(
    r"\$\{(?:CUDA_LIBRARIES|CUDA_\w*INCLUDE\w*|CUDAToolkit_\w+|CUDA_TOOLKIT_ROOT_DIR|CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES)\}|\bcuda_add_"
)
_INCLUDES = re.compile(r"\$\{(?:CUDA_\w*INCLUDE\w*|CUDAToolkit_\w*INCLUDE\w*|CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES)\}")
_HELPERS = {"cuda_add_cublas_to_target": "cublas", "cuda_add_cufft_to_target": "cufft"}


@dataclass(frozen=True)
class _File:
    libraries: tuple[Library, ...]
    finds_toolkit: bool
    enables: bool
    includes: bool


_EVERYWHERE = "."
"""The tree's own folder: the scope of modules (``.cmake``), which any file may include."""


class CMakeTree:
    """Facts about the CMake files of a tree, by folder relative to its root."""

    def __init__(self, files: Mapping[str, str], sources: Iterable[str], tables: BuildTables) -> None:
        """From the CMake files' texts by name, and the names of all .cu files."""
        self._libraries: dict[str, dict[Library, None]] = {}
        self._includes: set[str] = set()
        self._finding: set[str] = set()
        self._enabling: set[str] = set()
        self._own: set[str] = set()
        self._sources = {folder for name in sources for folder in _folders(name)}
        self._runtime: Library | None = None
        for name, text in files.items():
            self._add(name, _facts(text, tables))

    def _add(self, name: str, facts: _File) -> None:
        for folder in _folders(name):
            self._libraries.setdefault(folder, {}).update(dict.fromkeys(facts.libraries))
            if facts.includes:
                self._includes.add(folder)
        self._runtime = next((library for library in facts.libraries if library.package == "hip"), self._runtime)
        if facts.finds_toolkit:
            self._finding.add(_scope(name))
        if facts.enables:
            self._enabling.add(_scope(name))
        if facts.finds_toolkit or facts.enables:
            self._own.add(name)

    def libraries_below(self, name: str) -> list[Library]:
        """What the files in this one's folder and below link, the HIP runtime first; for a module, what any file links."""
        runtime = [self._runtime] if self._runtime else []
        used = sorted(self._libraries.get(_scope(name), {}), key=lambda library: library.package)
        return list(dict.fromkeys([*runtime, *used]))

    def includes_below(self, name: str) -> bool:
        """Whether files there take CUDA's include folders from a variable."""
        return _scope(name) in self._includes

    def finds_toolkit(self, name: str) -> bool:
        """Whether a CMakeLists.txt at or above this file, or a module, finds CUDA's toolkit."""
        return not self._finding.isdisjoint(_folders(name))

    def enables_language(self, name: str) -> bool:
        """Whether one of those enables the language CUDA."""
        return not self._enabling.isdisjoint(_folders(name))

    def has_sources(self, name: str) -> bool:
        """Whether there are .cu files at or below this file's folder."""
        return _scope(name) in self._sources

    def concerns_cuda(self, name: str) -> bool:
        """Whether this file itself enables CUDA or finds its toolkit."""
        return name in self._own


def _folders(name: str) -> list[str]:
    """The folder of a file and those above it."""
    return [str(folder) for folder in PurePosixPath(name).parents]


def _scope(name: str) -> str:
    return _EVERYWHERE if name.endswith(".cmake") else str(PurePosixPath(name).parent)


def library_arguments(command: Command) -> list[int]:
    """Positions of the arguments that may be bare names of libraries."""
    values = command.values
    if command.name in LINK_COMMANDS:
        return list(range(0 if command.name == "link_libraries" else 1, len(values)))
    found, inside = [], False
    for position, value in enumerate(values):
        if re.fullmatch(r"[A-Z_]{3,}", value):
            inside = value in _LINK_KEYWORDS
        elif inside:
            found.append(position)
    return found


def variable_library(name: str, tables: BuildTables) -> Library | None:
    """For the ``cublas`` of ``${CUDA_cublas_LIBRARY}``, whatever its case."""
    lower = {key.lower(): library for key, library in tables.libraries.items()}
    return lower.get(name.lower())


def _facts(text: str, tables: BuildTables) -> _File:
    commands = read_commands(text) or []
    libraries: list[Library] = []
    finds = enables = includes = False
    for command in commands:
        written = text[command.start : command.end]
        names = TARGET.findall(written)
        names += [command.values[position].removeprefix("-l") for position in library_arguments(command)]
        libraries += [library for name in names if (library := tables.libraries.get(name))]
        libraries += [
            library for name in LIBRARY_VARIABLE.findall(written) if (library := variable_library(name, tables))
        ]
        if command.name in _HELPERS:
            libraries.append(tables.libraries.get(_HELPERS[command.name], Library()))
        if _RUNTIME.search(written):
            libraries.append(tables.libraries.get("cudart", Library()))
        includes = includes or bool(_INCLUDES.search(written))
        finds = finds or (command.name == "find_package" and command.first in _TOOLKIT)
        enables = enables or (command.name in ("project", "enable_language") and "CUDA" in command.values)
    if finds:
        libraries.append(tables.libraries.get("cudart", Library()))
    return _File(tuple(library for library in libraries if library.target), finds, enables, includes)
