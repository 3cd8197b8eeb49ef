"""Headers of our own that stand in for what ROCm lacks. They are copied into the output of trees that need them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = "amdflow_compat"


@dataclass(frozen=True)
class StandIn:
    """What a CUDA name becomes, and the compatibility header that has it."""

    use: str
    header: str


def include_path(file: str, header: str) -> str:
    """How a file of the output tree includes a compatibility header."""
    return f"{'../' * file.count('/')}{FOLDER}/{header}"


def header(name: str) -> Path:
    """The header called ``name`` as it comes with amdflow."""
    return Path(__file__).resolve().parent / name


def with_dependencies(names: set[str]) -> set[str]:
    """``names`` and the compatibility headers that those include."""
    wanted, pending = set(names), list(names)
    while pending:
        text = header(pending.pop()).read_text(encoding="utf-8")
        for line in text.split("\n"):
            if line.startswith('#include "'):
                included = line.split('"')[1]
                if included not in wanted:
                    wanted.add(included)
                    pending.append(included)
    return wanted
