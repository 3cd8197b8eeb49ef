"""PTX across lanes, rewritten, gives what PTX says in every lane: run in the lockstep simulator for waves of 32 and 64."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from amdflow import process
from amdflow.migrate.compat import header, with_dependencies
from amdflow.migrate.ptx.statement import asm_statements
from amdflow.migrate.ptx.translate import translate

SIMULATOR = Path(__file__).parent / "wave_simulator"
THREADS = 96
WARP = 32
Compute = Callable[[list[int], int, int, int], tuple[int, int]]
"""From the values of a warp, the own lane and the operands b and c: the two results."""


def shfl(mode: str) -> Compute:
    """shfl.sync as the PTX manual spells it."""

    def lane_of(values: list[int], lane: int, b: int, c: int) -> tuple[int, int]:
        segment, clamp = c >> 8 & 31, c & 31
        most, least = (lane & segment) | (clamp & ~segment & 31), lane & segment
        step = b & 31
        source, good = {
            "up": (lane - step, lane - step >= most),
            "down": (lane + step, lane + step <= most),
            "bfly": (lane ^ step, lane ^ step <= most),
            "idx": (least | (step & ~segment & 31), (least | (step & ~segment & 31)) <= most),
        }[mode]
        source = source if good else lane
        return values[source & 31], int(good)

    return lane_of


def ballot(values: list[int]) -> int:
    """One bit for each odd value."""
    return sum((value & 1) << lane for lane, value in enumerate(values))


TEXTS: dict[str, tuple[str, Compute]] = {
    **{
        mode: (
            f"{{ .reg .pred p; shfl.sync.{mode}.b32 %0|p, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, p; }}",
            shfl(mode),
        )
        for mode in ("up", "down", "bfly", "idx")
    },
    "vote": (
        (
            "{ .reg .pred p, q; .reg .b32 t; and.b32 t, %2, 1; setp.ne.u32 p, t, 0; vote.sync.ballot.b32 %0, p, 0xffffffff;"
            " vote.sync.any.pred q, !p, 0xffffffff; selp.u32 %1, 1, 0, q; }"
        ),
        lambda values, _lane, _b, _c: (ballot(values), int(ballot(values) != 0xFFFFFFFF)),
    ),
    "match": (
        "{ .reg .b32 t; and.b32 t, %2, 3; match.any.sync.b32 %0, t, 0xffffffff; redux.sync.add.u32 %1, %2, 0xffffffff; }",
        lambda values, lane, _b, _c: (
            sum(1 << other for other, value in enumerate(values) if value & 3 == values[lane] & 3),
            sum(values) & 0xFFFFFFFF,
        ),
    ),
    "signed": (
        "{ redux.sync.min.s32 %0, %2, 0xffffffff; redux.sync.max.u32 %1, %2, 0xffffffff; }",
        lambda values, _lane, _b, _c: (min(values, key=lambda value: (value < 1 << 31, value)), max(values)),
    ),
    "elect": (
        "{ .reg .pred p; elect.sync %0|p, 0xfffffff0; selp.u32 %1, 1, 0, p; }",
        lambda _values, lane, _b, _c: (4, int(lane == 4)),
    ),
    "registers": (
        "{ .reg .u32 a; mov.u32 a, %%laneid; mov.u32 %0, %%lanemask_le; mov.u32 %1, %%warpid; shl.b32 %1, %1, 8; or.b32 %1, %1, a; }",
        lambda _values, lane, _b, _c: ((2 << lane) - 1 & 0xFFFFFFFF, lane),
    ),
}


def program() -> str:
    """Each statement in a function of its own; every thread prints both results, ordered by thread."""
    lines = [
        '#include "ptx_bits.h"',
        '#include "ptx_compare.h"',
        '#include "ptx_integers.h"',
        '#include "ptx_shuffle.h"',
    ]
    lines += ["using Bits = unsigned int;", "#include <cstdio>"]
    for number, (text, _compute) in enumerate(TEXTS.values()):
        (statement,) = asm_statements(f'asm("{text}" : "=r"(r), "=r"(s) : "r"(v), "r"(b), "r"(c));')
        code = translate(statement).code
        lines.append(f"void case_{number}(Bits& r, Bits& s, Bits v, Bits b, Bits c) {{ {code}; }}")
    table = ", ".join(f"case_{number}" for number in range(len(TEXTS)))
    lines.append(f"void (*cases[])(Bits&, Bits&, Bits, Bits, Bits) = {{{table}}};")
    lines.append(
        f"""int main() {{
  unsigned wave, number, seed; Bits b, c;
  while (std::scanf("%u %u %u %x %x", &wave, &number, &seed, &b, &c) == 5) {{
    Bits r[{THREADS}], s[{THREADS}];
    simulator::launch(wave, {{1, 1, 1}}, {{{THREADS}, 1, 1}}, [&] {{
      cases[number](r[threadIdx.x], s[threadIdx.x], (threadIdx.x + seed) * 2654435761u, b, c);
    }});
    for (int i = 0; i < {THREADS}; ++i) std::printf("%x %x ", r[i], s[i]);
    std::puts("");
  }}
}}"""
    )
    return "\n".join(lines)


@pytest.mark.parametrize("wave", [32, 64])
def test_every_lane_gets_what_ptx_says(tmp_path: Path, wave: int) -> None:
    for name in with_dependencies({"ptx_shuffle.h", "ptx_compare.h", "ptx_bits.h", "ptx_integers.h"}):
        shutil.copy(header(name), tmp_path)
    shutil.copy(SIMULATOR / "wave_primitives.h", tmp_path)
    (tmp_path / "lanes.cpp").write_text(program())
    argv = ["g++", "-std=c++17", "-O0", "-w", f"-I{tmp_path}", f"-I{SIMULATOR}", "lanes.cpp", "-o", "lanes"]
    process.run(argv, cwd=tmp_path)
    chance = random.Random(wave)
    widths = [0x1F, 0, *((WARP - width) << 8 | last for width in (2, 4, 8, 16, 32) for last in (0x1F, 0))]
    asked = [
        (number, chance.randrange(1000), chance.randrange(40), chance.choice(widths))
        for number in range(len(TEXTS))
        for _round in range(25)
    ]
    (tmp_path / "in.txt").write_text("\n".join(f"{wave} {number} {seed} {b:x} {c:x}" for number, seed, b, c in asked))
    process.run(["sh", "-c", "./lanes < in.txt > out.txt"], cwd=tmp_path)
    for (number, seed, b, c), line in zip(asked, (tmp_path / "out.txt").read_text().splitlines(), strict=True):
        got = [int(word, 16) for word in line.split()]
        name, (_text, compute) = list(TEXTS.items())[number]
        for thread in range(THREADS):
            first = thread // WARP * WARP
            values = [(first + lane + seed) * 2654435761 & 0xFFFFFFFF for lane in range(WARP)]
            wanted = compute(values, thread % WARP, b, c)
            if name == "registers":
                wanted = (wanted[0], thread // WARP << 8 | wanted[1])
            assert (got[2 * thread], got[2 * thread + 1]) == wanted, (name, thread, b, hex(c))
