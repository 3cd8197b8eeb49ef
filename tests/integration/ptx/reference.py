"""What PTX instructions compute, written down from their definition in plain Python: numbers in, numbers out, bits as ``int``."""

from __future__ import annotations

from fractions import Fraction
from math import floor


def signed(value: int, width: int) -> int:
    """The number that these bits mean in two's complement."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def typed(value: int, kind: str) -> int:
    """``u32``, ``s16`` …: the number in the low bits."""
    width = int(kind[1:])
    return signed(value, width) if kind[0] == "s" else value & ((1 << width) - 1)


def bfe(kind: str, a: int, b: int, c: int) -> int:
    msb = int(kind[1:]) - 1
    pos, length = b & 0xFF, c & 0xFF
    sbit = 0 if kind[0] == "u" or length == 0 else a >> min(pos + length - 1, msb) & 1
    return sum((a >> (pos + i) & 1 if i < length and pos + i <= msb else sbit) << i for i in range(msb + 1))


def bfi(width: int, a: int, b: int, c: int, d: int) -> int:
    pos, length, result = c & 0xFF, d & 0xFF, b
    for i in range(length):
        if pos + i < width:
            result = result & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return result


PRMT_ROWS = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


def prmt(mode: str, a: int, b: int, c: int) -> int:
    chosen = [c >> (4 * i) & 15 for i in range(4)] if not mode else [int(x) for x in reversed(PRMT_ROWS[mode][c & 3])]
    both = b << 32 | a
    result = 0
    for place, which in enumerate(chosen):
        byte = both >> (8 * (which & 7)) & 0xFF
        if which & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * place)
    return result


def shf(direction: str, mode: str, a: int, b: int, c: int) -> int:
    n = c & 31 if mode == "wrap" else min(c, 32)
    both = b << 32 | a
    return (both << n >> 32 if direction == "l" else both >> n) & 0xFFFFFFFF


def lop3(table: int, a: int, b: int, c: int) -> int:
    return sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


def bfind(kind: str, a: int, *, shift: bool) -> int:
    width, value = int(kind[1:]), typed(a, kind)
    bits = ~value if value < 0 else value
    if bits == 0:
        return 0xFFFFFFFF
    top = bits.bit_length() - 1
    return width - 1 - top if shift else top


def fns(mask: int, base: int, offset: int) -> int:
    offset = signed(offset, 32)
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    pos, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= pos < 32:
        if mask >> pos & 1:
            if count == 0:
                return pos
            count -= 1
        pos += step
    return 0xFFFFFFFF


def shift(opcode: str, kind: str, a: int, b: int) -> int:
    width = int(kind[1:])
    n = min(b, width)
    return a << n if opcode == "shl" else typed(a, kind if kind[0] == "s" else f"u{width}") >> n


def lanes(word: int, kind: str, count: int) -> list[int]:
    width = 32 // count
    return [typed(word >> (width * i), f"{kind[0]}{width}") for i in range(count)]


def dp4a(a_kind: str, b_kind: str, a: int, b: int, c: int) -> int:
    return c + sum(x * y for x, y in zip(lanes(a, a_kind, 4), lanes(b, b_kind, 4), strict=True))


def dp2a(first: int, a_kind: str, b_kind: str, a: int, b: int, c: int) -> int:
    return c + sum(x * y for x, y in zip(lanes(a, a_kind, 2), lanes(b, b_kind, 4)[first : first + 2], strict=True))


def video(verb: str, count: int, kinds: tuple[str, str, str], a: int, b: int, c: int, *, sat: bool, add: bool) -> int:
    to, a_kind, b_kind = kinds
    width = 32 // count
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if to[0] == "s" else (0, (1 << width) - 1)
    values = []
    for x, y in zip(lanes(a, a_kind, count), lanes(b, b_kind, count), strict=True):
        value = {
            "add": x + y,
            "sub": x - y,
            "avrg": (x + y + (1 if x + y >= 0 else 0)) >> 1,
            "absdiff": abs(x - y),
            "min": min(x, y),
            "max": max(x, y),
        }[verb]
        values.append(min(max(value, low), high) if sat else value)
    if add:
        return c + sum(values)
    return sum((value & ((1 << width) - 1)) << (width * i) for i, value in enumerate(values))


FORMATS = {
    "f16": (11, -14, 15, 16),
    "bf16": (8, -126, 127, 16),
    "f32": (24, -126, 127, 32),
    "f64": (53, -1022, 1023, 64),
}
"""Bits of precision, least and greatest exponent, width."""
INFINITY, NAN = "inf", "nan"
Value = Fraction | str
"""A finite number, or ``inf``, ``-inf``, ``nan``, ``-0``."""


def decode(bits: int, kind: str) -> Value:
    """The number that these bits mean."""
    precision, least, greatest, width = FORMATS[kind]
    fraction_bits = precision - 1
    bits &= (1 << width) - 1
    sign = -1 if bits >> (width - 1) else 1
    exponent = bits >> fraction_bits & ((1 << (width - precision)) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    if exponent == (1 << (width - precision)) - 1:
        return NAN if fraction else ("-inf" if sign < 0 else INFINITY)
    if exponent == 0:
        return (
            "-0" if fraction == 0 and sign < 0 else sign * Fraction(fraction) * Fraction(2) ** (least - fraction_bits)
        )
    return sign * (1 + Fraction(fraction, 1 << fraction_bits)) * Fraction(2) ** (exponent - greatest)


def number(value: Value) -> Fraction:
    """A finite number; zero for ``-0``."""
    return Fraction(0) if value == "-0" else Fraction(value)


def encode(value: Fraction, kind: str, *, toward_zero: bool = False, negative_zero: bool = False) -> int:
    """The nearest number of the format, ties to even; as bits."""
    precision, least, greatest, width = FORMATS[kind]
    sign = 1 << (width - 1) if value < 0 or (value == 0 and negative_zero) else 0
    size = abs(value)
    if size == 0:
        return sign
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    exponent = max(exponent, least)
    scaled = size / Fraction(2) ** (exponent - precision + 1)
    whole = floor(scaled)
    rest = scaled - whole
    if not toward_zero and (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)):
        whole += 1
    if whole >> precision:
        whole, exponent = whole >> 1, exponent + 1
    infinite = ((1 << (width - precision)) - 1) << (precision - 1)
    if exponent > greatest:
        return sign | (infinite - 1 if toward_zero else infinite)
    if whole >> (precision - 1) == 0:
        return sign | whole
    return sign | (exponent + greatest) << (precision - 1) | whole & ((1 << (precision - 1)) - 1)


def to_whole(value: Value, kind: str, rounding: str, source: str) -> int:
    """``cvt`` from a floating-point number to a whole one."""
    width = int(kind[1:])
    if value == NAN:
        return typed(1 << (width - 1), kind) if source == "f64" or width == 64 else 0
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    if value in (INFINITY, "-inf"):
        return high if value == INFINITY else low
    exact = number(value)
    down = floor(exact)
    if rounding == "rmi":
        whole = down
    elif rounding == "rpi":
        whole = -floor(-exact)
    elif rounding == "rzi":
        whole = down if exact >= 0 else -floor(-exact)
    else:
        whole = round(exact)
    return min(max(whole, low), high)
