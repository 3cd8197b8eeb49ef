"""From an asm statement to the C++ that means the same, or the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amdflow.migrate.ptx import handlers, memory
from amdflow.migrate.ptx.parser import Block, Instruction, Operand, parse
from amdflow.migrate.ptx.statement import AsmStatement, NotUnderstood
from amdflow.migrate.ptx.table import CLOCK, COPY, ROWS, Row
from amdflow.migrate.ptx.types import CPP, LIBRARY, doubled
from amdflow.migrate.ptx.writer import NeedsTemporaries, Writer, declarations

Handler = Callable[[Writer, str, Sequence[Operand]], list[str]]


@dataclass(frozen=True)
class Family:
    """Instructions that a handler writes; ``about`` is for the reference page."""

    pattern: str
    handler: Handler
    about: str
    remark: str = ""
    warp: bool = False
    touches_memory: bool = False


FAMILIES = (
    Family(r"mov\..*", handlers.move, "moves; special registers; the parts of a register joined or taken apart"),
    Family(r"setp?\..*", handlers.compare, "comparisons of numbers"),
    Family(r"cvt\..*", handlers.convert, "conversions, with clamping and NaN as in PTX"),
    Family(
        r"(?:addc|subc|madc)\..*|(?:add|sub|mad\.lo|mad\.hi)\.cc\..*",
        handlers.carry,
        "carry chains within one statement",
    ),
    Family(r"shfl\..*", handlers.shuffle, "reads another lane of the logical warp", warp=True),
    Family(r"match\.all\..*|elect\..*", handlers.lane_and_predicate, "votes with a predicate", warp=True),
    Family(r"(?:bar|barrier)\.(?!warp|cluster).*", handlers.barrier, "`__syncthreads()` and kin for barrier 0"),
    Family(r"exit|ret", handlers.leave, "`return`, in a kernel"),
    Family(r"v(?:add|sub|avrg|absdiff|min|max)[24]\..*", handlers.video, "lanes of a word"),
    Family(r"ld\..*", memory.load, "loads; hints dropped, order and scope kept", touches_memory=True),
    Family(r"st\..*", memory.store, "stores likewise", touches_memory=True),
    Family(r"(?:atom|red)\..*", memory.atomic, "`__hip_atomic_*` with order and scope", touches_memory=True),
    Family(r"fence\..*", memory.fence, "`__builtin_amdgcn_fence` with order and scope"),
    Family(
        r"cp\.async\.c[ag]\..*", memory.copy, "a plain copy; zeros from the given size on", COPY, touches_memory=True
    ),
    Family(r"cp\.async\.wait_group", memory.wait, "the copies are done already"),
    Family(r"prefetchu?\..*", memory.prefetch, "`__builtin_prefetch`, which targets may ignore"),
    Family(r"createpolicy\..*", memory.policy, "0: it is only a cache hint"),
    Family(r"applypriority\..*|discard\..*", memory.hint, "nothing: it is only a cache hint"),
)
UNKNOWN = "no equivalent is known"
_MODES = {"ftz": "ftz", "sat": "sat", "relu": "relu", "NaN": "nan"}


@dataclass(frozen=True)
class Rewritten:
    """C++ that means what the PTX means: a statement without its semicolon, and what a person should know."""

    code: str
    remarks: tuple[str, ...] = ()


def translate(
    statement: AsmStatement, *, native_warp: bool = False, in_kernel: Callable[[], bool] = lambda: False
) -> Rewritten:
    """Raises NotUnderstood naming the first instruction that has no known equivalent."""
    if statement.problem:
        raise NotUnderstood("", statement.problem)
    block = parse(statement.template)
    if not block.instructions:
        raise NotUnderstood("", "it holds no instruction")
    plain = len(block.instructions) == 1 and not block.registers and block.instructions[0].guard is None
    if plain:
        try:
            return _write(statement, block, in_place=True, native_warp=native_warp, in_kernel=in_kernel)
        except NeedsTemporaries:
            pass
    return _write(statement, block, in_place=False, native_warp=native_warp, in_kernel=in_kernel)


def _write(
    statement: AsmStatement, block: Block, *, in_place: bool, native_warp: bool, in_kernel: Callable[[], bool]
) -> Rewritten:
    writer = Writer(statement, block, in_place=in_place, kernel=in_kernel)
    lines: list[str] = []
    remarks: dict[str, None] = {}
    touches = False
    for instruction in block.instructions:
        writer.instruction = instruction
        code, remark, memory_too = _instruction(writer, instruction, native_warp=native_warp)
        touches |= memory_too or remark == CLOCK
        if remark:
            remarks[remark] = None
        if instruction.guard is not None:
            lines.append(f"if ({writer.read(instruction.guard, 'pred')}) {{ {'; '.join(code)}; }}")
        else:
            lines += [f"{line};" for line in code]
    if writer.carry_pending:
        raise NotUnderstood(block.instructions[-1].text, "it leaves its carry to another asm statement")
    guarded = statement.clobbers_memory and touches
    if in_place and len(lines) == 1 and not guarded:
        return Rewritten(lines[0].rstrip(";"), tuple(remarks))
    wall = [f"{LIBRARY}compiler_barrier();"] if guarded else []
    before = [] if in_place else [f"{line};" for line in declarations(writer, block)]
    after = [
        f"{LIBRARY}set({operand.expression}, ptx_{index});"
        for index, operand in enumerate(writer.operands)
        if operand.output and not in_place
    ]
    body = " ".join((*before, *wall, *lines, *wall, *after))
    return Rewritten(f"do {{ {body} }} while (0)", tuple(remarks))


def _instruction(writer: Writer, instruction: Instruction, *, native_warp: bool) -> tuple[list[str], str, bool]:
    opcode, operands = instruction.opcode, instruction.operands
    for row in ROWS:
        match = row.regex.fullmatch(opcode)
        if match:
            _check_warp(writer, row.warp, native_warp=native_warp)
            return [_from_row(writer, row, match, operands)], row.remark, False
    for family in FAMILIES:
        if re.fullmatch(family.pattern, opcode):
            of_warps = family.warp or handlers.means_warps(operands)
            _check_warp(writer, of_warps, native_warp=native_warp)
            remark = family.remark or handlers.special_remark(operands)
            return family.handler(writer, opcode, operands), remark, family.touches_memory
    raise writer.fail(UNKNOWN)


def _check_warp(writer: Writer, of_warps: bool, *, native_warp: bool) -> None:
    if of_warps and native_warp:
        raise writer.fail("it means a warp of 32 lanes, which --native-warp leaves to you")


def _from_row(writer: Writer, row: Row, match: re.Match[str], operands: Sequence[Operand]) -> str:
    chosen = {name: value for name, value in match.groupdict().items() if value is not None}
    kind = chosen.get("t", "b32")

    def settle(word: str) -> str:
        return kind if word == "t" else doubled(kind) if word == "wt" else chosen["c"] if word == "c" else word

    inputs = [settle(word) for word in row.inputs.split()]
    results = 1 if row.result else 0
    handlers.expect(writer, operands, len(inputs) + results)
    values = [writer.read(operand, wanted) for operand, wanted in zip(operands[results:], inputs, strict=True)]
    modes = " | ".join(f"{LIBRARY}{_MODES[name]}" for name in _MODES if name in chosen)
    call = row.call.replace("@", LIBRARY).format(
        *values,
        **chosen,
        T=CPP[kind],
        C=CPP.get(chosen.get("c", ""), ""),
        M=f", {modes}" if modes else "",
    )
    return writer.write(operands[0], settle(row.result), call) if results else call
