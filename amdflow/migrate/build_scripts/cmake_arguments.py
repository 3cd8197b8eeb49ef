"""What is converted in any CMake command's arguments: targets, variables, generator expressions, compiler options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from amdflow.migrate.build_scripts.cmake_tokens import Command, evaluated
from amdflow.migrate.build_scripts.cmake_tree import LIBRARY_VARIABLE, TARGET, variable_library
from amdflow.migrate.build_scripts.edits import ScriptEdit, rewritten
from amdflow.migrate.build_scripts.options import LIBRARY, OPTION, Dialect, option_edits, removal
from amdflow.migrate.build_scripts.tables import BuildTables

LANGUAGE = "AMF1510"
_NO_OPTIONS = frozenset(
    {"message", "if", "elseif", "while", "execute_process", "add_custom_command", "add_custom_target"}
)
_VARIABLES = (
    (
        re.compile(r"\$\{CMAKE_CUDA_(FLAGS\w*|STANDARD\w*|EXTENSIONS|ARCHITECTURES|COMPILER|COMPILER_LAUNCHER)\}"),
        r"${CMAKE_HIP_\1}",
    ),
    (re.compile(r"\$\{CUDA_NVCC_FLAGS(\w*)\}"), r"${CMAKE_HIP_FLAGS\1}"),
    (re.compile(r"\$\{(?:CUDA_LIBRARIES|CUDA_CUDART_LIBRARY|CUDA_cudart_LIBRARY)\}"), "hip::host"),
    (
        re.compile(
            r"\$\{(?:CUDA_INCLUDE_DIRS|CUDA_TOOLKIT_INCLUDE|CUDAToolkit_INCLUDE_DIRS|CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES)\}"
            r"|\$\{CUDA_TOOLKIT_ROOT_DIR\}/include"
        ),
        "${hip_INCLUDE_DIRS}",
    ),
)
_LANGUAGES = re.compile(r"\$<(COMPILE_LANGUAGE|LINK_LANGUAGE|COMPILE_LANG_AND_ID|LINK_LANG_AND_ID):([\w,]*)>")
_COMPILER_ID = re.compile(r"\$<CUDA_COMPILER_ID:NVIDIA>")
_FEATURE = re.compile(r"(?<!\w)cuda_std_(\d\d)\b")


def argument_edits(text: str, command: Command, tables: BuildTables) -> Iterator[ScriptEdit]:
    """Edits inside the parentheses of one command."""
    arguments = evaluated(text, command)
    for edit in _edits(arguments, tables):
        if edit.text != "${CMAKE_HIP_COMPILER}" or command.name not in _NO_OPTIONS:
            yield edit.moved(command.opened)
    if command.name not in _NO_OPTIONS:
        certain = "CUDA" in arguments and re.search(r"LANGUAGE:\w*,?CUDA|CUDA\w*FLAGS", arguments) is not None
        spaced = option_edits(arguments, dialect(tables, " "), certain=certain)
        listed = option_edits(arguments, dialect(tables, ";"), certain=certain)
        for as_string, as_list in zip(spaced, listed, strict=True):
            edit = as_string if _is_string(arguments, command, as_string.start) else as_list
            yield edit.moved(command.opened)


def _is_string(arguments: str, command: Command, at: int) -> bool:
    """Whether an option at this offset of the arguments stands in a string of options, not in a list."""
    if command.name == "string" or "FLAGS" in arguments:
        return True
    return any(
        "SHELL:" in argument.text
        for argument in command.arguments
        if argument.start <= at + command.opened < argument.end
    )


def dialect(tables: BuildTables, separator: str) -> Dialect:
    """How CMake files write options: an architecture is none of them, CMAKE_HIP_ARCHITECTURES is."""
    return Dialect(tables, separator, lambda _value: "")


def flags_edit(
    command: Command,
    name: int,
    tables: BuildTables,
    start: str,
    *,
    lead: str = "",
    text: str = "",
    separator: str = " ",
) -> ScriptEdit:
    """A list of flags (the arguments behind number ``name``, or ``text``) as one string, in a command that starts with ``start``."""
    words = " ".join((text or " ".join(command.values[name + 1 :])).replace(";", " ").split())
    words = rewritten(words, [*_edits(words, tables), *option_edits(words, dialect(tables, " "), certain=True)])
    words = separator.join(words.split())
    new = f'{start}"{lead}{words}")' if start else words
    return ScriptEdit(command.start, command.end, new, OPTION, "nvcc's flags are CMAKE_HIP_FLAGS, a string")


def without(text: str, start: int, end: int) -> tuple[int, int]:
    """The span to delete for ``start`` to ``end``: the whole line where nothing else stands on it, else the blanks before it too."""
    line = text.rfind("\n", 0, start) + 1
    following = re.compile(r"[ \t]*\r?\n").match(text, end)
    if not text[line:start].strip() and following:
        return line, following.end()
    while start > line and text[start - 1] in " \t":
        start -= 1
    return start, end


def _edits(text: str, tables: BuildTables) -> Iterator[ScriptEdit]:
    for match in TARGET.finditer(text):
        library = tables.libraries.get(match.group(1))
        if library is not None:
            message = f"{match.group()} is {library.target}" if library.target else f"{match.group()} dropped"
            yield removal(text, ScriptEdit(*match.span(), library.target, LIBRARY, message))
    for match in LIBRARY_VARIABLE.finditer(text):
        library = variable_library(match.group(1), tables)
        if library is not None:
            yield removal(
                text, ScriptEdit(*match.span(), library.target, LIBRARY, f"{match.group()} is {library.target}")
            )
    for pattern, new in _VARIABLES:
        for match in pattern.finditer(text):
            yield ScriptEdit(*match.span(), match.expand(new), LANGUAGE, f"{match.group()} is {match.expand(new)}")
    for match in _LANGUAGES.finditer(text):
        languages = re.sub(r"\bCUDA\b", "HIP", match.group(2))
        if "AND_ID" in match.group(1):
            languages = re.sub(r"\bNVIDIA\b", "Clang", languages) if "HIP" in languages else languages
        if languages != match.group(2):
            new = f"$<{match.group(1)}:{languages}>"
            yield ScriptEdit(*match.span(), new, LANGUAGE, f"{match.group()} is {new}")
    for match in _COMPILER_ID.finditer(text):
        yield ScriptEdit(*match.span(), "$<HIP_COMPILER_ID:Clang>", LANGUAGE, f"{match.group()} asks for Clang")
    for match in _FEATURE.finditer(text):
        yield ScriptEdit(
            *match.span(), f"hip_std_{match.group(1)}", LANGUAGE, f"{match.group()} is hip_std_{match.group(1)}"
        )
