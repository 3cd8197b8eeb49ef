"""Rounding-mode intrinsics round exactly: against rational arithmetic, from the smallest numbers to overflow."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from pathlib import Path

from amdflow import process
from amdflow.migrate.compat import header
from tests.integration.ptx.reference import FORMATS, decode, encode

MODES = ("rd", "ru", "rz")
OPERATIONS: dict[str, tuple[int, Callable[..., Fraction | None]]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b if b else None),
    "rcp": (1, lambda a: 1 / a if a else None),
    "sqrt": (1, lambda a: root(a) if a >= 0 else None),
    "maf": (3, lambda a, b, c: a * b + c),
}
ROUNDS = 400


def root(value: Fraction) -> Fraction:
    """A square root that is exact where it can be, and else between the same two numbers of any format as the true one."""
    scale = 1 << 3000
    whole = isqrt(int(value * scale * scale))
    exact = Fraction(whole, scale)
    return exact if exact * exact == value else exact + Fraction(1, 3 * scale)


def rounded(value: Fraction, kind: str, mode: str) -> int:
    """Bits of the number of the format next to the value in the direction."""
    away = mode == "ru" if value > 0 else mode == "rd"
    width = FORMATS[kind][3]
    bits = encode(value, kind, toward_zero=True)
    held = decode(bits, kind)
    exact = Fraction(0) if isinstance(held, str) else held
    return bits + 1 if away and exact != value else bits & ((1 << width) - 1)


def number(kind: str, chance: random.Random) -> int:
    """Bits of a finite number: anything at all, near one, tiny, or huge."""
    precision, _least, greatest, width = FORMATS[kind]
    fraction = precision - 1
    top = (1 << (width - precision)) - 1
    exponent = chance.choice((chance.randrange(top), greatest + chance.randrange(-3, 4), chance.randrange(3), top - 1))
    bits = chance.choice((chance.getrandbits(fraction), 0, (1 << fraction) - 1, 1))
    return chance.getrandbits(1) << (width - 1) | exponent << fraction | bits


def test_every_operation_rounds_as_asked(tmp_path: Path) -> None:
    names = [
        (letter, kind, operation, mode)
        for letter, kind in (("f", "f32"), ("d", "f64"))
        for operation in OPERATIONS
        for mode in MODES
        if (letter, operation) != ("d", "maf")
    ]
    lines = ['#include "directed_rounding.h"', "#include <cstdio>", "#include <cstring>", "#include <cstdint>"]
    lines.append(
        "template <typename F, typename B> F in(uint64_t bits) { B b = bits; F f; std::memcpy(&f, &b, sizeof f); return f; }"
    )
    lines.append(
        'template <typename B, typename F> void out(F f) { B b; std::memcpy(&b, &f, sizeof f); std::printf("%llx\\n", (unsigned long long)b); }'
    )
    lines.append("int main() { unsigned n; unsigned long long a, b, c;")
    lines.append('  while (std::scanf("%u %llx %llx %llx", &n, &a, &b, &c) == 4) switch (n) {')
    for index, (letter, _kind, operation, mode) in enumerate(names):
        types = ("float", "uint32_t") if letter == "f" else ("double", "uint64_t")
        name = f"fmaf_{mode}" if operation == "maf" else f"{letter}{operation}_{mode}"
        given = ", ".join(f"in<{types[0]}, {types[1]}>({word})" for word in "abc"[: OPERATIONS[operation][0]])
        lines.append(f"    case {index}: out<{types[1]}>(amdflow::{name}({given})); break;")
    (tmp_path / "directed.cpp").write_text("\n".join((*lines, "  }", "}")))
    folder = header("directed_rounding.h").parent
    argv = ["g++", "-std=c++14", "-O1", "-w", "-ffp-contract=off", f"-I{folder}", "directed.cpp", "-o", "directed"]
    process.run(argv, cwd=tmp_path)
    chance = random.Random(7)
    asked = [
        (index, [number(kind, chance) for _operand in "abc"])
        for index, (_letter, kind, _operation, _mode) in enumerate(names)
        for _round in range(ROUNDS)
    ]
    (tmp_path / "in.txt").write_text("\n".join(f"{index} {a:x} {b:x} {c:x}" for index, (a, b, c) in asked))
    process.run(["sh", "-c", "./directed < in.txt > out.txt"], cwd=tmp_path)
    compared = 0
    for (index, bits), answer in zip(asked, (tmp_path / "out.txt").read_text().split(), strict=True):
        _letter, kind, operation, mode = names[index]
        count, compute = OPERATIONS[operation]
        values = [Fraction(0) if isinstance(held := decode(word, kind), str) else held for word in bits[:count]]
        exact = compute(*values)
        if not exact:
            continue
        compared += 1
        assert int(answer, 16) == rounded(exact, kind, mode), (
            operation,
            mode,
            kind,
            [hex(word) for word in bits[:count]],
        )
    assert compared > len(asked) * 0.6
