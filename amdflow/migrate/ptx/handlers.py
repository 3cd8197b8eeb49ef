"""Instructions whose C++ depends on their operands: moves, comparisons, conversions, carries, shuffles, barriers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from amdflow.migrate.ptx.parser import Both, Number, Operand, Reference, SpecialRegister, Vector
from amdflow.migrate.ptx.table import OF_WARPS, SPECIAL_REGISTERS
from amdflow.migrate.ptx.types import CPP, LIBRARY, STORED, WHOLE, unsigned
from amdflow.migrate.ptx.writer import Writer

_ROUND_WHOLE = ("rni", "rzi", "rmi", "rpi")
_REALS = ("f16", "bf16", "f32", "f64")
_WIDTH = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_COMPARISONS = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"
_JOINTS = {"and": "&&", "or": "||", "xor": "!="}
_SAME = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def expect(writer: Writer, operands: Sequence[Operand], *counts: int) -> None:
    """Raise NotUnderstood unless there are so many operands."""
    if len(operands) not in counts:
        raise writer.fail("operands of this form")


def move(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``mov`` between registers, from a special register, from or to the parts of a register."""
    match = re.fullmatch(r"mov\.(\w+)", opcode)
    if match is None or match.group(1) not in STORED:
        raise writer.fail("a move of this type")
    expect(writer, operands, 2)
    kind, (target, source) = match.group(1), operands
    if isinstance(source, SpecialRegister):
        known, text, _remark = SPECIAL_REGISTERS[_known(writer, source)]
        if STORED.get(kind) not in (STORED[known], CPP[f"s{known[1:]}"]):
            text = f"({CPP[known]})({text})"
        return [writer.write(target, known, f"({CPP[known]})({text})" if ">>" in text or "ptx::" in text else text)]
    if isinstance(source, Vector):
        return [writer.write(target, _bits(writer, kind), _joined(writer, kind, source))]
    if isinstance(target, Vector):
        return _pieces(writer, kind, target, source)
    return [writer.write(target, kind, writer.read(source, kind))]


def _known(writer: Writer, register: SpecialRegister) -> str:
    if register.name not in SPECIAL_REGISTERS:
        raise writer.fail(f"the special register %{register.name}")
    return register.name


def _bits(writer: Writer, kind: str) -> str:
    if kind not in WHOLE or kind[1:] not in ("32", "64", "16"):
        raise writer.fail("a move of this type")
    return f"b{kind[1:]}"


def _part_type(writer: Writer, kind: str, parts: Vector) -> str:
    width = int(_bits(writer, kind)[1:]) // len(parts.parts)
    if len(parts.parts) not in (2, 4) or width not in (8, 16, 32):
        raise writer.fail("a vector of this length")
    return f"b{width}"


def _joined(writer: Writer, kind: str, parts: Vector) -> str:
    part = _part_type(writer, kind, parts)
    values = ", ".join(f"{LIBRARY}as<{CPP[part]}>({writer.read(one, part)})" for one in parts.parts)
    return f"{LIBRARY}join<{CPP[_bits(writer, kind)]}, {CPP[part]}>({values})"


def _pieces(writer: Writer, kind: str, parts: Vector, source: Operand) -> list[str]:
    part, whole = _part_type(writer, kind, parts), _bits(writer, kind)
    name = writer.temporary()
    return [
        f"const {CPP[whole]} {name} = {writer.read(source, whole)}",
        *(
            writer.write(one, part, f"{LIBRARY}piece<{CPP[part]}>({name}, {index})")
            for index, one in enumerate(parts.parts)
        ),
    ]


def special_remark(operands: Sequence[Operand]) -> str:
    """What a person should know of the special register that is read."""
    return next(
        (
            SPECIAL_REGISTERS[one.name][2]
            for one in operands
            if isinstance(one, SpecialRegister) and one.name in SPECIAL_REGISTERS
        ),
        "",
    )


def means_warps(operands: Sequence[Operand]) -> bool:
    """Whether a register that means a warp of 32 lanes is read."""
    return any(isinstance(one, SpecialRegister) and one.name in OF_WARPS for one in operands)


def compare(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``setp``, also with a second result and joined with a predicate; ``set`` to all ones or 1.0."""
    match = re.fullmatch(
        rf"(setp|set)\.({_COMPARISONS})(?:\.(and|or|xor))?(\.ftz)?(?:\.(u32|s32|f32|b32))?\.(\w+)", opcode
    )
    if match is None or match.group(6) not in CPP or (match.group(5) is not None) != (match.group(1) == "set"):
        raise writer.fail("a comparison of this kind")
    verb, relation, joint, flush, result, kind = match.groups()
    expect(writer, operands, 4 if joint else 3)
    function = f"{LIBRARY}is_{_SAME.get(relation, relation)}<{CPP[kind]}>"
    sides = [writer.read(operand, kind) for operand in operands[1:3]]
    if flush:
        sides = [f"{LIBRARY}detail::flush({side})" for side in sides]
    value = f"{function}({', '.join(sides)})"
    other = writer.read(operands[3], "pred") if joint else ""
    held = f"{value} {_JOINTS[joint]} {other}" if joint else value
    if verb == "set":
        yes, no = ("1.0f", "0.0f") if result == "f32" else ("~0u", "0u")
        return [writer.write(operands[0], result, f"(({held}) ? {yes} : {no})")]
    first, second = writer.both(operands[0])
    if not isinstance(operands[0], Both):
        return [writer.write(first, "pred", held)]
    name = writer.temporary()
    tail = f" {_JOINTS[joint]} {name}c" if joint else ""  # the results may overwrite it
    return [
        f"const bool {name} = {value}",
        *([f"const bool {name}c = {other}"] if joint else []),
        writer.write(first, "pred", f"{name}{tail}"),
        writer.write(second, "pred", f"!{name}{tail}"),
    ]


def convert(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``cvt``: between numbers, to a pair, packed with saturation."""
    pack = re.fullmatch(r"cvt\.pack\.sat\.(u8|s8|u16|s16)\.s32(\.b32)?", opcode)
    if pack:
        expect(writer, operands, 4 if pack.group(2) else 3)
        given = [writer.read(operand, "s32") for operand in operands[1:]]
        rest = given[2] if len(given) == 3 else "0u"
        return [
            writer.write(operands[0], "b32", f"{LIBRARY}cvt_pack<{CPP[pack.group(1)]}>({given[0]}, {given[1]}, {rest})")
        ]
    if opcode == "cvt.rna.tf32.f32":
        expect(writer, operands, 2)
        return [writer.write(operands[0], "b32", f"{LIBRARY}cvt_tf32({writer.read(operands[1], 'f32')})")]
    match = re.fullmatch(r"cvt((?:\.(?:rn|rz|rni|rzi|rmi|rpi|ftz|sat|relu))*)\.(\w+)\.(\w+)", opcode)
    if match is None:
        raise writer.fail("a conversion of this kind")
    words, to, source = match.group(1).split(".")[1:], match.group(2), match.group(3)
    if to in ("f16x2", "bf16x2") and source == "f32" and ("rn" in words or "rz" in words):
        expect(writer, operands, 3)
        mode = _modes(words)
        values = ", ".join(writer.read(operand, "f32") for operand in operands[1:])
        return [writer.write(operands[0], to, f"{LIBRARY}cvt_pair<{CPP[to]}{mode}>({values})")]
    expect(writer, operands, 2)
    _check_conversion(writer, to, source, words)
    read = "as" if source in _REALS else ""
    value = writer.read(operands[1], source)
    if not read and source in WHOLE:
        value = f"({CPP[source]})({value})"
    return [writer.write(operands[0], to, f"{LIBRARY}cvt<{CPP[to]}, {CPP[source]}{_modes(words)}>({value})")]


def _check_conversion(writer: Writer, to: str, source: str, words: Sequence[str]) -> None:
    """Only what the library does exactly as PTX."""
    rounding = [word for word in words if word in (*_ROUND_WHOLE, "rn", "rz")]
    wholes, reals = tuple(kind for kind in WHOLE if kind[0] in "us"), _REALS
    good = False
    if to in wholes and source in wholes:
        good = not rounding and "relu" not in words
    elif to in wholes and source in reals:
        good = len(rounding) == 1 and rounding[0] in _ROUND_WHOLE
    elif to in reals and source in wholes:
        good = rounding == ["rn"] and len(words) == 1
    elif to in reals and source in reals:
        wider = _WIDTH[to] > _WIDTH[source]
        same = to == source
        good = (
            not rounding
            if wider
            else (not rounding or rounding[0] in _ROUND_WHOLE)
            if same
            else len(rounding) == 1 and rounding[0] in ("rn", "rz")
        )
    if not good:
        raise writer.fail("a conversion with this rounding or type")


def _modes(words: Sequence[str]) -> str:
    kept = [word for word in words if word != "rn"]
    return "".join((", ", " | ".join(f"{LIBRARY}{word}" for word in kept))) if kept else ""


_CARRIES = re.compile(
    r"(?P<verb>add|sub|addc|subc|mad\.lo|mad\.hi|madc\.lo|madc\.hi)(?P<cc>\.cc)?\.(?P<kind>u32|s32|b32|u64|s64|b64)"
)


def carry(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``add.cc``, ``addc``, ``madc.hi.cc`` …: sums that hand a carry on."""
    match = _CARRIES.fullmatch(opcode)
    if match is None:
        raise writer.fail("an operation with carry of this type")
    verb, sets, kind = match.group("verb"), bool(match.group("cc")), match.group("kind")
    product = verb.startswith("mad")
    expect(writer, operands, 4 if product else 3)
    reads = verb.partition(".")[0].endswith("c")
    flag = writer.carry(sets=sets, reads=reads)
    whole = unsigned(kind)
    values = [writer.read(operand, kind) for operand in operands[1:]]
    if product:
        half = verb.partition(".")[2]
        first = f"({whole}){LIBRARY}mul_{half}<{CPP[kind]}>({values[0]}, {values[1]})"
        values = [first, values[2]]
        verb = "addc" if reads else "add"
    function = f"{LIBRARY}{verb}{'_cc' if sets else ''}<{whole}>"
    return [writer.write(operands[0], kind, f"{function}({values[0]}, {values[1]}, {flag})")]


def shuffle(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``shfl``, with or without the predicate."""
    match = re.fullmatch(r"shfl(\.sync)?\.(up|down|bfly|idx)\.b32", opcode)
    if match is None:
        raise writer.fail("a shuffle of this type")
    expect(writer, operands, 5 if match.group(1) else 4)
    value, lane, clamp = (
        writer.read(operand, kind) for operand, kind in zip(operands[1:4], ("b32", "b32", "b32"), strict=True)
    )
    call = f"{LIBRARY}shfl_{match.group(2)}({value}, {lane}, {clamp}"
    if not isinstance(operands[0], Both):
        return [writer.write(operands[0], "b32", f"{call})")]
    name = writer.temporary()
    return [
        f"bool {name} = false",
        writer.write(operands[0].first, "b32", f"{call}, {name})"),
        writer.write(operands[0].second, "pred", name),
    ]


def lane_and_predicate(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``match.all`` and ``elect``: a mask or lane, and a predicate."""
    match = re.fullmatch(r"match\.all\.sync\.(b32|b64)|elect\.sync", opcode)
    if match is None:
        raise writer.fail("a vote of this type")
    kind = match.group(1)
    expect(writer, operands, 3 if kind else 2)
    name = writer.temporary()
    first, second = writer.both(operands[0])
    given = [writer.read(operands[1], kind or "b32")] + ([writer.read(operands[2], "b32")] if kind else [])
    function = f"match_all<{CPP[kind]}>" if kind else "elect"
    call = f"{LIBRARY}{function}({', '.join(given)}, {name})"
    return [f"bool {name} = false", writer.write(first, "b32", call), writer.write(second, "pred", name)]


def barrier(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """Barrier 0 for the whole block. Named barriers and those of part of a block have no counterpart."""
    match = re.fullmatch(
        r"(?:bar|barrier)(?:\.cta)?\.(?:sync(?:\.aligned)?|red(?:\.aligned)?\.(popc|and|or)\.(u32|pred))", opcode
    )
    if match is None:
        raise writer.fail("a barrier of this kind")
    results = 1 if match.group(1) else 0
    if len(operands) != 1 + 2 * results or not _is_zero(writer, operands[results]):
        raise writer.fail("a named barrier or one for part of the block")
    if not results:
        return ["__syncthreads()"]
    word = {"popc": "count"}.get(match.group(1), match.group(1))
    call = f"{LIBRARY}barrier_{word}({writer.read(operands[2], 'pred')})"
    kind = match.group(2)
    return [writer.write(operands[0], kind, f"{call} != 0" if kind == "pred" else call)]


def _is_zero(writer: Writer, operand: Operand) -> bool:
    if isinstance(operand, Number):
        return operand.text == "0"
    return isinstance(operand, Reference) and writer.find(operand)[1].expression == "0"


def leave(writer: Writer, _opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``exit`` and ``ret`` where they stand in a kernel itself."""
    expect(writer, operands, 0)
    if not writer.in_kernel():
        raise writer.fail("it ends the thread from within a function")
    return ["return"]


_VIDEO = re.compile(
    r"v(?P<verb>add|sub|avrg|absdiff|min|max)(?P<lanes>[24])\.(?P<to>u32|s32)\.(?P<a>u32|s32)\.(?P<b>u32|s32)(?P<sat>\.sat)?(?P<add>\.add)?"
)


def video(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """Operations on the two halves or four bytes of a word."""
    match = _VIDEO.fullmatch(opcode)
    if match is None or (match.group("add") and (match.group("verb"), match.group("to")) != ("absdiff", "u32")):
        raise writer.fail("a video instruction of this kind")
    expect(writer, operands, 4)
    types = ", ".join(CPP[match.group(name)] for name in ("to", "a", "b"))
    flags = ", ".join(str(bool(match.group(name))).lower() for name in ("sat", "add"))
    given = ", ".join(writer.read(operand, "b32") for operand in operands[1:])
    width = 32 // int(match.group("lanes"))
    call = f"{LIBRARY}video<{width}, {types}, {flags}>({LIBRARY}video_{match.group('verb')}, {given})"
    return [writer.write(operands[0], "b32", call)]
