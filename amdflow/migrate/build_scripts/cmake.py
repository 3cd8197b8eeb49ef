"""CMake files: the HIP language for CUDA, ROCm's packages and targets, HIP's properties and variables.

Only what is understood is changed; every edit replaces whole arguments or commands, so the file stays as valid as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from amdflow.migrate.build_scripts.cmake_arguments import LANGUAGE, argument_edits, flags_edit, without
from amdflow.migrate.build_scripts.cmake_sources import mark_sources
from amdflow.migrate.build_scripts.cmake_tokens import Argument, Command, properties, read_commands
from amdflow.migrate.build_scripts.cmake_tree import CMakeTree, library_arguments
from amdflow.migrate.build_scripts.edits import Converted, ScriptEdit, convert_with
from amdflow.migrate.build_scripts.options import ARCHITECTURE, LIBRARY, OPTION
from amdflow.migrate.build_scripts.tables import BuildTables, Library
from amdflow.migrate.text import line_ending

PACKAGE = "AMF1517"
_NEEDED_CMAKE = (3, 21)
_CACHE_ENTRY = 'CACHE STRING "GPU architectures to build for"'
_PREFIXES = "list(APPEND CMAKE_PREFIX_PATH ${CMAKE_HIP_COMPILER_ROCM_ROOT} $ENV{ROCM_PATH} /opt/rocm)"
_COMPARISONS = re.compile(
    r"(?:VERSION_)?(?:LESS|GREATER|EQUAL|LESS_EQUAL|GREATER_EQUAL)|STR\w+|MATCHES|IN_LIST|PATH_EQUAL"
)
_CONDITIONS = {
    "CUDA_FOUND": "hip_FOUND",
    "CUDAToolkit_FOUND": "hip_FOUND",
    "CMAKE_CUDA_COMPILER": "CMAKE_HIP_COMPILER",
    "CMAKE_CUDA_ARCHITECTURES": "CMAKE_HIP_ARCHITECTURES",
    "CMAKE_CUDA_STANDARD": "CMAKE_HIP_STANDARD",
    "CMAKE_CUDA_FLAGS": "CMAKE_HIP_FLAGS",
}
_VARIABLES = re.compile(
    r"CMAKE_CUDA_(STANDARD|STANDARD_REQUIRED|EXTENSIONS|FLAGS|FLAGS_\w+|COMPILER_LAUNCHER|VISIBILITY_PRESET)"
)
_PROPERTIES = re.compile(r"CUDA_(STANDARD|STANDARD_REQUIRED|EXTENSIONS|VISIBILITY_PRESET)")
_NAMING = frozenset({"set", "list", "string", "unset", "option", "mark_as_advanced"})
_NOT_NEEDED = frozenset({"CUDA_RESOLVE_DEVICE_SYMBOLS", "CUDA_RUNTIME_LIBRARY"})
_ON = re.compile(r"ON|TRUE|YES|1", re.IGNORECASE)
_OFF = re.compile(r"OFF|FALSE|NO|0", re.IGNORECASE)


def convert_cmake(
    name: str, text: str, tables: BuildTables, targets: Sequence[str], *, tree: CMakeTree
) -> Converted | None:
    """The file for HIP; None when nothing in it is to be changed, or when it cannot be read as CMake."""
    commands = read_commands(text)
    if commands is None:
        return None
    edits = list(_CMakeFile(name, text, commands, tables, targets, tree).edits())
    return convert_with(text, edits) if edits else None


class _CMakeFile:
    """One file and its commands."""

    def __init__(
        self,
        name: str,
        text: str,
        commands: Sequence[Command],
        tables: BuildTables,
        targets: Sequence[str],
        tree: CMakeTree,
    ) -> None:
        self.name, self.text, self.commands, self.tables, self.tree = name, text, commands, tables, tree
        self.targets = " ".join(targets)
        self.ending = line_ending(text)
        self.has_default = False
        self.found: set[str] = set()
        self.handlers: dict[str, Callable[[Command], Iterator[ScriptEdit]]] = {
            "cmake_minimum_required": self._minimum,
            "project": self._language,
            "enable_language": self._language,
            "check_language": self._language,
            "find_package": self._find_package,
            "set": self._set,
            "list": self._list,
            "if": self._condition,
            "elseif": self._condition,
            "while": self._condition,
            "set_target_properties": self._set_properties,
            "set_source_files_properties": self._set_properties,
            "set_property": self._set_property,
            "cuda_add_executable": self._find_cuda_target,
            "cuda_add_library": self._find_cuda_target,
            "cuda_include_directories": self._find_cuda_other,
            "cuda_add_cublas_to_target": self._find_cuda_other,
            "cuda_add_cufft_to_target": self._find_cuda_other,
        }

    def edits(self) -> Iterator[ScriptEdit]:
        """All of them; of two at one place the more particular one comes first."""
        for command in self.commands:
            handler = self.handlers.get(command.name)
            if handler:
                yield from handler(command)
            yield from self._renames(command)
            yield from self._libraries(command)
            marked = mark_sources(command, self.commands, has_sources=self.tree.has_sources(self.name))
            if marked:
                yield self._before(command, marked, LANGUAGE, ".cu sources are compiled as HIP")
            yield from argument_edits(self.text, command, self.tables)

    def _indent(self, command: Command) -> str:
        line = self.text.rfind("\n", 0, command.start) + 1
        before = self.text[line : command.start]
        return before if not before.strip(" \t\ufeff") else ""

    def _before(self, command: Command, lines: Sequence[str], rule: str, message: str) -> ScriptEdit:
        joined = "".join(f"{line}{self.ending}{self._indent(command)}" for line in lines)
        return ScriptEdit(command.start, command.start, joined, rule, message)

    def _after(self, command: Command, lines: Sequence[str], rule: str, message: str) -> ScriptEdit:
        joined = "".join(f"{self.ending}{self._indent(command)}{line}" for line in lines)
        return ScriptEdit(command.end, command.end, joined, rule, message)

    def _instead(self, command: Command, lines: Sequence[str], rule: str, message: str) -> ScriptEdit:
        return ScriptEdit(
            command.start, command.end, f"{self.ending}{self._indent(command)}".join(lines), rule, message
        )

    def _minimum(self, command: Command) -> Iterator[ScriptEdit]:
        if not self.tree.concerns_cuda(self.name) or len(command.arguments) < 2:
            return
        version = command.arguments[1]
        found = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)*(?:\.\.\.[\d.]+)?", version.value)
        if found and (int(found.group(1)), int(found.group(2))) < _NEEDED_CMAKE:
            yield ScriptEdit(
                version.start,
                version.end,
                "3.21",
                LANGUAGE,
                f"CMake 3.21, not {version.value}: the first that knows HIP",
            )

    def _language(self, command: Command) -> Iterator[ScriptEdit]:
        alone = command.name == "project" and not {"C", "CXX"} & set(command.values)
        new = "CXX HIP" if alone else "HIP"  # ROCm's packages need a host language
        for argument in command.arguments:
            if argument.value == "CUDA" and (command.name != "project" or argument is not command.arguments[0]):
                if command.name != "check_language":
                    yield from self._default_architectures(command)
                yield ScriptEdit(argument.start, argument.end, new, LANGUAGE, f"{command.name}: {new}, not CUDA")

    def _default_architectures(self, command: Command) -> Iterator[ScriptEdit]:
        """Without them CMake asks the machine's GPU, and fails where there is none."""
        earlier = any(
            other.name == "set" and other.first == "CMAKE_CUDA_ARCHITECTURES" and other.start < command.start
            for other in self.commands
        )
        if not earlier and not self.has_default:
            self.has_default = True
            line = f"set(CMAKE_HIP_ARCHITECTURES {self.targets} {_CACHE_ENTRY})"
            yield self._before(command, [line], ARCHITECTURE, "CMAKE_HIP_ARCHITECTURES has a default")

    def _find_package(self, command: Command) -> Iterator[ScriptEdit]:
        if command.first not in ("CUDA", "CUDAToolkit"):
            return
        lines = []
        if not self.tree.enables_language(self.name):
            yield from self._default_architectures(command)
            lines.append("enable_language(HIP)")
        required = "REQUIRED" if "REQUIRED" in command.values else "QUIET" if "QUIET" in command.values else ""
        lines += self._finders(self.tree.libraries_below(self.name), required)
        if self.tree.includes_below(self.name):
            lines.append("add_compile_definitions(__HIP_PLATFORM_AMD__=1)")
        yield self._instead(command, lines, PACKAGE, f"find_package({command.first}): ROCm's packages")

    def _finders(self, libraries: Sequence[Library], required: str) -> list[str]:
        lines = [_PREFIXES]
        mode = f" {required}" if required else ""
        for library in libraries:
            variable = re.fullmatch(r"\$\{(\w+)\}", library.target)
            if variable and library.target not in self.found:
                lines.append(
                    f"find_library({variable.group(1)} {library.link}{mode if required == 'REQUIRED' else ''})"
                )
            elif library.package and library.package not in self.found:
                lines.append(f"find_package({library.package} CONFIG{mode})")
            self.found |= {library.package, library.target}
        return lines

    def _libraries(self, command: Command) -> Iterator[ScriptEdit]:
        """Bare names such as ``cublas`` and ``-lcublas`` where libraries are named."""
        libraries = []
        for position in library_arguments(command):
            argument = command.arguments[position]
            library = self.tables.libraries.get(argument.value.removeprefix("-l"))
            if library is not None:
                libraries.append(library)
                new = library.target
                message = f"{argument.value} is {new}" if new else f"{argument.value} dropped"
                yield ScriptEdit(argument.start, argument.end, new, LIBRARY, message)
        missing = [library for library in libraries if library.target and library.package not in self.found]
        if missing and not self.tree.finds_toolkit(self.name):
            message = "ROCm's packages are found where they are used first"
            yield self._before(command, self._finders(missing, "REQUIRED"), PACKAGE, message)

    def _set(self, command: Command) -> Iterator[ScriptEdit]:
        if not command.arguments:
            return
        name, values = command.arguments[0], command.values[1:]
        if name.value == "CMAKE_CUDA_ARCHITECTURES":
            yield from self._set_architectures(command)
        elif re.fullmatch(r"CUDA_NVCC_FLAGS(?:_\w+)?", name.value) and values and "CACHE" not in values:
            yield flags_edit(command, 0, self.tables, f"set({_flags_variable(name.value)} ")
        elif name.value in ("CMAKE_CUDA_SEPARABLE_COMPILATION", "CUDA_SEPARABLE_COMPILATION") and len(values) == 1:
            if _ON.fullmatch(values[0]):
                lines = [
                    "add_compile_options($<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)",
                    "add_link_options($<$<LINK_LANGUAGE:HIP>:-fgpu-rdc>)",
                ]
                yield self._instead(command, lines, OPTION, f"{name.value} is -fgpu-rdc")
        elif name.value.removeprefix("CMAKE_") in _NOT_NEEDED:
            yield self._deleted(command.start, command.end, f"{name.value} dropped")

    def _deleted(self, start: int, end: int, message: str) -> ScriptEdit:
        return ScriptEdit(*without(self.text, start, end), "", OPTION, message)

    def _set_architectures(self, command: Command) -> Iterator[ScriptEdit]:
        name, values = command.arguments[0], command.arguments[1:]
        yield self._rename(name, "CMAKE_HIP_ARCHITECTURES")
        last = next((at for at, value in enumerate(values) if value.value in ("CACHE", "PARENT_SCOPE")), len(values))
        if last:
            cached = "" if last < len(values) else f" {_CACHE_ENTRY}"
            self.has_default = True
            message = f"GPU architectures {self.targets}"
            yield ScriptEdit(
                values[0].start, values[last - 1].end, _list_of(self.targets, values[0], cached), ARCHITECTURE, message
            )

    def _list(self, command: Command) -> Iterator[ScriptEdit]:
        values = command.values
        if len(values) > 2 and values[0] == "APPEND" and re.fullmatch(r"CUDA_NVCC_FLAGS(?:_\w+)?", values[1]):
            yield flags_edit(command, 1, self.tables, f"string(APPEND {_flags_variable(values[1])} ", lead=" ")

    def _renames(self, command: Command) -> Iterator[ScriptEdit]:
        """CUDA's own variables where a command takes the name of one."""
        for argument in command.arguments if command.name in _NAMING else ():
            renamed = _VARIABLES.fullmatch(argument.text)
            if argument.text in ("CUDAToolkit_INCLUDE_DIRS", "CUDA_INCLUDE_DIRS"):
                yield self._rename(argument, "hip_INCLUDE_DIRS")
            elif renamed:
                yield self._rename(argument, f"CMAKE_HIP_{renamed.group(1)}")

    def _rename(self, argument: Argument, new: str) -> ScriptEdit:
        return ScriptEdit(argument.start, argument.end, new, LANGUAGE, f"{argument.value} is {new}")

    def _condition(self, command: Command) -> Iterator[ScriptEdit]:
        for position, argument in enumerate(command.arguments):
            following = command.values[position + 1] if position + 1 < len(command.arguments) else ""
            if argument.text in _CONDITIONS and not _COMPARISONS.fullmatch(following):
                yield self._rename(argument, _CONDITIONS[argument.text])

    def _set_properties(self, command: Command) -> Iterator[ScriptEdit]:
        added: list[str] = []
        pairs = list(properties(command.arguments))
        dropped = 0
        edits = []
        for name, value in pairs:
            if name.value == "CUDA_SEPARABLE_COMPILATION" and (
                _ON.fullmatch(value.value) or _OFF.fullmatch(value.value)
            ):
                dropped += 1
                edits.append(self._deleted(name.start, value.end, f"{name.value} is -fgpu-rdc"))
                owners = command.values[: command.values.index("PROPERTIES")]
                added += _relocatable(owners) if _ON.fullmatch(value.value) else []
            elif name.value in _NOT_NEEDED:
                dropped += 1
                edits.append(self._deleted(name.start, value.end, f"{name.value} dropped"))
            else:
                edits += self._property(name, (value,))
        if dropped and dropped == len(pairs):
            yield self._instead(command, added or [""], OPTION, edits[0].message)
            return
        yield from edits
        if added:
            yield self._after(command, added, OPTION, "relocatable device code: -fgpu-rdc")

    def _set_property(self, command: Command) -> Iterator[ScriptEdit]:
        values = command.values
        if "PROPERTY" not in values or values.index("PROPERTY") + 1 >= len(values):
            return
        at = values.index("PROPERTY") + 1
        name, given = command.arguments[at], command.arguments[at + 1 :]
        if name.value == "CUDA_SEPARABLE_COMPILATION" and len(given) == 1 and values[0] == "TARGET":
            added = _relocatable(values[1 : at - 1]) if _ON.fullmatch(given[0].value) else [""]
            if _ON.fullmatch(given[0].value) or _OFF.fullmatch(given[0].value):
                yield self._instead(command, added, OPTION, f"{name.value} is -fgpu-rdc")
        elif name.value in _NOT_NEEDED:
            yield self._deleted(command.start, command.end, f"{name.value} dropped")
        elif given:
            yield from self._property(name, given)

    def _property(self, name: Argument, values: Sequence[Argument]) -> Iterator[ScriptEdit]:
        renamed = _PROPERTIES.fullmatch(name.value)
        if renamed:
            yield self._rename(name, f"HIP_{renamed.group(1)}")
        elif name.value == "CUDA_ARCHITECTURES":
            message = "HIP_ARCHITECTURES ${CMAKE_HIP_ARCHITECTURES}"
            yield ScriptEdit(name.start, name.end, "HIP_ARCHITECTURES", ARCHITECTURE, message)
            yield ScriptEdit(values[0].start, values[-1].end, '"${CMAKE_HIP_ARCHITECTURES}"', ARCHITECTURE, "")
        elif name.value in ("LANGUAGE", "LINKER_LANGUAGE") and values[0].value == "CUDA":
            yield ScriptEdit(values[0].start, values[0].end, "HIP", LANGUAGE, f"{name.value} HIP")

    def _find_cuda_target(self, command: Command) -> Iterator[ScriptEdit]:
        """FindCUDA's commands: the ordinary ones, its OPTIONS for HIP sources, and the runtime that it links."""
        if not command.arguments:
            return
        target, plain = command.first, command.name.removeprefix("cuda_")
        added = [f"target_link_libraries({target} hip::host)"]
        yield ScriptEdit(
            command.start, command.start + len(command.name), plain, LANGUAGE, f"{command.name} is {plain}"
        )
        if "OPTIONS" in command.values:
            at = command.values.index("OPTIONS")
            options = " ".join(command.values[at + 1 :])
            yield self._deleted(command.arguments[at].start, command.arguments[-1].end, "")
            made = flags_edit(command, at, self.tables, "", text=options, separator=";")
            if made.text:
                added.append(f"target_compile_options({target} PRIVATE $<$<COMPILE_LANGUAGE:HIP>:{made.text}>)")
        yield self._after(command, added, LIBRARY, f"{target} links the HIP runtime")

    def _find_cuda_other(self, command: Command) -> Iterator[ScriptEdit]:
        if command.name == "cuda_include_directories":
            end = command.start + len(command.name)
            yield ScriptEdit(
                command.start, end, "include_directories", LANGUAGE, f"{command.name} is include_directories"
            )
            return
        library = self.tables.libraries.get(command.name.split("_")[2])
        if library:
            line = f"target_link_libraries({command.first} {library.target})"
            yield self._instead(command, [line], LIBRARY, f"{command.name}: {library.target}")


def _flags_variable(name: str) -> str:
    return f"CMAKE_HIP_FLAGS{name.removeprefix('CUDA_NVCC_FLAGS')}"


def _list_of(targets: str, like: Argument, cached: str) -> str:
    return f'"{targets.replace(" ", ";")}"{cached}' if like.text.startswith('"') else f"{targets}{cached}"


def _relocatable(owners: Sequence[str]) -> list[str]:
    return [
        line
        for owner in owners
        for line in (
            f"target_compile_options({owner} PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)",
            f"target_link_options({owner} PUBLIC $<$<LINK_LANGUAGE:HIP>:-fgpu-rdc>)",
        )
    ]
