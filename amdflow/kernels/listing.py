"""``kernels list``: what there is, what it is built for and where models can use it; read from the sources, nothing is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from amdflow.gpu.targets import TARGETS
from amdflow.kernels.item import SCRIPTS, SHORT, alone, sizes_text
from amdflow.kernels.sources import Folders, find_kernels
from amdflow.kernels.tiles import shapes_for

COLUMNS = ("kernel", "dtypes", "built with", "targets", "what it does")
OPERATOR_COLUMNS = ("operator", "kernels", "dtypes", "takes", "stands in")


@dataclass(frozen=True)
class Listed:
    """One kernel."""

    kernel: str
    file: str
    summary: str
    dtypes: tuple[str, ...]
    shapes: tuple[dict[str, Any], ...]
    """What `kernels build` fixes; all other sizes are given at launch."""
    targets: tuple[str, ...]
    """Those of the project that it is built for."""

    def cells(self) -> list[str]:
        """As a row of text."""
        shapes = "; ".join(sizes_text(shape) or "defaults" for shape in self.shapes)
        return [self.kernel, _short(self.dtypes), shapes, ", ".join(self.targets) or "none", self.summary]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def list_kernels(folders: Folders, targets: Sequence[str], wanted: tuple[str, ...] = ()) -> list[Listed]:
    """The kernels called ``wanted`` (all when empty). Raises UsageError for a name no kernel has."""
    return [
        Listed(
            kernel.op,
            kernel.name,
            kernel.declaration.summary,
            kernel.declaration.dtypes,
            tuple(shapes_for(folders, kernel)),
            tuple(name for name in targets if TARGETS[name].matrix or not kernel.declaration.matrix),
        )
        for kernel in find_kernels(folders, wanted)
    ]


def operators(kernels: Sequence[Listed]) -> list[dict[str, Any]]:
    """The operators that stand in models and use one of ``kernels``, each with the classes it knows."""
    there = {one.kernel for one in kernels}
    every: Iterator[Any] = iter(alone(SCRIPTS / "tilelang_ops" / "classes.py").OPERATORS.values())
    return [
        {
            "operator": one.op,
            "kernels": list(one.kernels),
            "dtypes": list(one.dtypes),
            "takes": one.shapes,
            "classes": list(one.modules),
        }
        for one in every
        if there & set(one.kernels)
    ]


def operator_cells(entry: dict[str, Any]) -> list[str]:
    """One operator as a row of text."""
    return [
        entry["operator"],
        ", ".join(entry["kernels"]),
        _short(entry["dtypes"]),
        entry["takes"],
        ", ".join(entry["classes"]),
    ]


def _short(dtypes: Sequence[str]) -> str:
    return ", ".join(SHORT[name] for name in dtypes)
