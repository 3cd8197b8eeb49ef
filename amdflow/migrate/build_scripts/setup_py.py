"""setup.py with PyTorch's CUDAExtension: PyTorch built for ROCm translates names by itself, so only nvcc's flags are converted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from amdflow.migrate.build_scripts.edits import Converted, ScriptEdit, convert_with, rewritten
from amdflow.migrate.build_scripts.options import LIBRARY, Dialect, option_edits
from amdflow.migrate.build_scripts.tables import BuildTables

_FOR_CUDA = re.compile(r"CUDAExtension|['\"]nvcc['\"]|\bnvcc\b")
_PAIRED = re.compile(
    r"-gencode|--generate-code|-arch|--gpu-architecture|-Xcompiler|--compiler-options|-Xptxas|-Xcudafe|-ccbin|--compiler-bindir|--threads|--maxrregcount|-maxrregcount"
)


def convert_setup(_name: str, text: str, tables: BuildTables, _targets: Sequence[str]) -> Converted | None:
    """The script with its flags for the HIP compiler; None when nothing is to be changed or it is not Python."""
    if not _FOR_CUDA.search(text):
        return None
    try:
        program = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    edits = list(_Script(text, tables).edits(program))
    return convert_with(text, edits) if edits else None


class _Script:
    """The text and where its lines start, in characters."""

    def __init__(self, text: str, tables: BuildTables) -> None:
        self.text, self.tables = text, tables
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.reached = 0
        self.dialect = Dialect(tables, " ", lambda _value: "")

    def edits(self, program: ast.Module) -> Iterator[ScriptEdit]:
        """For each list of words: flags go or change; ``libraries`` get ROCm's names."""
        for node in ast.walk(program):
            if isinstance(node, ast.keyword) and node.arg == "libraries":
                yield from self._libraries(node.value)
            elif isinstance(node, ast.List | ast.Tuple):
                yield from self._flags(node.elts)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                yield from self._flags(node.args)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        def offset(line: int, column: int) -> int:
            return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def _flags(self, elements: Sequence[ast.expr]) -> Iterator[ScriptEdit]:
        position = 0
        while position < len(elements):
            group = [elements[position]]
            if _word(group[0]) and _PAIRED.fullmatch(_word(group[0])) and position + 1 < len(elements):
                group.append(elements[position + 1])
            position += len(group)
            words = [_word(element) for element in group]
            if not all(words):
                continue
            old = " ".join(words)
            made = option_edits(old, self.dialect, certain=old.startswith("-"))
            new = rewritten(old, made).split()
            if made and new != words:
                yield self._replacement(group, new, made[0].rule, made[0].message)

    def _libraries(self, node: ast.expr) -> Iterator[ScriptEdit]:
        for element in node.elts if isinstance(node, ast.List | ast.Tuple) else ():
            library = self.tables.libraries.get(_word(element))
            if library is not None:
                new = [library.link] if library.link else []
                message = f"{_word(element)} is {library.link}" if new else f"{_word(element)} dropped"
                yield self._replacement([element], new, LIBRARY, message)

    def _replacement(self, group: Sequence[ast.expr], new: Sequence[str], rule: str, message: str) -> ScriptEdit:
        start, end = self._span(group[0])[0], self._span(group[-1])[1]
        quote = self.text[start] if self.text[start] in "'\"" else '"'
        if not new:
            before = re.search(r",\s*$", self.text[self.reached : start])
            following = re.match(r"[ \t]*,[ \t]*", self.text[end:])
            if before:
                start = self.reached + before.start()
            elif following:
                end += following.end()
        self.reached = end
        return ScriptEdit(start, end, ", ".join(f"{quote}{word}{quote}" for word in new), rule, message)


def _word(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
