"""What a migration hands to its reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amdflow.findings import Finding


@dataclass(frozen=True)
class FileResult:
    """How one source file fared.

    ``path`` is relative to the scanned root, ``output`` to the migrated tree; ``method`` says how it was translated;
    ``state`` is the translator's own word; ``targets`` maps gfx target to ``ok``, ``failed`` or ``not a unit``.
    """

    path: str
    method: str
    state: str
    targets: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Dependency:
    """A library that the tree uses. ``status`` is ``drop-in``, ``renamed``, ``partial`` or ``none``.

    ``files`` and ``uses`` are counts, ``where`` names some of the files, ``gaps`` maps names that HIP lacks to their uses.
    """

    name: str
    stands: str
    status: str
    note: str = ""
    files: int = 0
    uses: int = 0
    where: Sequence[str] = ()
    gaps: Mapping[str, int] = field(default_factory=dict)


class LazyTexts(Mapping[str, tuple[str, str]]):
    """(original text, migrated text) by path, from ``read`` each time one is asked for."""

    def __init__(self, names: Iterable[str], read: Callable[[str], tuple[str, str]]) -> None:
        self._names = dict.fromkeys(names)
        self._read = read

    def __getitem__(self, name: str) -> tuple[str, str]:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class MigrationReport:
    """Everything the migration report shows.

    ``sources`` maps path to (original text, migrated text). Reports ask for one text at a time and keep none, so a mapping
    that reads them when asked, such as :class:`LazyTexts`, keeps a large tree out of memory.
    """

    source: str
    targets: Sequence[str]
    tools: Mapping[str, str]
    files: Sequence[FileResult]
    findings: Sequence[Finding]
    sources: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    seconds: float = 0.0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    dependencies: Sequence[Dependency] = ()
