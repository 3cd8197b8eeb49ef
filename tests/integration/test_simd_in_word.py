"""SIMD-in-a-word intrinsics compute, part by part, what CUDA's do: every one of them against plain Python."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

from amdflow import process
from amdflow.content import shipped
from amdflow.migrate.compat import header
from amdflow.migrate.rules.catalogue import load_catalogue

CORNERS = (0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x80008000, 0x7FFF7FFF, 0x01FF8000, 0x00010080)
ROUNDS = 200
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    "gt": int.__gt__,
    "ge": int.__ge__,
    "lt": int.__lt__,
    "le": int.__le__,
}
NAMES = sorted(
    name.removeprefix("__")
    for name, stand_in in load_catalogue(shipped("migration").parent).supplement.stand_ins.items()
    if re.fullmatch(r"__v(?!i)\w+[24]", name) and stand_in.header == "simd_in_word.h"
)


def parts(word: int, width: int, *, sign: bool) -> list[int]:
    """The parts of a word, the lowest first."""
    found = [word >> (width * index) & ((1 << width) - 1) for index in range(32 // width)]
    return [part - (1 << width) if sign and part >> (width - 1) else part for part in found]


def held(value: int, width: int, *, sign: bool) -> int:
    """The value, no further than a part can hold."""
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if sign else (0, (1 << width) - 1)
    return min(max(value, low), high)


def expected(name: str, a: int, b: int) -> int:
    """What the CUDA manual says of ``__<name>``."""
    width, verb = 32 // int(name[-1]), name[1:-1]
    relation = re.fullmatch(r"(cmp|set)(eq|ne|gt|ge|lt|le)([su]?)", verb)
    sign = (
        relation.group(3) == "s"
        if relation
        else (verb.endswith("s") and not verb.endswith("us")) or verb in ("abs", "neg")
    )
    x, y = parts(a, width, sign=sign), parts(b, width, sign=sign)
    if verb.startswith("sad"):
        return sum(abs(p - q) for p, q in zip(x, y, strict=True)) & 0xFFFFFFFF
    values = [one(verb, relation, p, q, width) for p, q in zip(x, y, strict=True)]
    return sum((value & ((1 << width) - 1)) << (width * index) for index, value in enumerate(values))


def one(verb: str, relation: re.Match[str] | None, p: int, q: int, width: int) -> int:
    """The same for one pair of parts."""
    if relation:
        return RELATIONS[relation.group(2)](p, q) * (-1 if relation.group(1) == "cmp" else 1)
    saturated = {"ss": True, "us": False}.get(verb[-2:]) if len(verb) > 3 else None
    root = (
        verb
        if verb in ("abs", "neg", "add", "sub")
        else verb.removesuffix("ss").removesuffix("us")
        if saturated is not None
        else verb.rstrip("su")
    )
    value = {
        "abs": abs(p),
        "neg": -p,
        "add": p + q,
        "sub": p - q,
        "max": max(p, q),
        "min": min(p, q),
        "absdiff": abs(p - q),
        "avg": (p + q + 1) >> 1 if verb[-1] == "u" or p + q >= 0 else (p + q) >> 1,
        "hadd": (p + q) >> 1,
    }[root]
    return value if saturated is None else held(value, width, sign=saturated)


def test_every_function_is_exact(tmp_path: Path) -> None:
    assert len(NAMES) > 60
    chance = random.Random(11)
    code = ['#include "simd_in_word.h"', "#include <cstdio>", "int main() {", "  unsigned a, b, n;"]
    code += ['  while (std::scanf("%u %x %x", &n, &a, &b) == 3) switch (n) {']
    for number, name in enumerate(NAMES):
        given = "a" if re.match(r"vabs(ss)?[24]|vneg", name) else "a, b"
        code.append(f'    case {number}: std::printf("%x\\n", amdflow::{name}({given})); break;')
    (tmp_path / "simd.cpp").write_text("\n".join((*code, "  }", "}")))
    process.run(
        ["g++", "-std=c++14", "-O1", f"-I{header('simd_in_word.h').parent}", "simd.cpp", "-o", "simd"], cwd=tmp_path
    )
    asked = [
        (number, *(chance.choice(CORNERS) if chance.random() < 0.3 else chance.getrandbits(32) for _side in "ab"))
        for number in range(len(NAMES))
        for _round in range(ROUNDS)
    ]
    (tmp_path / "in.txt").write_text("\n".join(f"{number} {a:x} {b:x}" for number, a, b in asked))
    done = process.run(["sh", "-c", "./simd < in.txt"], cwd=tmp_path)
    for (number, a, b), answer in zip(asked, done.stdout.split(), strict=True):
        assert int(answer, 16) == expected(NAMES[number], a, b), (NAMES[number], hex(a), hex(b))
