"""Rewritten PTX computes what PTX computes: every pure instruction, as the fix writes it, against plain Python."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from amdflow import process
from amdflow.migrate.compat import header
from amdflow.migrate.ptx.statement import asm_statements
from amdflow.migrate.ptx.translate import translate
from tests.integration.ptx.cases import Case, all_cases
from tests.integration.ptx.reference import FORMATS

TYPES = {"r": "int32_t", "l": "int64_t", "h": "int16_t", "f": "float", "d": "double"}
"""Signed variables, also where the instruction means numbers without a sign: PTX does not ask what C++ calls them."""
WIDTHS = {"r": 32, "l": 64, "h": 16, "f": 32, "d": 64}
CASES = list(all_cases())
ROUNDS = 60
CORNERS = {
    16: (0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFF),
    32: (0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x00FF8001),
    64: (0, 1, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF),
}
SMALL = (0, 1, 2, 7, 15, 16, 31, 32, 33, 48, 63, 64, 65, 127, 255, 256, 257, 0xFFFFFFFF, 0xFFFFFFFE)
REALS = {
    "f16": (0, 0x8000, 1, 0x03FF, 0x0400, 0x3C00, 0x3C01, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x5800, 0x3800),
    "bf16": (0, 0x8000, 1, 0x7F, 0x80, 0x3F80, 0x3F81, 0xBF80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x4F00),
    "f32": (0, 0x80000000, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F800001, 0xBF000000, 0x3FC00000, 0x40200000, 0x4F000000,
            0xCF000000, 0x4F7FFFFF, 0x5F000000, 0x5F800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x477FF000, 0x33000001),
    "f64": (0, 1 << 63, 1, 0x3FF0000000000000, 0x3FF8000000000000, 0xBFE0000000000000, 0x41E0000000000000, 0x43E0000000000000,
            0x43F0000000000000, 0x7FF0000000000000, 0x7FF8000000000000, 0x36A0000000000001, 0x47EFFFFFF0000000),
}  # fmt: skip


def inputs(case: Case, chance: random.Random) -> list[int]:
    """One set of inputs: corner values and random ones, mixed."""
    given = []
    for index, letter in enumerate(case.inputs):
        width = WIDTHS[letter]
        role = case.roles[index] if case.roles and set(case.roles) <= set("ws") else case.roles
        if role == "s":
            given.append(chance.choice(SMALL) if chance.random() < 0.7 else chance.randrange(40))
        elif role.removesuffix("x2") in REALS:
            given.append(real(role, chance))
        else:
            given.append(chance.choice(CORNERS[width]) if chance.random() < 0.4 else chance.getrandbits(width))
    return given


def real(kind: str, chance: random.Random) -> int:
    """Bits of a floating-point number; most of them near one another, so that sums do something."""
    if kind.endswith("x2"):
        return real(kind[:-2], chance) << FORMATS[kind[:-2]][3] | real(kind[:-2], chance)
    width = FORMATS[kind][3]
    if chance.random() < 0.35:
        return chance.choice(REALS[kind])
    if chance.random() < 0.5:
        return chance.getrandbits(width)
    fraction = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[kind]
    bias = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}[kind]
    return (
        chance.getrandbits(1) << (width - 1)
        | (bias + chance.randrange(-8, 9)) << fraction
        | chance.getrandbits(fraction)
    )


def function(number: int, case: Case) -> str:
    """C++ that reads the inputs, runs what the fix makes of the asm statement and prints the results."""
    count = len(case.results)
    outputs = ", ".join(f'"={letter}"(x{index})' for index, letter in enumerate(case.results))
    given = ", ".join(f'"{letter}"(x{count + index})' for index, letter in enumerate(case.inputs))
    (statement,) = asm_statements(f'asm("{case.text}" : {outputs} : {given});')
    lines = [f"  {TYPES[letter]} x{index} = 0;" for index, letter in enumerate(case.results)]
    lines += [
        f"  {TYPES[letter]} x{count + index} = get<{TYPES[letter]}>();" for index, letter in enumerate(case.inputs)
    ]
    lines += [f"  AMDFLOW_PTX(, {translate(statement).code});", *(f"  put(x{index});" for index in range(count))]
    return "\n".join((f"void case_{number}() {{", *lines, "}"))


PROGRAM = r"""
#include "ptx.h"
#include <cinttypes>
#include <cstdio>
#include <cstring>
template <typename T> T get() { uint64_t bits; if (std::scanf("%" SCNx64, &bits) != 1) bits = 0; T x; std::memcpy(&x, &bits, sizeof(T)); return x; }
template <typename T> void put(T x) { uint64_t bits = 0; std::memcpy(&bits, &x, sizeof(T)); std::printf("%" PRIx64 " ", bits); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ptx")
    functions = "\n".join(function(number, case) for number, case in enumerate(CASES))
    table = ", ".join(f"case_{number}" for number in range(len(CASES)))
    main = f'void (*cases[])() = {{{table}}};\nint main() {{ unsigned number; while (std::scanf("%u", &number) == 1) {{ cases[number](); std::puts(""); }} }}\n'
    (folder / "cases.cpp").write_text(f"{PROGRAM}{functions}\n{main}")
    argv = [
        "g++",
        "-std=c++17",
        "-O1",
        "-w",
        "-ffp-contract=off",
        f"-I{header('ptx.h').parent}",
        "cases.cpp",
        "-o",
        "cases",
    ]
    process.run(argv, cwd=folder)
    return folder / "cases"


def test_every_instruction_gives_what_ptx_says(program: Path, tmp_path: Path) -> None:
    chance = random.Random(3)
    asked = [(number, inputs(case, chance)) for number, case in enumerate(CASES) for _round in range(ROUNDS)]
    lines = [" ".join((str(number), *(f"{value:x}" for value in given))) for number, given in asked]
    (tmp_path / "in.txt").write_text("\n".join(lines))
    done = process.run(["sh", "-c", '"$1" < in.txt', "sh", str(program)], cwd=tmp_path)
    wrong: dict[str, str] = {}
    compared = 0
    for (number, given), answer in zip(asked, done.stdout.splitlines(), strict=True):
        case = CASES[number]
        got = [int(word, 16) for word in answer.split()]
        for value, wanted, letter in zip(got, case.compute(*given), case.results, strict=True):
            if wanted is None:
                continue
            compared += 1
            if value != wanted & ((1 << WIDTHS[letter]) - 1):
                shown = f"{[hex(one) for one in given]} gave {value:#x}, not {wanted & ((1 << WIDTHS[letter]) - 1):#x}"
                wrong.setdefault(case.text, shown)
    assert not wrong, "\n".join(f"{text}: {shown}" for text, shown in wrong.items())
    assert compared > ROUNDS * len(CASES) * 0.7


APPROXIMATE: dict[str, tuple[Callable[[float], float], float, tuple[float, float]]] = {
    "ex2.approx.f32": (lambda x: 2.0**x, 2.0**-22, (-126.0, 127.0)),
    "lg2.approx.f32": (math.log2, 2.0**-22, (0.001, 1e6)),
    "rcp.approx.f32": (lambda x: 1 / x, 2.0**-23, (1e-6, 1e6)),
    "rsqrt.approx.f32": (lambda x: x**-0.5, 2.0**-22.9, (1e-6, 1e6)),
    "sqrt.approx.f32": (math.sqrt, 2.0**-23, (1e-6, 1e6)),
    "sin.approx.f32": (math.sin, 2.0**-20.5, (-math.pi, math.pi)),
    "cos.approx.f32": (math.cos, 2.0**-20.5, (-math.pi, math.pi)),
    "tanh.approx.f32": (math.tanh, 2.0**-11, (-10.0, 10.0)),
}
"""The exact function, the error that PTX allows (relative; absolute for sine, cosine and logarithms near 0), and a range."""


def test_approximate_functions_keep_the_error_that_ptx_states(tmp_path: Path) -> None:
    functions, table = [], []
    for number, opcode in enumerate(APPROXIMATE):
        functions.append(function(number, Case(f"{opcode} %0, %1;", "f", "f", lambda _x: (None,))))
        table.append(f"case_{number}")
    main = f'int main() {{ void (*cases[])() = {{{", ".join(table)}}}; unsigned n; while (std::scanf("%u", &n) == 1) cases[n](); }}\n'
    (tmp_path / "near.cpp").write_text("\n".join((PROGRAM, *functions, main)))
    argv = ["g++", "-std=c++17", "-O1", "-w", f"-I{header('ptx.h').parent}", "near.cpp", "-o", "near"]
    process.run(argv, cwd=tmp_path)
    chance = random.Random(5)
    asked = [
        (opcode, number, struct.unpack("f", struct.pack("f", chance.uniform(*APPROXIMATE[opcode][2])))[0])
        for number, opcode in enumerate(APPROXIMATE)
        for _round in range(500)
    ]
    lines = (f"{number} {struct.unpack('I', struct.pack('f', x))[0]:x}" for _opcode, number, x in asked)
    (tmp_path / "in.txt").write_text("\n".join(lines))
    done = process.run(["sh", "-c", "./near < in.txt"], cwd=tmp_path)
    for (opcode, _number, x), word in zip(asked, done.stdout.split(), strict=True):
        exact, bound, _range = APPROXIMATE[opcode]
        got = struct.unpack("f", struct.pack("I", int(word, 16)))[0]
        assert abs(got - exact(x)) <= bound * max(abs(exact(x)), 1.0 if opcode[:3] in ("sin", "cos", "lg2") else 0), (
            opcode
        )
