"""Ranks settings without a card: how long a compiled kernel would keep the parts of a GPU busy, from its instructions.

A model, and a coarse one: it is there to say which of two settings is likely the better, never how fast one is. The time
of a kernel is put together from

- matrix: its operations at the target's published matrix peak;
- vector: vector instructions, one wave instruction a SIMD in 1 cycle (RDNA) or 4 (CDNA);
- lds: bytes to and from LDS, 128 in a cycle and compute unit;
- memory: the bytes that no implementation can do without at the published bandwidth; what is loaded all in all, at 64
  bytes in a cycle and compute unit; and what is in flight at a time against 700 ns of latency; the longest of the three.

How often the instructions run follows from the work: the kernel's own ``work`` at the sizes asked for, over what one pass
through the loop with the matrix instructions does (through the whole kernel, for one without). The longest part
counts whole; the others hide behind it except for one part in the number of waves on a SIMD. The last round of
workgroups counts as a whole round.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amdflow.gpu.targets import PEAKS, target
from amdflow.kernels.code_object import Resources

VERSION = 1
"""Raise it when the same code object would be ranked otherwise."""
_LDS_BYTES_A_CYCLE, _CACHE_BYTES_A_CYCLE, _LATENCY = 128, 64, 700e-9
_UNITS: Mapping[str, tuple[int, float]] = {
    "gfx908": (120, 1.502),
    "gfx90a": (104, 1.7),
    "gfx942": (304, 2.1),
    "gfx950": (256, 2.4),
    "gfx1030": (80, 2.25),
    "gfx1100": (96, 2.5),
    "gfx1101": (60, 2.43),
    "gfx1102": (32, 2.655),
    "gfx1150": (16, 2.9),
    "gfx1151": (40, 2.9),
    "gfx1200": (32, 3.13),
    "gfx1201": (64, 2.97),
}
"""Compute units and GHz of the products whose peaks :mod:`amdflow.gpu.targets` has."""
_LABEL, _BRANCH = re.compile(r"^<(L\d+)>:"), re.compile(r"^\s*s_c?branch\w*\s+(L\d+)\b")
_MATRIX = re.compile(r"^\s*v_(?:smfmac|mfma|wmma|swmmac)_[a-z0-9]+_(\d+)x(\d+)x(\d+)")
_LDS = re.compile(r"^\s*ds_(?:read|write|load|store)(2?)(?:st64)?_(2addr_(?:stride64_)?)?[a-z]+(\d+)(?=[_\s])")
_GLOBAL = re.compile(r"^\s*(?:global|buffer|flat|scratch)_(load|store)_([a-z0-9_]+)")
_WORDS = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "ushort": 2, "sshort": 2, "short": 2, "ubyte": 1}


@dataclass(frozen=True)
class Mix:
    """What one wave does in one pass. Bytes are of one lane."""

    matrix_flop: float
    """Operations of its matrix instructions, all lanes together."""
    vector: int
    """Vector instructions beside those."""
    lds_bytes: int
    load_bytes: int
    store_bytes: int


def read_mix(disassembly: str) -> Mix:
    """The instructions in the loop that has the matrix instructions; of the whole kernel when no loop has any.

    ``disassembly`` is llvm-objdump's with ``--symbolize-operands``.
    """
    lines = disassembly.splitlines()
    labels = {match[1]: index for index, line in enumerate(lines) if (match := _LABEL.match(line))}
    spans = [
        (labels[match[1]], index)
        for index, line in enumerate(lines)
        if (match := _BRANCH.match(line)) and labels.get(match[1], index) < index
    ]
    busy = {at for first, last in spans for at in range(first, last) if _holds_matrix(lines[first:last])}
    return _count([lines[at] for at in sorted(busy)] if busy else lines)


def estimate(
    arch: str, resources: Resources, waves: int, launch: Mapping[str, Any], mix: Mix, sizes: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Seconds by part, and ``seconds`` in all; None for a kernel whose file does not say what work it does.

    ``waves`` are those on a SIMD; ``launch`` is the launch description with its ``work`` at ``sizes``.
    """
    work = launch.get("work")
    if not work:
        return None
    facts, peak, (units, ghz) = target(arch), PEAKS[arch], _UNITS[arch]
    lanes, cycles = resources.wavefront, units * ghz * 1e9
    matrix = mix.matrix_flop > 0 and peak.matrix > 0
    touched = max(1, mix.load_bytes + mix.store_bytes)
    passes = work["flop"] / mix.matrix_flop if matrix else work["bytes"] / (touched * lanes)
    issue = facts.simds_per_cu * (0.25 if facts.cdna else 1.0)
    in_flight = units * waves * facts.simds_per_cu * lanes * max(1, mix.load_bytes)
    memory = (
        work["bytes"] / (peak.memory * 1e9),
        passes * lanes * mix.load_bytes / (_CACHE_BYTES_A_CYCLE * cycles),
        work["bytes"] * _LATENCY / max(1, in_flight),
    )
    parts = {
        "matrix": work["flop"] / (peak.matrix * 1e12) if matrix else 0.0,
        "vector": passes * mix.vector / (issue * cycles),
        "lds": passes * lanes * mix.lds_bytes / (_LDS_BYTES_A_CYCLE * cycles),
        "memory": max(memory),
    }
    longest = max(parts, key=parts.__getitem__)
    rest = sum(parts.values()) - parts[longest]
    tail = last_round(workgroups(launch, sizes), units)
    return {"seconds": (parts[longest] + rest / max(1, waves)) * tail, "bound": longest, "tail": tail, **parts}


def last_round(groups: int | None, units: int) -> float:
    """How much longer the grid takes than one that comes out even: 1.0 when it does, or when it is not known."""
    return 1.0 if not groups else -(-groups // units) * units / groups


def workgroups(launch: Mapping[str, Any], sizes: Mapping[str, Any]) -> int | None:
    """The number of workgroups at ``sizes``; None when the grid's expressions say more than arithmetic on them."""
    values: dict[str, int] = {name: value for name, value in sizes.items() if isinstance(value, int)}
    for parameter in launch["parameters"]:
        for extent in parameter.get("shape", ()):
            if isinstance(extent, dict):
                name = str(extent["symbol"]).removesuffix(str(extent["times"]))  # n8 stands for n / 8
                if name in values and extent["symbol"] not in values:
                    values[extent["symbol"]] = values[name] // extent["times"]
    total = 1
    for expression in launch["grid"]:
        count = _arithmetic(ast.parse(expression, mode="eval").body, values)
        if count is None:
            return None
        total *= count
    return total


def _arithmetic(node: ast.expr, values: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return values.get(node.id)
    if isinstance(node, ast.BinOp):
        left, right = _arithmetic(node.left, values), _arithmetic(node.right, values)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add | ast.Sub):
            return left + right if isinstance(node.op, ast.Add) else left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
    return None


def _holds_matrix(lines: Sequence[str]) -> bool:
    return any(_MATRIX.match(line) for line in lines)


def _count(lines: Sequence[str]) -> Mix:
    flop, vector, lds = 0.0, 0, 0
    moved = {"load": 0, "store": 0}
    for line in lines:
        if match := _MATRIX.match(line):
            m, n, k = map(int, match.groups())
            flop += 2.0 * m * n * k
        elif match := _LDS.match(line):
            lds += int(match[3]) // 8 * (2 if match[1] or match[2] else 1)
        elif match := _GLOBAL.match(line):
            moved[match[1]] += _width(match[2])
        elif line.lstrip().startswith("v_"):
            vector += 1
    return Mix(flop, vector, lds, moved["load"], moved["store"])


def _width(name: str) -> int:
    words = name.split("_")
    for word in words:
        if word in _WORDS:
            return _WORDS[word]
        if re.fullmatch(r"[biu]\d+", word):
            return int(word[1:]) // 8
    return 4
