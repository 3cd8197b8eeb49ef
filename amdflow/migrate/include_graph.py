"""Who includes whom inside a tree: finds translation units, include folders nobody named, and what a file's meaning depends on."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from amdflow.migrate import lexer
from amdflow.migrate.lexer import Include
from amdflow.migrate.scan import Entry


class IncludeGraph:
    """Built from the text of every source and header. Names are paths relative to the tree."""

    def __init__(
        self, entries: Sequence[Entry], texts: Mapping[str, str], root: Path, folders: Callable[[Path], Sequence[Path]]
    ) -> None:
        self.includes: dict[str, list[Include]] = {}
        self.resolved: dict[str, dict[str, str]] = {}
        """file -> path as written -> file in the tree."""
        self.found_folders: dict[str, tuple[Path, ...]] = {}
        """file -> folders in the tree that its includes need and no build file names."""
        self.leads_outside: set[str] = set()
        """Files with an include that is found relative to them, outside the tree."""
        self.entries = {entry.name: entry for entry in entries}
        self.root = root
        self._by_base: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            self._by_base[entry.path.name].append(entry.name)
        self._macros: dict[str, set[tuple[str, bool]]] = defaultdict(set)
        for text in texts.values():
            for macro, path, quoted in lexer.macro_paths(text):
                self._macros[macro].add((path, quoted))
        for entry in entries:
            if entry.name in texts:
                self._add(entry, texts[entry.name], folders(entry.path))
        self.included = {target for paths in self.resolved.values() for target in paths.values()}

    def _add(self, entry: Entry, text: str, folders: Sequence[Path]) -> None:
        self.includes[entry.name] = found = [*lexer.includes(text), *self._by_macro(text)]
        found.sort(key=lambda include: include.start)
        resolved: dict[str, str] = {}
        extra: dict[Path, None] = {}
        for include in found:
            target, folder = self._resolve(entry, include, folders)
            if target:
                resolved[include.path] = target
            if folder is not None:
                extra[folder] = None
        self.resolved[entry.name] = resolved
        self.found_folders[entry.name] = tuple(extra)

    def _by_macro(self, text: str) -> Iterator[Include]:
        """What ``#include NAME`` may mean: every path that the tree gives this name."""
        for macro, at in lexer.macro_includes(text):
            for path, quoted in sorted(self._macros.get(macro, ())):
                yield Include(path, quoted, at, at)

    def _resolve(self, entry: Entry, include: Include, folders: Sequence[Path]) -> tuple[str, Path | None]:
        """The file in the tree that an include means, and the folder that has to be searched for it when none of the known ones leads there."""
        for folder in (entry.path.parent, *folders) if include.quoted else folders:
            name = self._inside(folder / include.path)
            if name in self.entries:
                return name, None
        tail = os.path.normpath(include.path)
        if include.quoted and tail.startswith("..") and (entry.path.parent / include.path).is_file():
            self.leads_outside.add(entry.name)
        if not include.quoted or tail.startswith(".."):
            return "", None
        candidates = [
            name for name in self._by_base.get(os.path.basename(tail), ()) if name == tail or name.endswith(f"/{tail}")
        ]
        if not candidates:
            return "", None
        here = os.path.dirname(entry.name)
        best = max(candidates, key=lambda name: (_shared_folders(here, name), -len(name)))
        return best, self.root / best.removesuffix(tail)

    def _inside(self, path: Path) -> str:
        normal = os.path.normpath(path)
        prefix = f"{self.root}{os.sep}"
        return normal.removeprefix(prefix).replace(os.sep, "/") if normal.startswith(prefix) else ""

    def closure_folders(self, name: str) -> tuple[Path, ...]:
        """Folders that a unit and everything it includes need besides the named ones."""
        return tuple(
            dict.fromkeys(folder for file in self.closure(name) for folder in self.found_folders.get(file, ()))
        )

    def outside_folders(self, name: str) -> tuple[Path, ...]:
        """Original folders from which a unit's includes that leave the tree are found."""
        files = (file for file in self.closure(name) if file in self.leads_outside)
        return tuple(dict.fromkeys((self.root / file).parent for file in files))

    def closure(self, name: str) -> list[str]:
        """A file and all files of the tree that it includes, directly or not; itself first, each once."""
        seen, pending = {name: None}, [name]
        while pending:
            for target in self.resolved.get(pending.pop(), {}).values():
                if target not in seen:
                    seen[target] = None
                    pending.append(target)
        return list(seen)


def _shared_folders(folder: str, name: str) -> int:
    """How many folders from the top two paths have in common."""
    count = 0
    for left, right in zip(folder.split("/"), name.split("/"), strict=False):
        if left != right:
            break
        count += 1
    return count


class Digests:
    """Digest of a file together with everything it includes, each file read once."""

    def __init__(self, graph: IncludeGraph, texts: Mapping[str, str]) -> None:
        self._graph, self._texts = graph, texts
        self._own: dict[str, bytes] = {}

    def of(self, names: Sequence[str], *extra: str) -> str:
        """Hex SHA-256 for files taken together; ``extra`` is what else the result depends on (flags, versions)."""
        total = hashlib.sha256("\0".join(extra).encode("utf-8", "surrogateescape"))
        for file in dict.fromkeys(file for name in names for file in self._graph.closure(name)):
            if file not in self._own:
                self._own[file] = hashlib.sha256(self._texts.get(file, "").encode("utf-8", "surrogateescape")).digest()
            total.update(file.encode())
            total.update(self._own[file])
        return total.hexdigest()
