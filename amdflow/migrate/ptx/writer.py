"""Reads and writes the operands of one asm statement in C++: in place where each is touched once, else through temporaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from amdflow.migrate.ptx.parser import (
    Address,
    Block,
    Both,
    Instruction,
    Negated,
    Number,
    Operand,
    Reference,
    Register,
    Sink,
)
from amdflow.migrate.ptx.statement import AsmOperand, AsmStatement, NotUnderstood
from amdflow.migrate.ptx.types import CONSTRAINTS, CPP, LIBRARY, STORED, WHOLE, convert

_PLAIN_EXPRESSION = re.compile(r"[\w.\[\]\s*&]+|[\w.\[\]\s*&]*(?:->[\w.\[\]\s]+)+")
CARRY = "ptx_carry"


class NeedsTemporaries(Exception):
    """The statement cannot be written in place."""


class Writer:
    """The state of one rewriting. ``in_place`` puts the program's own expressions where the registers stand."""

    def __init__(self, statement: AsmStatement, block: Block, *, in_place: bool, kernel: Callable[[], bool]) -> None:
        self.block, self.in_place, self._kernel = block, in_place, kernel
        self.operands = statement.operands
        self.carry_known = self.carry_pending = False
        self.instruction: Instruction | None = None
        self._reads: set[int] = set()
        self.used: set[int] = set()
        self._temporaries = 0

    def fail(self, reason: str) -> NotUnderstood:
        """The reason why the current instruction is not understood."""
        return NotUnderstood(self.instruction.text if self.instruction else "", reason)

    def temporary(self) -> str:
        """A fresh name. Raises NeedsTemporaries in place."""
        if self.in_place:
            raise NeedsTemporaries
        self._temporaries += 1
        return f"ptx_t{self._temporaries}"

    def in_kernel(self) -> bool:
        """Whether the statement stands directly in a kernel, where ``return`` ends the thread."""
        return self._kernel()

    def read(self, operand: Operand, want: str) -> str:
        """C++ text of the operand as PTX type ``want``."""
        if isinstance(operand, Number):
            return operand.text
        if isinstance(operand, Negated):
            return f"!{self.read(operand.operand, 'pred')}"
        if isinstance(operand, Register):
            have = self.block.registers[operand.name]
            if (have == "pred") != (want == "pred"):
                raise self.fail("a predicate in place of a number, or the reverse")
            return convert(operand.name, have, want)
        if isinstance(operand, Reference):
            return self._read_reference(operand, want)
        raise self.fail("an operand of this form")

    def _read_reference(self, reference: Reference, want: str) -> str:
        index, operand = self.find(reference)
        have = CONSTRAINTS[operand.letter] if operand.letter in CONSTRAINTS else self._tied(operand)
        if want == "pred":
            raise self.fail("an operand in place of a predicate")
        self.used.add(index)
        if have == "n" or not self.in_place:
            return convert(f"({operand.expression})" if have == "n" else f"ptx_{index}", have, want)
        if (index in self._reads or operand.output) and not _PLAIN_EXPRESSION.fullmatch(operand.expression):
            raise NeedsTemporaries
        if operand.output and "+" not in operand.constraint:
            raise NeedsTemporaries
        self._reads.add(index)
        if have == "u64":
            return (
                f"{LIBRARY}as<{STORED[want]}>({operand.expression})"
                if want in ("u64", "b64", "s64")
                else convert(operand.expression, have, want)
            )
        return convert(operand.expression, have, want)

    def find(self, reference: Reference) -> tuple[int, AsmOperand]:
        """Number and operand that ``%n`` or ``%[name]`` stands for."""
        for index, operand in enumerate(self.operands):
            if reference.key in (str(index), operand.name):
                return index, operand
        raise self.fail(f"there is no operand {reference.key}")

    def _tied(self, operand: AsmOperand) -> str:
        if operand.letter.isdigit() and int(operand.letter) < len(self.operands):
            return CONSTRAINTS.get(self.operands[int(operand.letter)].letter, "")
        raise self.fail(f'the constraint "{operand.constraint}"')

    def constant(self, operand: Operand) -> str:
        """An operand that must be known at compile time."""
        if isinstance(operand, Number) and not operand.real:
            return operand.text
        if isinstance(operand, Reference) and self.find(operand)[1].letter == "n":
            return f"({self.find(operand)[1].expression})"
        raise self.fail("a number that is not a constant")

    def address(self, operand: Operand) -> str:
        """C++ text of ``[base + offset]``, a pointer or a number."""
        if not isinstance(operand, Address):
            raise self.fail("an address without brackets")
        if isinstance(operand.base, Reference):
            index, found = self.find(operand.base)
            if found.letter not in ("l", "r"):
                raise self.fail(f'an address with the constraint "{found.constraint}"')
            self.used.add(index)
            text = found.expression if self.in_place else f"ptx_{index}"
            if self.in_place and (index in self._reads or found.output):
                raise NeedsTemporaries
            self._reads.add(index)
        elif isinstance(operand.base, Register):
            text = self.read(operand.base, "u64")
        else:
            raise self.fail("an address that is no register")
        if operand.offset is None or operand.offset == Number("0"):
            return text
        return f"{LIBRARY}at({text}, {self.constant(operand.offset)})"

    def write(self, operand: Operand, kind: str, value: str) -> str:
        """A C++ statement, without semicolon, that puts a value of PTX type ``kind`` there."""
        if isinstance(operand, Sink):
            return f"(void)({value})"
        if isinstance(operand, Register):
            have = self.block.registers[operand.name]
            if (have == "pred") != (kind == "pred"):
                raise self.fail("a predicate in place of a number, or the reverse")
            return f"{operand.name} = {self._fit(value, kind, have)}"
        if isinstance(operand, Reference):
            index, found = self.find(operand)
            if not found.output or kind == "pred":
                raise self.fail("a result where none can go")
            if self.in_place:
                return f"{LIBRARY}set({found.expression}, {value})"
            return f"ptx_{index} = {self._fit(value, kind, CONSTRAINTS.get(found.letter, ''))}"
        raise self.fail("a result of this form")

    def _fit(self, value: str, kind: str, have: str) -> str:
        if not have:
            raise self.fail("a register of an unknown type")
        if (kind in WHOLE and have in WHOLE) or CPP[kind] == STORED[have]:
            return value
        return f"{LIBRARY}as<{STORED[have]}>({value})"

    def both(self, operand: Operand) -> tuple[Operand, Operand]:
        """The two results of ``p|q``; a sink for the one that is not asked for."""
        return (operand.first, operand.second) if isinstance(operand, Both) else (operand, Sink())

    def carry(self, *, sets: bool, reads: bool) -> str:
        """The condition code. Raises NotUnderstood where it comes from another asm statement."""
        if reads and not self.carry_known:
            raise self.fail("it reads the carry of another asm statement")
        if self.in_place:
            raise NeedsTemporaries
        self.carry_known = True
        self.carry_pending = sets
        return CARRY


def declarations(writer: Writer, block: Block) -> Sequence[str]:
    """The temporaries of a statement: operands with their first values, registers, the carry."""
    lines = []
    for index, operand in enumerate(writer.operands):
        kind = CONSTRAINTS.get(operand.letter, "")
        if operand.letter.isdigit():
            kind = CONSTRAINTS.get(writer.operands[int(operand.letter)].letter, "")
        if kind == "n":
            continue
        if not kind:
            raise NotUnderstood("", f'the constraint "{operand.constraint}"')
        fresh = operand.output and "+" not in operand.constraint
        value = "0" if fresh else f"{LIBRARY}as<{STORED[kind]}>({operand.expression})"
        lines.append(f"{STORED[kind]} ptx_{index} = {value}")
    for index, operand in enumerate(writer.operands):
        if operand.letter.isdigit():
            lines.append(f"ptx_{operand.letter} = ptx_{index}")
    for name, kind in block.registers.items():
        if kind not in STORED:
            raise NotUnderstood(f".reg .{kind}", "a register of this type")
        lines.append(f"{STORED[kind]} {name} = {'false' if kind == 'pred' else '0'}")
    lines += [
        f"(void)ptx_{index}"
        for index, operand in enumerate(writer.operands)
        if not operand.output and operand.letter in CONSTRAINTS and operand.letter != "n" and index not in writer.used
    ]
    if writer.carry_known:
        lines.append(f"unsigned int {CARRY} = 0")
    return lines
