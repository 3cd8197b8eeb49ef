"""nvcc's options as the HIP compiler spells them, in the text of a make variable, a recipe or a CMake argument."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from amdflow.migrate.build_scripts.edits import ScriptEdit, rewritten
from amdflow.migrate.build_scripts.tables import BuildTables

ARCHITECTURE, OPTION, LIBRARY, REGISTERS = "AMF1512", "AMF1513", "AMF1511", "AMF1514"
_ARCHITECTURE_OPTIONS = frozenset({"gencode", "generate-code", "arch", "gpu-architecture", "code", "gpu-code"})
_HOST_OPTIONS = frozenset({"Xcompiler", "compiler-options"})
_SHARED_NAMES = frozenset({"G", "code", "keep", "threads", "dc", "x", "std", "dryrun", "arch", "cudart"})
"""Options that other programs have too: taken only where nvcc is certain to be meant."""
_START = re.compile(r"(?<![\w$./)}\]\\-])--?([A-Za-z][\w-]*)")
_VALUE = (
    r"(?:\\\"(?:[^\"\\]|\\[^\"])*\\\"|\"[^\"\n]*\"|'[^'\n]*'"
    r"|(?:\$\((?:[^()]|\([^()]*\))*\)|\$\{[^{}]*\}|(?<==)\\?\"[^\s\"\\]*\\?\"|[^\s\"';>)\\])+)"
)
_WITH_VALUE = re.compile(rf"(?:[ \t]*(?:\\\r?\n[ \t]*)?=?|=|;)(?<![\w-])[ \t]*(?!,)({_VALUE})")
_END = re.compile(r"$|[\s\"';>)\\]")
_LIBRARY = re.compile(r"(?<![\w$./)}\]\\-])-l(\w+)(?=$|[\s\"';>)\\])")
_REAL_ARCHITECTURE = re.compile(r"\b(?:sm|compute|lto)_")


@dataclass(frozen=True)
class Dialect:
    """How a kind of build script writes things. ``architecture`` gives the option for an nvcc architecture value, empty to drop it."""

    tables: BuildTables
    separator: str
    architecture: Callable[[str], str]


def option_edits(text: str, dialect: Dialect, *, certain: bool) -> list[ScriptEdit]:
    """Edits for nvcc's options and CUDA's ``-l`` libraries. ``certain`` says that the text is nvcc's arguments."""
    edits: list[ScriptEdit] = []
    architectures: set[str] = set()
    at = 0
    for match in _START.finditer(text):
        if match.start() < at or (not certain and match.group(1) in _SHARED_NAMES and not _speaks_of_gpus(text, match)):
            continue
        edit = _edit(text, match, dialect, architectures)
        if edit is not None:
            edits.append(edit)
            at = edit.end
    return edits + list(_library_edits(text, dialect.tables))


def _speaks_of_gpus(text: str, match: re.Match[str]) -> bool:
    return _REAL_ARCHITECTURE.search(text[match.end() : match.end() + 40].split(" -")[0]) is not None


def _edit(text: str, match: re.Match[str], dialect: Dialect, architectures: set[str]) -> ScriptEdit | None:
    name, tables = match.group(1), dialect.tables
    valued = _WITH_VALUE.match(text, match.end())
    value = _bare(valued.group(1)) if valued else ""
    if name in _ARCHITECTURE_OPTIONS:
        if not valued or value.startswith("-"):
            return None
        new = dialect.architecture(value)
        new = "" if new in architectures or name in ("code", "gpu-code") else new
        architectures.add(new)
        return _replacement(text, match.start(), valued.end(), new, ARCHITECTURE)
    if name in _HOST_OPTIONS and valued:
        return _replacement(text, match.start(), valued.end(), _host_options(value, dialect), OPTION)
    if valued and f"{name}={value}" in tables.options:
        new = tables.options[f"{name}={value}"]
        return _replacement(text, match.start(), valued.end(), new.replace(" ", dialect.separator), OPTION)
    if name in tables.options and _END.match(text, match.end()):
        new = tables.options[name].replace(" ", dialect.separator)
        return _replacement(text, match.start(), match.end(), new, OPTION)
    if name in tables.values and valued:
        new = tables.values[name].replace("{value}", value)
        if new == text[match.start() : valued.end()]:
            return None
        rule = REGISTERS if name == "maxrregcount" else OPTION
        return _replacement(text, match.start(), valued.end(), new, rule)
    return None


def _host_options(value: str, dialect: Dialect) -> str:
    """What the host compiler was to get; nvcc splits it at commas."""
    words = value if re.search(r"-W[la],|\$\(", value) else dialect.separator.join(value.replace(",", " ").split())
    return rewritten(words, option_edits(words, dialect, certain=False))


def _bare(value: str) -> str:
    for quote in ('\\"', '"', "'"):
        if len(value) >= 2 * len(quote) and value.startswith(quote) and value.endswith(quote):
            return value[len(quote) : -len(quote)]
    return value


def _replacement(text: str, start: int, end: int, new: str, rule: str) -> ScriptEdit:
    old = " ".join(text[start:end].replace("\\\n", " ").split())
    return removal(text, ScriptEdit(start, end, new, rule, f"{old} is {new}" if new else f"{old} dropped"))


def removal(text: str, edit: ScriptEdit) -> ScriptEdit:
    """An edit that leaves nothing also takes the blanks before it, where other text goes on behind it."""
    start, end = edit.start, edit.end
    if not edit.text:
        while start > 0 and text[start - 1] in " \t":
            start -= 1
        if start == 0 or text[start - 1] in "\n=:\"'(":
            start = edit.start
            while end < len(text) and text[end] in " \t":
                end += 1
    return ScriptEdit(start, end, edit.text, edit.rule, edit.message)


def _library_edits(text: str, tables: BuildTables) -> Iterator[ScriptEdit]:
    for match in _LIBRARY.finditer(text):
        library = tables.libraries.get(match.group(1))
        if library is not None:
            yield _replacement(text, *match.span(), f"-l{library.link}" if library.link else "", LIBRARY)
