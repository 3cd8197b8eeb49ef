"""PTX types in C++, and the text of values on their way from one type to another."""

from __future__ import annotations

LIBRARY = "amdflow::ptx::"
WHOLE = {
    "u8": "unsigned char",
    "b8": "unsigned char",
    "s8": "signed char",
    "u16": "unsigned short",
    "b16": "unsigned short",
    "s16": "short",
    "u32": "unsigned int",
    "b32": "unsigned int",
    "s32": "int",
    "u64": "unsigned long long",
    "b64": "unsigned long long",
    "s64": "long long",
}
CPP = WHOLE | {
    "f32": "float",
    "f64": "double",
    "f16": "_Float16",
    "f16x2": f"{LIBRARY}f16x2",
    "bf16": f"{LIBRARY}bf16",
    "bf16x2": f"{LIBRARY}bf16x2",
    "f32x2": f"{LIBRARY}f32x2",
    "pred": "bool",
}
"""C++ type that an instruction of this type works on."""
STORED = WHOLE | {
    "f32": "float",
    "f64": "double",
    "f16": "unsigned short",
    "bf16": "unsigned short",
    "f16x2": "unsigned int",
    "bf16x2": "unsigned int",
    "f32x2": "unsigned long long",
    "pred": "bool",
}
"""C++ type of a register declared with this type, and of a value in memory."""
CONSTRAINTS = {"r": "u32", "l": "u64", "h": "u16", "f": "f32", "d": "f64", "n": "n"}
"""PTX type of an operand of the asm statement; ``n`` is a constant."""


def unsigned(kind: str) -> str:
    """The C++ type without a sign, of the same width."""
    return CPP[f"u{kind[1:]}"] if kind in WHOLE else CPP[kind]


def doubled(kind: str) -> str:
    """``u32`` for ``u16`` and so on."""
    return f"{kind[0]}{int(kind[1:]) * 2}"


def convert(text: str, have: str, want: str) -> str:
    """C++ text of a value in a register of PTX type ``have`` read as ``want``: whole numbers by value, all else by its bits."""
    if have == "n" or (want in WHOLE and have in WHOLE) or CPP[want] == STORED[have]:
        return text
    return f"{LIBRARY}as<{CPP[want]}>({text})"
