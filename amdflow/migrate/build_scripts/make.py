"""Makefiles: hipcc for nvcc, its options, ROCm's libraries and folders.

Values of variables, recipes and conditions that compare a compiler are converted; targets, prerequisites and comments never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from amdflow.migrate.build_scripts.edits import Converted, ScriptEdit, convert_with, rewritten
from amdflow.migrate.build_scripts.options import ARCHITECTURE, OPTION, Dialect, option_edits
from amdflow.migrate.build_scripts.tables import BuildTables
from amdflow.migrate.text import line_ending

COMPILER, FOLDER = "AMF1515", "AMF1516"
_CONCERNS_CUDA = re.compile(r"nvcc|\bcuda|-lcu|\.cu\b|\b(?:sm|compute)_[\d$]", re.IGNORECASE)
_ASSIGNMENT = re.compile(
    r"[ \t]*(?:(?:export|override|private)[ \t]+)*(?:[^\s:#=+?!]+[ \t]*:[ \t]*)?([\w.-]+)[ \t]*(?:::?:?=|\?=|\+=|!=|=)"
)
_CONDITION = re.compile(r"[ \t]*(?:else[ \t]+)?(?:ifeq|ifneq)\b")
_COMMENT = re.compile(r"(?<!\\)#(?:[^\\\n]|\\[\s\S])*")
_NVCC_WORD = r"nvcc(?=$|[\s\"'),;])"
_NVCC = re.compile(rf"(?<![\w-]){_NVCC_WORD}")
_TOOLKIT_NAME = r"CUDA_?(?:HOME|PATH|DIR|ROOT|INSTALL_PATH|INSTALL_DIR|TOOLKIT_PATH|TOOLKIT|ROOT_DIR|BASE|INSTALL)"
_TOOLKIT_FOLDER = r"/(?:usr/local|opt)/cuda(?:-[\d.]+)?(?=[/\s\"']|$)"
_DEFAULT_TOOLKIT = re.compile(rf"\s*(?:{_TOOLKIT_FOLDER})/?\s*")
_SM_VALUE = re.compile(r"\s*(?:(?:sm|compute)_\d+[af]?[\s,]*)+")
_NOT_A_CALL = re.compile(r"(?:\bwhich|\bcommand[ \t]+-v|\becho|\btype|\bwhereis)\b[^;&|\n]*$")
_SHELL = re.compile(r"\$[({]shell\b")
_FLAG_NAME = re.compile(r"NV|CU|FLAGS|OPT|ARCH|GEN|LINK|LIBS|INC", re.IGNORECASE)
_FOLDERS = {
    "lib64/stubs": "lib",
    "lib64": "lib",
    "lib/x64": "lib",
    "lib/stubs": "lib",
    "lib": "lib",
    "include": "include",
    "targets/x86_64-linux/lib": "lib",
    "targets/x86_64-linux/include": "include",
    "bin": "bin",
}
_SAYS = re.compile(r"\t[ \t]*[@+-]*[ \t]*(?:#|(?:echo|printf)\b(?!.*(?:&&|;|\|)))")
"""A recipe's comment, or a line that only prints."""


@dataclass(frozen=True)
class _Piece:
    """A part of the makefile that may be converted. ``variable`` is the one that it is the value of, else empty."""

    start: int
    text: str
    variable: str
    recipe: bool


def convert_makefile(_name: str, text: str, tables: BuildTables, targets: Sequence[str]) -> Converted | None:
    """The makefile for HIP; None when it has nothing to do with CUDA."""
    if not _CONCERNS_CUDA.search(text):
        return None
    edits = list(_Makefile(text, tables, targets).edits())
    return convert_with(text, edits) if edits else None


class _Makefile:
    """One file, read into pieces."""

    def __init__(self, text: str, tables: BuildTables, targets: Sequence[str]) -> None:
        self.text, self.tables, self.targets = text, tables, targets
        self.pieces = list(_pieces(text))

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """Values of each variable."""
        found: dict[str, list[str]] = {}
        for piece in self.pieces:
            if piece.variable:
                found.setdefault(piece.variable, []).append(piece.text.strip())
        return found

    @cached_property
    def compilers(self) -> set[str]:
        """Variables that hold nvcc; NVCC does where another makefile defines it."""
        holding = {name for name, values in self.values.items() if any(_NVCC.search(value) for value in values)}
        return holding | ({"NVCC"} - self.values.keys())

    @cached_property
    def architecture_variables(self) -> set[str]:
        """Variables whose value is the name of a GPU architecture and that the compiler gets as such."""
        return {
            name
            for name, values in self.values.items()
            if any(_SM_VALUE.fullmatch(value) for value in values)
            and re.search(rf"(?<![\w-])(?:-arch|--gpu-architecture)[= ]\$[({{]{re.escape(name)}[)}}]", self.text)
        }

    @cached_property
    def toolkit_variables(self) -> set[str]:
        """Variables that hold the CUDA toolkit's folder."""
        own = {
            name for name, values in self.values.items() if any(_DEFAULT_TOOLKIT.fullmatch(value) for value in values)
        }
        return own | set(re.findall(rf"\$[({{]({_TOOLKIT_NAME})[)}}]", self.text))

    @cached_property
    def architecture_name(self) -> str:
        """A variable for the targets that the file does not use otherwise."""
        return "HIP_ARCH" if not re.search(r"\bHIP_ARCH\b", self.text) else "AMDFLOW_HIP_ARCH"

    @cached_property
    def dialect(self) -> Dialect:
        """How makefiles write an architecture."""

        def architecture(value: str) -> str:
            used = re.fullmatch(r"\$[({](\w+)[)}]", value)
            if used and used.group(1) in self.architecture_variables:
                return f"--offload-arch={value}"
            return f"--offload-arch=$({self.architecture_name})"

        return Dialect(self.tables, " ", architecture)

    def edits(self) -> Iterator[ScriptEdit]:
        """All of them, those that define what others use included."""
        made = [edit for piece in self.pieces for edit in self._piece_edits(piece)]
        made += [*self._conditions(), *self._device_link(made)]
        new = "".join(edit.text for edit in made)
        folders = self._toolkit_definitions(rewritten(self.text, made)) if "$(ROCM_PATH)" in new else []
        yield from (*made, *folders)
        definitions = ""
        ending = line_ending(self.text)
        if f"$({self.architecture_name})" in new:
            definitions += f"{self.architecture_name} ?= {','.join(self.targets)}{ending}"
        if "$(ROCM_PATH)" in new and not folders and not self._defines_rocm:
            definitions += f"ROCM_PATH ?= /opt/rocm{ending}"
        if definitions:
            at = _first_statement(self.text)
            message = "variables that the converted lines use, to be set by make NAME=VALUE"
            yield ScriptEdit(at, at, definitions, ARCHITECTURE, message)

    @cached_property
    def _defines_rocm(self) -> bool:
        return re.search(r"^[ \t]*ROCM_PATH[ \t]*[:?]?=", self.text, re.MULTILINE) is not None

    def _piece_edits(self, piece: _Piece) -> list[ScriptEdit]:
        text = piece.text
        if piece.variable in self.architecture_variables and _SM_VALUE.fullmatch(text):
            start = len(text) - len(text.lstrip())
            new = ",".join(self.targets)
            message = f"{piece.variable} is {new}, not {text.strip()}"
            return [ScriptEdit(start, start + len(text.strip()), new, ARCHITECTURE, message).moved(piece.start)]
        if re.search(r"-f?openmp-targets|--offload-arch|-fsycl", text):
            return []
        found = option_edits(text, self.dialect, certain=self._is_nvcc(piece))
        found = [self._completed(edit) for edit in found]
        found += [*self._compiler_edits(text), *self._folder_edits(text), *_prefix_edits(text)]
        return [edit.moved(piece.start) for edit in found]

    def _completed(self, edit: ScriptEdit) -> ScriptEdit:
        """With the folders in its new text converted too."""
        return ScriptEdit(
            edit.start, edit.end, rewritten(edit.text, self._folder_edits(edit.text)), edit.rule, edit.message
        )

    def _is_nvcc(self, piece: _Piece) -> bool:
        if _NVCC.search(piece.text):
            return True
        if any(
            re.search(rf"-arch[= ]\$[({{]{re.escape(name)}[)}}]", piece.text) for name in self.architecture_variables
        ):
            return True
        if piece.recipe:
            return any(f"$({name})" in piece.text or f"${{{name}}}" in piece.text for name in self.compilers)
        return bool(piece.variable and _FLAG_NAME.search(piece.variable))

    def _compiler_edits(self, text: str) -> Iterator[ScriptEdit]:
        pattern = rf"(?<![\w./$(-])(?:(\$[({{]\w+[)}}]|{_TOOLKIT_FOLDER})/+(?:bin/+)?)?{_NVCC_WORD}"
        for match in re.finditer(pattern, text):
            before = text[: match.start()]
            if _SHELL.search(before) or _NOT_A_CALL.search(before):
                continue
            new = "$(ROCM_PATH)/bin/hipcc" if match.group(1) else "hipcc"
            yield ScriptEdit(*match.span(), new, COMPILER, f"{match.group()} is {new}")

    def _folder_edits(self, text: str) -> Iterator[ScriptEdit]:
        names = "|".join(map(re.escape, self.toolkit_variables)) or "(?!)"
        known = "|".join(map(re.escape, _FOLDERS))
        pattern = rf"(?<![\w/])(-isystem[ \t]+|-I[ \t]*|-L[ \t]*)?(?:\$[({{](?:{names})[)}}]|{_TOOLKIT_FOLDER})/+({known})/?(?=$|[\s\"',;:)\\])"
        for match in re.finditer(pattern, text):
            option, folder = match.group(1) or "", _FOLDERS[match.group(2)]
            new = f"{option}$(ROCM_PATH)/{folder}"
            if option and folder == "include":
                new += " -D__HIP_PLATFORM_AMD__"  # what hipcc defines by itself, and another compiler of HIP's headers needs
            yield ScriptEdit(*match.span(), new, FOLDER, f"{match.group()} is {new}")

    def _conditions(self) -> Iterator[ScriptEdit]:
        """``ifeq ($(CC),nvcc)`` where that variable's nvcc became hipcc."""
        for start, line in _logical_lines(self.text):
            if not _CONDITION.match(line):
                continue
            for match in re.finditer(rf"(?<![\w./-]){_NVCC_WORD}", line):
                if any(f"$({name})" in line for name in self.compilers):
                    message = "compares with hipcc, which that variable holds now"
                    yield ScriptEdit(*match.span(), "hipcc", COMPILER, message).moved(start)

    def _device_link(self, made: Sequence[ScriptEdit]) -> Iterator[ScriptEdit]:
        """Relocatable device code: nvcc links it without being told, the HIP compiler has to be told."""
        if not any("-fgpu-rdc" in edit.text for edit in made):
            return
        for piece in self.pieces:
            called = next((f"$({name})" for name in self.compilers if f"$({name})" in piece.text), "")
            words = piece.text.split()
            if (
                piece.recipe
                and called
                and not {"-c", "--compile", "-dc", "--device-c", "-dlink", "-M", "-MM"} & set(words)
            ):
                at = piece.start + piece.text.index(called) + len(called)
                yield ScriptEdit(
                    at, at, " -fgpu-rdc", OPTION, "-fgpu-rdc added: relocatable device code is linked here"
                )

    def _toolkit_definitions(self, left: str) -> list[ScriptEdit]:
        """``CUDA_HOME ?= /usr/local/cuda`` is ROCm's folder where nothing uses the variable any more."""
        made = []
        for piece in self.pieces:
            name = piece.variable
            used = re.search(rf"\$[({{]{re.escape(name)}[)}}]", left)
            if name in self.toolkit_variables and _DEFAULT_TOOLKIT.fullmatch(piece.text) and not used:
                line = self.text.rfind("\n", 0, piece.start) + 1
                end = piece.start + len(piece.text.rstrip())
                message = f"ROCM_PATH, not {name}: /opt/rocm"
                made.append(ScriptEdit(line, end, "ROCM_PATH ?= /opt/rocm", FOLDER, message))
        return made


def _prefix_edits(text: str) -> Iterator[ScriptEdit]:
    """``$(addprefix -Xcompiler ,...)``, which gives each of the host compiler's options to nvcc."""
    for match in re.finditer(r"(?<=\$\(addprefix )[ \t]*-(?:Xcompiler|-compiler-options)[ \t]*(?=,)", text):
        yield ScriptEdit(*match.span(), "", OPTION, f"{match.group().strip()} dropped")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Start and text of each line, continued lines as one."""
    for match in re.finditer(r"(?:[^\\\n]|\\(?:\r\n|[\s\S]))+\\?|\\$", text):
        yield match.start(), match.group()


def _pieces(text: str) -> Iterator[_Piece]:
    defining = False
    for start, line in _logical_lines(text):
        word = line.strip().split(" ", 1)[0]
        if word in ("define", "endef"):
            defining = word == "define"
            continue
        if line.startswith("\t") and _SAYS.match(line):
            continue
        if line.startswith("\t") and not _ASSIGNMENT.match(line):
            yield _Piece(start, line, "", recipe=True)
            continue
        if defining:
            yield _Piece(start, line, "", recipe=True)
            continue
        comment = _COMMENT.search(line)
        code = line[: comment.start()] if comment else line
        assignment = _ASSIGNMENT.match(code)
        if assignment:
            yield _Piece(start + assignment.end(), code[assignment.end() :], assignment.group(1), recipe=False)
        elif ";" in code and ":" in code and not _CONDITION.match(code):
            at = code.index(";") + 1
            yield _Piece(start + at, code[at:], "", recipe=True)
        elif re.match(r"[ \t]*\$\((foreach|eval|call)\b", code):
            yield _Piece(start, code, "", recipe=False)


def _first_statement(text: str) -> int:
    for match in re.finditer(r"^.*$", text, re.MULTILINE):
        if match.group().strip() and not match.group().lstrip("\ufeff \t").startswith("#"):
            return match.start()
    return len(text)
