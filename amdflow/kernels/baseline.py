"""What each kernel took when somebody last looked: a build that takes much more fails by name.

``baseline.json`` lies beside the kernels. It holds for the tools it was taken with; other tools are another matter, and
a note says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import UsageError
from amdflow.files import write_atomic
from amdflow.kernels.item import SHORT, variant_name

NAME = "baseline.json"
ACCEPT = "amdflow kernels build --update-baseline"
_SCHEMA, _VERSION = "amdflow/kernel-baseline", "1.0"
_TOOLS = ("tilelang", "rocm")
_FIGURES = {
    "vgprs": "vgprs",
    "agprs": "agprs",
    "spills": "spills",
    "lds": "lds",
    "waves": "waves_per_simd",
    "matrix": "matrix_instructions",
}
"""Names in the file, and those in the build's table."""


@dataclass(frozen=True)
class Baseline:
    """The figures of each kernel, by ``<target>/<variant>``, and the tools that they were taken with."""

    tools: Mapping[str, str]
    kernels: Mapping[str, Mapping[str, int]]

    def other_tools(self, tools: Mapping[str, str]) -> str:
        """Which tools differ, in words; or nothing."""
        pairs = [(name, self.tools.get(name, "none"), tools.get(name, "none")) for name in _TOOLS]
        return ", ".join(f"{name} {ours}, not {theirs}" for name, ours, theirs in pairs if ours != theirs)

    def regressions(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
        """What got much worse, by kernel: spills that appear or grow, waves that halve, matrix instructions that vanish."""
        found: dict[str, list[str]] = {}
        for row in rows:
            before = self.kernels.get(name_of(row))
            if before is not None and (worse := _worse(before, figures(row))):
                found[name_of(row)] = worse
        return found


def read_baseline(folder: Path) -> Baseline | None:
    """The baseline in ``folder``; None when there is none. Raises UsageError for a file that is none."""
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != _SCHEMA or str(data["version"]).partition(".")[0] != "1":
            raise ValueError(f"{data['schema']} {data['version']}")
        tools = {name: str(data["tools"].get(name, "none")) for name in _TOOLS}
        kernels = {name: {figure: int(entry[figure]) for figure in _FIGURES} for name, entry in data["kernels"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no baseline of kernels: {type(error).__name__}: {error}",
            hint=f"remove the file, then write it anew: {ACCEPT}",
        ) from error
    return Baseline(tools, kernels)


def write_baseline(folder: Path, rows: Sequence[Mapping[str, Any]], tools: Mapping[str, str]) -> Path:
    """Accept ``rows``; kernels, types and targets that were not built now keep their figures, where the tools are the same."""
    old = read_baseline(folder)
    if old is not None and old.other_tools(tools):
        old = None  # its figures would pass for those of the tools of today
    built = {(row["target"], row["kernel"], SHORT[row["dtype"]]) for row in rows}
    kept = {name: entry for name, entry in (old.kernels if old else {}).items() if _parts(name) not in built}
    every = kept | {name_of(row): figures(row) for row in rows}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(every[name])}" for name in sorted(every))
    head = json.dumps({"schema": _SCHEMA, "version": _VERSION, "tools": {name: tools[name] for name in _TOOLS}})
    path = folder / NAME
    write_atomic(path, f'{head[:-1]}, "kernels": {{\n{lines}\n}}}}\n')
    return path


def name_of(row: Mapping[str, Any]) -> str:
    """``gfx942/rms_norm-hidden4096-bf16``."""
    return f"{row['target']}/{variant_name(row['kernel'], row['sizes'], row['dtype'])}"


def figures(row: Mapping[str, Any]) -> dict[str, int]:
    """What is compared, of a row of the build's table."""
    full = {**row, "lds": row["lds_static"] + row["lds_dynamic"]}
    return {name: full[key] for name, key in _FIGURES.items()}


def _parts(name: str) -> tuple[str, str, str]:
    target, _, variant = name.partition("/")
    return target, variant.partition("-")[0], variant.rpartition("-")[2]


def _worse(before: Mapping[str, int], now: Mapping[str, int]) -> list[str]:
    found = []
    if now["spills"] > before["spills"]:
        found.append(f"spills {now['spills']} registers, {before['spills']} before")
    if 2 * now["waves"] <= before["waves"]:
        found.append(f"{now['waves']} waves a SIMD, {before['waves']} before")
    if before["matrix"] and not now["matrix"]:
        found.append(f"no matrix instructions, {before['matrix']} before")
    return found
