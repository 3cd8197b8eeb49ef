"""What stands before a header where a unit includes it: fragments and headers that lean on their includer need it."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from amdflow.migrate import lexer
from amdflow.migrate.include_graph import IncludeGraph

_CONDITIONAL = re.compile(r"^[ \t\ufeff]*#[ \t]*(if|ifdef|ifndef|endif)\b", re.MULTILINE)
_END = "//amdflow: end of the file"
_UNITS_WEIGHED = 6
_RUNTIME = ("cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "hip/hip_runtime.h")
_ADDED = re.compile(r"^(?:\r?\n)?#include <hip/hip_runtime\.h>\r?\n", re.MULTILINE)


@dataclass(frozen=True)
class Context:
    """``before`` is what the unit holds before the file is included, ``depth`` how many braces it leaves open.

    ``chain`` names the files from the unit to the direct includer, ``reads`` all files of the tree that ``before`` includes.
    """

    unit: str
    chain: tuple[str, ...]
    before: str
    depth: int
    reads: tuple[str, ...]

    def closed(self, text: str) -> str:
        """The file's text with the braces closed that its includer left open."""
        return f"{text}\n{_END}\n{'};' * self.depth}\n" if self.depth else text

    def opened(self, text: str, original: str) -> str:
        """The reverse of :meth:`closed`, after translation.

        An include of the runtime that the tool added goes too: it would stand inside what the includer left open.
        """
        if not self.depth:
            return text
        text = text.rpartition(f"\n{_END}")[0]
        included = any(include.path in _RUNTIME for include in lexer.includes(original))
        return text if included else _ADDED.sub("", text, count=1)


class Contexts:
    """Finds for each included file the unit that says it with the fewest words."""

    def __init__(self, graph: IncludeGraph, texts: Mapping[str, str]) -> None:
        self._graph, self._texts = graph, texts
        self._includers: dict[str, list[str]] = defaultdict(list)
        for name, resolved in graph.resolved.items():
            for target in dict.fromkeys(resolved.values()):
                if target != name:
                    self._includers[target].append(name)
        self._closures: dict[str, frozenset[str]] = {}

    def of(self, name: str) -> Context | None:
        """The context of an included file; None when nothing includes it."""
        found = [context for root in self._roots(name) if (context := self._before(root, name)) is not None]
        return min(found, key=lambda context: len(context.before), default=None)

    def _roots(self, name: str) -> list[str]:
        """Files that lead to this one and that nobody includes, nearest first."""
        roots: list[str] = []
        seen, pending = {name}, deque([name])
        while pending and len(roots) < _UNITS_WEIGHED:
            current = pending.popleft()
            above = self._includers.get(current, [])
            if not above and current != name:
                roots.append(current)
            for file in above:
                if file not in seen:
                    seen.add(file)
                    pending.append(file)
        return roots

    def _before(self, root: str, name: str) -> Context | None:
        parts: list[str] = []
        chain: list[str] = []
        reads: list[str] = []
        current = root
        while current != name:
            chain.append(current)
            step = self._next(current, name, reads)
            if step is None:
                return None
            text = self._texts[current]
            parts.append(text[: text.rfind("\n", 0, step.start) + 1].removeprefix("\ufeff"))
            current = self._graph.resolved[current][step.path]
            if current in chain:
                return None
        before = "".join(parts)
        masked = lexer.mask(before)
        opened = [match.group(1) != "endif" for match in _CONDITIONAL.finditer(masked)]
        before += "#endif\n" * max(2 * sum(opened) - len(opened), 0)
        depth = max(masked.count("{") - masked.count("}"), 0)
        return Context(root, tuple(chain), before, depth, tuple(dict.fromkeys(reads)))

    def _next(self, file: str, name: str, reads: list[str]) -> lexer.Include | None:
        """The first include of ``file`` that leads to ``name``; those before it are added to ``reads``."""
        resolved = self._graph.resolved.get(file, {})
        for include in self._graph.includes.get(file, ()):
            target = resolved.get(include.path)
            if target is None or target == file:
                continue
            if target == name or name in self._closure(target):
                return include
            reads.extend(self._closure(target))
        return None

    def _closure(self, name: str) -> frozenset[str]:
        if name not in self._closures:
            self._closures[name] = frozenset(self._graph.closure(name))
        return self._closures[name]


def folders(context: Context, root: Path) -> tuple[Path, ...]:
    """Folders of the files whose text stands before the include, nearest first: their own includes are found from there."""
    return tuple(dict.fromkeys((root / name).parent for name in reversed(context.chain)))
