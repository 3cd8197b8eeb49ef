"""Include paths, macros and the C++ standard that a project's own build files name.

A light reading, not an evaluation: what a build file spells out is taken, what it computes is not.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from amdflow.migrate.rules.build_files import kind_of
from amdflow.migrate.scan import Entry, Kind, Tree
from amdflow.migrate.text import decode

ItemT = TypeVar("ItemT")
DEFAULT_STANDARD = "c++17"
_VARIABLE = re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*[:?+]?=[ \t]*(.*)$", re.MULTILINE)
_USE = re.compile(r"\$[({](\w+)[)}]")
_MAKE_FLAG = re.compile(r"(?:^|(?<=[\s=\"']))(-isystem\s+|-I\s*|-D\s*|-std=|--std=|-include\s+)([^\s\\\"']+)")
_CMAKE_CALL = re.compile(
    r"\b(include_directories|target_include_directories|add_definitions|add_compile_definitions|target_compile_definitions|set)\s*\(([^()]*)\)",
    re.IGNORECASE,
)
_CMAKE_WORDS = frozenset({"PUBLIC", "PRIVATE", "INTERFACE", "SYSTEM", "BEFORE", "AFTER"})
_CMAKE_ROOTS = re.compile(
    r"\$\{(?:CMAKE_SOURCE_DIR|CMAKE_CURRENT_SOURCE_DIR|CMAKE_CURRENT_LIST_DIR|PROJECT_SOURCE_DIR|\w+_SOURCE_DIR)\}"
)
_GUESSED_FOLDERS = ("", "include", "inc", "src")
_MACRO = re.compile(r"[A-Za-z_]\w*(=[^\s$()]*)?")


@dataclass(frozen=True)
class Flags:
    """What a compiler needs to know of a project. Folders are absolute."""

    folders: tuple[Path, ...] = ()
    macros: tuple[str, ...] = ()
    forced: tuple[str, ...] = ()
    """Headers included from the command line."""
    standard: str = ""

    def merged(self, other: Flags) -> Flags:
        """Both, this one first."""
        return Flags(
            _unique((*self.folders, *other.folders)),
            _unique((*self.macros, *other.macros)),
            _unique((*self.forced, *other.forced)),
            self.standard or other.standard,
        )


class BuildFlags:
    """Flags for each file of a tree."""

    def __init__(self, tree: Tree) -> None:
        self._root = tree.root
        self._scopes: dict[Path, Flags] = {}
        self._exact: dict[Path, Flags] = {}
        self._known: dict[Path, Flags] = {}
        for entry in tree.entries:
            if entry.kind is Kind.BUILD and entry.size < 4_000_000:
                self._read(entry)

    def of(self, path: Path) -> Flags:
        """For one file: its compile command where there is one, else what the build files of its folder and those above say."""
        exact = self._exact.get(path)
        scope = self._of_folder(path.parent)
        return exact.merged(replace(scope, macros=(), forced=(), standard="")) if exact else scope

    def _of_folder(self, folder: Path) -> Flags:
        if folder not in self._known:
            own = self._scopes.get(folder, Flags()).merged(
                Flags(tuple(path for name in _GUESSED_FOLDERS if (path := folder / name).is_dir()))
            )
            above = (
                self._of_folder(folder.parent)
                if folder != self._root and folder.is_relative_to(self._root)
                else Flags()
            )
            self._known[folder] = own.merged(above)
        return self._known[folder]

    def _read(self, entry: Entry) -> None:
        folder, text = entry.path.parent, decode(entry.path.read_bytes())
        if entry.path.name == "compile_commands.json":
            self._exact.update(_from_commands(text))
            return
        if entry.path.name == "setup.py":
            found = _from_setup(text, folder)
        elif kind_of(entry.name) == "cmake":
            found = _from_cmake(text, folder)
        elif kind_of(entry.name) == "make":
            found = _from_make(text, folder)
        else:
            return
        self._scopes[folder] = self._scopes.get(folder, Flags()).merged(found)


def from_arguments(arguments: Iterable[str], folder: Path) -> Flags:
    """From a compiler's command line."""
    folders: list[Path] = []
    macros: list[str] = []
    forced: list[str] = []
    standard = ""
    words = list(arguments)
    index = 0
    while index < len(words):
        word = words[index]
        option = next((name for name in ("-isystem", "-include", "-I", "-D") if word.startswith(name)), "")
        value = word[len(option) :].strip() if option else ""
        if option and not value and index + 1 < len(words):
            index += 1
            value = words[index]
        if option in ("-I", "-isystem"):
            folders.append(_absolute(value, folder))
        elif option == "-D":
            macros.append(value)
        elif option == "-include":
            forced.append(value)
        elif word.startswith(("-std=", "--std=")):
            standard = _standard(word.partition("=")[2])
        index += 1
    return Flags(
        _existing(folders),
        _unique(macro for macro in macros if _MACRO.fullmatch(macro) or '"' in macro),
        _unique(forced),
        standard,
    )


def _from_commands(text: str) -> dict[Path, Flags]:
    found = {}
    try:
        for row in json.loads(text):
            folder = Path(row["directory"])
            arguments = row.get("arguments") or shlex.split(row["command"])
            found[_absolute(row["file"], folder)] = from_arguments(arguments, folder)
    except (ValueError, KeyError, TypeError):
        return {}
    return found


def _from_make(text: str, folder: Path) -> Flags:
    joined = text.replace("\\\n", " ")
    values = dict(_VARIABLE.findall(joined))
    expanded = _expand(joined, values)
    words = [
        part
        for option, value in _MAKE_FLAG.findall(expanded)
        if "$" not in value
        for part in _joined(option.strip(), value)
    ]
    return from_arguments(words, folder)


def _joined(option: str, value: str) -> list[str]:
    return [option, value] if option in ("-isystem", "-include") else [option + value]


def _expand(text: str, values: dict[str, str]) -> str:
    for _depth in range(3):
        text = _USE.sub(lambda match: values.get(match.group(1), match.group()), text)
    return text


def _from_cmake(text: str, folder: Path) -> Flags:
    text = re.sub(r"#[^\n]*", "", text)
    folders: list[Path] = []
    macros: list[str] = []
    standard = ""
    for command, arguments in _CMAKE_CALL.findall(text):
        words = [word.strip('"') for word in _CMAKE_ROOTS.sub(str(folder), arguments).split()]
        kind = command.lower()
        if kind == "set":
            if len(words) > 1 and words[0] in ("CMAKE_CXX_STANDARD", "CMAKE_CUDA_STANDARD") and words[1].isdigit():
                standard = f"c++{words[1]}"
            continue
        if kind.startswith("target_"):
            words = words[1:]
        values = [word for word in words if word not in _CMAKE_WORDS and "$" not in word]
        if "include" in kind:
            folders += [_absolute(value, folder) for value in values]
        else:
            macros += [
                value.removeprefix("-D") for value in values if not value.startswith("-") or value.startswith("-D")
            ]
    return Flags(_existing(folders), _unique(macro for macro in macros if _MACRO.fullmatch(macro)), (), standard)


def _from_setup(text: str, folder: Path) -> Flags:
    try:
        program = ast.parse(text)
    except (SyntaxError, ValueError):
        return Flags()
    folders: list[Path] = []
    words: list[str] = []
    for node in ast.walk(program):
        if isinstance(node, ast.keyword) and node.arg == "include_dirs":
            folders += [_absolute(text, folder) for text in _strings(node.value)]
        elif isinstance(node, ast.keyword) and node.arg == "define_macros":
            words += [f"-D{name}" for name in _first_strings(node.value)]
        elif isinstance(node, ast.keyword) and node.arg == "extra_compile_args":
            words += [text for text in _strings(node.value) if text.startswith(("-I", "-D", "-std="))]
    return Flags(_existing(folders)).merged(from_arguments(words, folder))


def _first_strings(node: ast.AST) -> list[str]:
    pairs = [part for part in ast.walk(node) if isinstance(part, ast.Tuple) and part.elts]
    return [
        first.value
        for pair in pairs
        if isinstance(first := pair.elts[0], ast.Constant) and isinstance(first.value, str)
    ]


def _strings(node: ast.AST) -> list[str]:
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _standard(name: str) -> str:
    return name if re.fullmatch(r"(?:c|gnu)\+\+\w+", name) else ""


def _absolute(value: str, folder: Path) -> Path:
    return Path(os.path.normpath(folder / value))


def _existing(folders: Iterable[Path]) -> tuple[Path, ...]:
    return _unique(path for path in folders if path.is_dir())


def _unique(values: Iterable[ItemT]) -> tuple[ItemT, ...]:
    return tuple(dict.fromkeys(values))
