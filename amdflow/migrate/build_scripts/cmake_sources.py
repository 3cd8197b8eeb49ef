"""CMake takes .cu files for CUDA by their ending; these commands say that they are HIP."""

from __future__ import annotations

import re
from collections.abc import Sequence

from amdflow.migrate.build_scripts.cmake_tokens import Command

_TARGET_COMMANDS = frozenset(
    {"add_executable", "add_library", "target_sources", "cuda_add_executable", "cuda_add_library"}
)
_NO_SOURCES = frozenset(
    {
        "set", "unset", "list", "file", "string", "message", "if", "elseif", "while", "foreach", "install", "option",
        "configure_file", "set_source_files_properties", "set_property", "get_filename_component", "source_group",
        "add_custom_command", "add_custom_target", "execute_process", "math", "cmake_path", "add_test",
        "target_include_directories", "target_compile_options", "target_compile_definitions", "set_target_properties",
        "get_property", "get_source_file_property", "return", "function", "macro", "try_compile", "try_run",
    }
)  # fmt: skip
_SOURCE = re.compile(r"[^\s;$<>:]*(?:\$\{\w+\}[^\s;$<>:]*)*\.cu")
_LIST = "hip_sources"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def mark_sources(command: Command, commands: Sequence[Command], *, has_sources: bool) -> list[str]:
    """The lines to put before a command that is given .cu files, by name or in a variable; none otherwise."""
    if command.name in _NO_SOURCES or not has_sources:
        return []
    named = [value for value in command.values if _SOURCE.fullmatch(value)]
    variables = []
    if command.name in _TARGET_COMMANDS:
        variables = [
            value
            for value in command.values[1:]
            if (match := _VARIABLE.fullmatch(value)) and _may_hold_sources(match.group(1), commands)
        ]
    marked = _marked_already(commands)
    if marked.issuperset((*named, *variables)):
        return []
    if variables:
        return [
            f"set(hip_sources {' '.join([*named, *variables])})",
            'list(FILTER hip_sources INCLUDE REGEX "\\\\.cu$")',
            "set_source_files_properties(${hip_sources} PROPERTIES LANGUAGE HIP)",
        ]
    return [f"set_source_files_properties({' '.join(named)} PROPERTIES LANGUAGE HIP)"] if named else []


def _marked_already(commands: Sequence[Command]) -> set[str]:
    return {
        value
        for command in commands
        if (command.name == "set_source_files_properties" and "HIP" in command.values)
        or (command.name == "set" and command.first == _LIST)
        for value in command.values
    }


def _may_hold_sources(name: str, commands: Sequence[Command], depth: int = 4) -> bool:
    """Whether its definitions in this file name .cu files, or there are none here."""
    definitions = [
        command
        for command in commands
        if name in command.values[:2]
        and command.name in ("set", "list", "file", "aux_source_directory", "foreach")
        and "REMOVE_ITEM" not in command.values
    ]
    if not definitions or depth == 0:
        return True
    for command in definitions:
        for value in command.values:
            if ".cu" in value or value.endswith("*"):
                return True
            if any(
                _may_hold_sources(other, commands, depth - 1)
                for other in _VARIABLE.findall(value)
                if other != name and not other.endswith("_DIR")
            ):
                return True
    return False
