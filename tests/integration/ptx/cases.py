"""Instructions to try: how each is written, the constraints of its operands, and what it must give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tests.integration.ptx import reference as ptx

Compute = Callable[..., int | None]


@dataclass(frozen=True)
class Case:
    """``letters`` are the constraints: results, then inputs. ``compute`` gives one number for each result, or None for "any"."""

    text: str
    results: str
    inputs: str
    compute: Callable[..., tuple[int | None, ...]]
    roles: str = ""
    """For each input what values are of interest: ``w`` whole words, ``s`` small numbers, ``f`` floating point."""


def one(text: str, result: str, inputs: str, compute: Compute, roles: str = "") -> Case:
    """A case with one result."""
    return Case(text, result, inputs, lambda *given: (compute(*given),), roles)


def _operands(count: int) -> str:
    return ", ".join(f"%{index}" for index in range(count))


def _simple(opcode: str, result: str, inputs: str, compute: Compute, roles: str = "") -> Case:
    return one(f"{opcode} {_operands(len(inputs) + 1)};", result, inputs, compute, roles)


def all_cases() -> Iterator[Case]:
    """Every case."""
    yield from _bits()
    yield from _wholes()
    yield from _carries()
    yield from _videos()
    yield from _floats()
    yield from _conversions()
    yield from _statements()


def _letter(kind: str) -> str:
    return {"16": "h", "32": "r", "64": "l"}[kind[1:]]


def _bits() -> Iterator[Case]:
    for kind in ("u32", "s32", "u64", "s64"):
        x = _letter(kind)
        yield _simple(f"bfe.{kind}", x, f"{x}rr", lambda a, b, c, kind=kind: ptx.bfe(kind, a, b, c), "wss")
        yield _simple(f"bfind.{kind}", "r", x, lambda a, kind=kind: ptx.bfind(kind, a, shift=False))
        yield _simple(f"bfind.shiftamt.{kind}", "r", x, lambda a, kind=kind: ptx.bfind(kind, a, shift=True))
    for width in (32, 64):
        x = _letter(f"b{width}")
        yield _simple(
            f"bfi.b{width}", x, f"{x}{x}rr", lambda a, b, c, d, width=width: ptx.bfi(width, a, b, c, d), "wwss"
        )
        yield _simple(f"popc.b{width}", "r", x, lambda a: a.bit_count())
        yield _simple(f"clz.b{width}", "r", x, lambda a, width=width: width - a.bit_length())
        yield _simple(f"brev.b{width}", x, x, lambda a, width=width: int(f"{a:0{width}b}"[::-1], 2))
        yield _simple(f"cnot.b{width}", x, x, lambda a: int(a == 0))
    for mode in ("", *ptx.PRMT_ROWS):
        suffix = f".{mode}" if mode else ""
        yield _simple(f"prmt.b32{suffix}", "r", "rrr", lambda a, b, c, mode=mode: ptx.prmt(mode, a, b, c))
    for way in "lr":
        for mode in ("wrap", "clamp"):
            yield _simple(
                f"shf.{way}.{mode}.b32",
                "r",
                "rrr",
                lambda a, b, c, way=way, mode=mode: ptx.shf(way, mode, a, b, c),
                "wws",
            )
    for table in range(256):
        yield one(
            f"lop3.b32 %0, %1, %2, %3, {table:#x};", "r", "rrr", lambda a, b, c, table=table: ptx.lop3(table, a, b, c)
        )
    yield _simple("fns.b32", "r", "rrr", lambda a, b, c: ptx.fns(a, b & 31, c) if b < 32 else None, "wss")
    for kind in ("b16", "b32", "b64", "u32", "s16", "s32", "s64"):
        x = _letter(kind)
        if kind[0] == "b":
            yield _simple(f"shl.{kind}", x, f"{x}r", lambda a, b, kind=kind: ptx.shift("shl", kind, a, b), "ws")
        yield _simple(f"shr.{kind}", x, f"{x}r", lambda a, b, kind=kind: ptx.shift("shr", kind, a, b), "ws")


def _wholes() -> Iterator[Case]:
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        x, width = _letter(kind), int(kind[1:])

        def of(*given: int, kind: str = kind) -> list[int]:
            return [ptx.typed(value, kind) for value in given]

        yield _simple(f"mul.hi.{kind}", x, x * 2, lambda a, b, of=of, w=width: (of(a)[0] * of(b)[0]) >> w)
        yield _simple(f"mul.lo.{kind}", x, x * 2, lambda a, b: a * b)
        yield _simple(f"mad.lo.{kind}", x, x * 3, lambda a, b, c: a * b + c)
        yield _simple(f"mad.hi.{kind}", x, x * 3, lambda a, b, c, of=of, w=width: ((of(a)[0] * of(b)[0]) >> w) + c)
        yield _simple(f"sad.{kind}", x, x * 3, lambda a, b, c, of=of: c + abs(of(a)[0] - of(b)[0]))
        yield _simple(f"min.{kind}", x, x * 2, lambda a, b, of=of: min(of(a, b)))
        yield _simple(f"max.{kind}", x, x * 2, lambda a, b, of=of: max(of(a, b)))
        yield _simple(f"sub.{kind}", x, x * 2, lambda a, b: a - b)
        if width < 64:
            wide = _letter(f"u{width * 2}")
            yield _simple(f"mul.wide.{kind}", wide, x * 2, lambda a, b, of=of: of(a)[0] * of(b)[0])
            yield _simple(f"mad.wide.{kind}", wide, x * 2 + wide, lambda a, b, c, of=of: of(a)[0] * of(b)[0] + c)
    for kind in ("u32", "s32"):

        def low(value: int, kind: str = kind) -> int:
            return ptx.typed(value, f"{kind[0]}24")

        yield _simple(f"mul24.lo.{kind}", "r", "rr", lambda a, b, low=low: low(a) * low(b))
        yield _simple(f"mul24.hi.{kind}", "r", "rr", lambda a, b, low=low: (low(a) * low(b)) >> 16)
        yield _simple(f"mad24.lo.{kind}", "r", "rrr", lambda a, b, c, low=low: low(a) * low(b) + c)
        yield (
            _simple(f"slct.u32.{kind}", "r", "rrr", lambda a, b, c: a if c < 1 << 31 else b)
            if kind == "s32"
            else one("selp.b32 %0, %1, %2, 1;", "r", "rr", lambda a, b: a)
        )
    saturated = {"add": int.__add__, "sub": int.__sub__}
    for verb, operation in saturated.items():
        yield _simple(
            f"{verb}.sat.s32",
            "r",
            "rr",
            lambda a, b, operation=operation: min(
                max(operation(ptx.signed(a, 32), ptx.signed(b, 32)), -(1 << 31)), (1 << 31) - 1
            ),
        )


def _carries() -> Iterator[Case]:
    for width, x in ((32, "r"), (64, "l")):
        ones = (1 << width) - 1

        def split(total: int, width: int = width, ones: int = ones) -> tuple[int, ...]:
            return tuple(total >> (width * index) & ones for index in range(3))

        def joined(*parts: int, width: int = width) -> int:
            return sum(part << (width * index) for index, part in enumerate(parts))

        for verb, operation in (("add", int.__add__), ("sub", int.__sub__)):
            yield Case(
                f"{{ {verb}.cc.u{width} %0, %3, %6; {verb}c.cc.u{width} %1, %4, %7; {verb}c.u{width} %2, %5, %8; }}",
                x * 3,
                x * 6,
                lambda a, b, c, d, e, f, joined=joined, split=split, operation=operation: split(
                    operation(joined(a, b, c), joined(d, e, f))
                ),
            )
        yield Case(
            f"mad.lo.cc.u{width} %0, %2, %3, %4; madc.hi.u{width} %1, %2, %3, %5;",
            x * 2,
            x * 4,
            lambda a, b, c, d, joined=joined, split=split: split(a * b + joined(c, d))[:2],
        )
    yield Case(
        "mul.lo.u32 %0, %4, %6; mul.hi.u32 %1, %4, %6; mad.lo.cc.u32 %1, %4, %7, %1; madc.hi.u32 %2, %4, %7, 0;"
        "mad.lo.cc.u32 %1, %5, %6, %1; madc.hi.cc.u32 %2, %5, %6, %2; madc.hi.u32 %3, %5, %7, 0;"
        "mad.lo.cc.u32 %2, %5, %7, %2; addc.u32 %3, %3, 0;",
        "rrrr",
        "rrrr",
        lambda a, b, c, d: tuple(((b << 32 | a) * (d << 32 | c)) >> (32 * index) & 0xFFFFFFFF for index in range(4)),
    )


def _videos() -> Iterator[Case]:
    yield _simple("vshr.u32.u32.u32.clamp.add", "r", "rrr", lambda a, b, c: ptx.shift("shr", "u32", a, b) + c, "wsw")
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            yield _simple(f"dp4a.{a}.{b}", "r", "rrr", lambda x, y, z, a=a, b=b: ptx.dp4a(a, b, x, y, z))
            for first, half in ((0, "lo"), (2, "hi")):
                yield _simple(
                    f"dp2a.{half}.{a}.{b}",
                    "r",
                    "rrr",
                    lambda x, y, z, a=a, b=b, first=first: ptx.dp2a(first, a, b, x, y, z),
                )
    for verb in ("add", "sub", "avrg", "absdiff", "min", "max"):
        for count in (2, 4):
            for kinds in (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32")):
                for sat in (False, True):
                    for add in (False, True) if verb == "absdiff" and kinds[0] == "u32" else (False,):
                        opcode = f"v{verb}{count}.{'.'.join(kinds)}{'.sat' if sat else ''}{'.add' if add else ''}"
                        yield _simple(
                            opcode,
                            "r",
                            "rrr",
                            lambda x, y, z, verb=verb, count=count, kinds=kinds, sat=sat, add=add: ptx.video(
                                verb, count, kinds, x, y, z, sat=sat, add=add
                            ),
                        )


def _real(kind: str, operation: Callable[..., object], *given: int, ftz: bool = False, sat: bool = False) -> int | None:
    """A rounded operation on finite numbers; None where a special number takes part."""
    values = [ptx.decode(value, kind) for value in given]
    if any(isinstance(value, str) and value != "-0" for value in values):
        return None
    numbers = [ptx.number(value) for value in values]
    smallest = Fraction(2) ** ptx.FORMATS[kind][1]
    if ftz:
        numbers = [Fraction(0) if abs(number) < smallest else number for number in numbers]
    result = (
        Fraction(str(operation(*numbers))) if not isinstance(operation(*numbers), Fraction) else operation(*numbers)
    )
    assert isinstance(result, Fraction)
    if result == 0:
        return None
    if sat:
        result = min(max(result, Fraction(0)), Fraction(1))
    bits = ptx.encode(result, kind)
    decoded = ptx.decode(bits, kind)
    if ftz and not isinstance(decoded, str) and abs(decoded) < smallest:
        return None if result == 0 else bits & (1 << (ptx.FORMATS[kind][3] - 1))
    return bits


def _pairs(kind: str, operation: Callable[..., object], *given: int) -> int | None:
    width = ptx.FORMATS[kind][3]
    halves = [_real(kind, operation, *(value >> up & ((1 << width) - 1) for value in given)) for up in (0, width)]
    return None if None in halves else (halves[1] or 0) << width | (halves[0] or 0)


def _floats() -> Iterator[Case]:
    operations: dict[str, tuple[int, Callable[..., object]]] = {
        "add": (2, lambda a, b: a + b),
        "sub": (2, lambda a, b: a - b),
        "mul": (2, lambda a, b: a * b),
        "fma.rn": (3, lambda a, b, c: a * b + c),
    }
    for verb, (count, operation) in operations.items():
        for kind, letter in (("f32", "f"), ("f64", "d"), ("f16", "h"), ("bf16", "h")):
            yield _simple(
                f"{verb}.{kind}",
                letter,
                letter * count,
                lambda *given, kind=kind, operation=operation: _real(kind, operation, *given),
                kind,
            )
        for modes in (".ftz", ".sat", ".ftz.sat"):
            yield _simple(
                f"{verb}{modes}.f32",
                "f",
                "f" * count,
                lambda *given, operation=operation, modes=modes: _real(
                    "f32", operation, *given, ftz="ftz" in modes, sat="sat" in modes
                ),
                "f32",
            )
        yield _simple(
            f"{verb if verb[-1] == 'n' else verb + '.rn'}.f32x2",
            "l",
            "l" * count,
            lambda *given, operation=operation: _pairs("f32", operation, *given),
            "f32x2",
        )
        for kind in ("f16", "bf16"):
            yield _simple(
                f"{verb}.{kind}x2",
                "r",
                "r" * count,
                lambda *given, kind=kind, operation=operation: _pairs(kind, operation, *given),
                f"{kind}x2",
            )


def _conversions() -> Iterator[Case]:
    letters = {"f16": "h", "bf16": "h", "f32": "f", "f64": "d"}
    for source in ("f16", "f32", "f64"):
        for to in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
            for rounding in ("rni", "rzi", "rmi", "rpi"):
                letter = "l" if to.endswith("64") else "r"
                yield _simple(
                    f"cvt.{rounding}.{to}.{source}",
                    letter,
                    letters[source],
                    lambda a, source=source, to=to, rounding=rounding: ptx.to_whole(
                        ptx.decode(a, source), to, rounding, source
                    ),
                    source,
                )
    for to, source in (
        ("s8", "s32"),
        ("u8", "s32"),
        ("s16", "s32"),
        ("u16", "u32"),
        ("s32", "u32"),
        ("u32", "s64"),
        ("u64", "s32"),
        ("s32", "s64"),
    ):

        def clamped(a: int, to: str = to, source: str = source) -> int:
            width = int(to[1:])
            low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if to[0] == "s" else (0, (1 << width) - 1)
            return min(max(ptx.typed(a, source), low), high)

        result = "l" if to.endswith("64") else "r"
        yield _simple(f"cvt.sat.{to}.{source}", result, _letter(source), clamped)
    for to, source in (("s32", "s8"), ("u32", "u8"), ("s64", "s32"), ("u64", "u32"), ("u32", "u64")):
        result = "l" if to.endswith("64") else "r"
        yield _simple(
            f"cvt.{to}.{source}",
            result,
            "l" if source.endswith("64") else "r",
            lambda a, source=source: ptx.typed(a, source),
        )
    for to, source in (("f32", "s32"), ("f32", "u64"), ("f32", "s64"), ("f16", "s32"), ("f64", "u64"), ("f32", "u32")):
        yield _simple(
            f"cvt.rn.{to}.{source}",
            letters[to],
            _letter(source),
            lambda a, to=to, source=source: ptx.encode(Fraction(ptx.typed(a, source)), to),
        )
    for to, source, rounding in (
        ("f16", "f32", "rn"), ("f16", "f32", "rz"), ("bf16", "f32", "rn"), ("bf16", "f32", "rz"),
        ("f32", "f64", "rn"), ("f32", "f64", "rz"), ("f16", "f64", "rn"), ("f32", "f16", ""), ("f64", "f32", ""), ("f32", "bf16", ""),
    ):  # fmt: skip
        yield _simple(
            f"cvt.{rounding + '.' if rounding else ''}{to}.{source}",
            letters[to],
            letters[source],
            lambda a, to=to, source=source, rounding=rounding: _narrowed(a, to, source, rounding),
            source,
        )


def _narrowed(bits: int, to: str, source: str, rounding: str) -> int | None:
    value = ptx.decode(bits, source)
    if isinstance(value, str) and value != "-0":
        return None
    return ptx.encode(ptx.number(value), to, toward_zero=rounding == "rz", negative_zero=value == "-0")


def _statements() -> Iterator[Case]:
    """Scopes, predicates, several instructions."""
    yield one(
        "{ .reg .pred p, q; setp.lt.s32 p, %1, %2; setp.eq.and.u32 q, %1, %1, p; selp.b32 %0, %1, %2, q; }",
        "r", "rr", lambda a, b: min(a, b, key=lambda value: ptx.signed(value, 32)),
    )  # fmt: skip
    yield one(
        "{ .reg .pred p, q; setp.ge.u32 p|q, %1, %2; @p mov.u32 %0, %1; @q mov.u32 %0, %2; }",
        "r", "rr", lambda a, b: max(a, b),
    )  # fmt: skip
    yield one(
        "{ .reg .u32 t<2>; { .reg .u32 t0; add.u32 t0, %1, 1; mov.u32 t1, t0; } mov.u32 t0, 0; add.u32 %0, t1, t0; }",
        "r", "r", lambda a: a + 1,
    )  # fmt: skip
    yield one("mov.b64 %0, {%1, %2};", "l", "rr", lambda a, b: b << 32 | a)
    yield Case("mov.b64 {%0, %1}, %2;", "rr", "l", lambda a: (a & 0xFFFFFFFF, a >> 32))
    yield one("{ .reg .b16 a, b; mov.b32 {a, b}, %1; mov.b32 %0, {b, a}; }", "r", "r", lambda a: a >> 16 | a << 16)
    yield one("set.lt.u32.s32 %0, %1, %2;", "r", "rr", lambda a, b: -int(ptx.signed(a, 32) < ptx.signed(b, 32)))
    yield one("mov.b32 %0, %1;", "r", "f", lambda a: a)
    yield one("mov.f32 %0, 0f3F800000;", "f", "", lambda: 0x3F800000)
    yield one("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;", "r", "rrr", _packed)


def _packed(a: int, b: int, c: int) -> int:
    high, low = (min(max(ptx.signed(value, 32), -128), 127) & 0xFF for value in (a, b))
    return (c & 0xFFFF) << 16 | high << 8 | low
