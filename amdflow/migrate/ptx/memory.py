"""Loads, stores, atomics, fences and copies: opcodes with many modifiers in any order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from amdflow.migrate.ptx.parser import Number, Operand, Reference, Register, Vector
from amdflow.migrate.ptx.types import CPP, LIBRARY, STORED
from amdflow.migrate.ptx.writer import Writer

_ORDERS = {
    "relaxed": "__ATOMIC_RELAXED",
    "acquire": "__ATOMIC_ACQUIRE",
    "release": "__ATOMIC_RELEASE",
    "acq_rel": "__ATOMIC_ACQ_REL",
    "sc": "__ATOMIC_SEQ_CST",
}
_SCOPES = {
    "cta": "__HIP_MEMORY_SCOPE_WORKGROUP",
    "cluster": "__HIP_MEMORY_SCOPE_AGENT",
    "gpu": "__HIP_MEMORY_SCOPE_AGENT",
    "sys": "__HIP_MEMORY_SCOPE_SYSTEM",
}
_SPACES = {"global": "", "shared": f"{LIBRARY}shared", "shared::cta": f"{LIBRARY}shared"}
_HINT = re.compile(r"L1::(?:evict_\w+|no_allocate)|L2::(?:evict_\w+|64B|128B|256B|cache_hint)|evict_\w+")
_CACHING = {"ca", "cg", "cs", "lu", "cv", "nc", "wb", "wt"}
_STREAMING = {"cs", "lu", "L1::no_allocate", "L1::evict_first", "L2::evict_first"}
_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_ATOMIC_TYPES = {
    "add": ("u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64", "u32", "s32", "u64", "s64"),
    "cas": ("b32", "b64", "u32", "s32", "u64", "s64"),
    "inc": ("u32",),
    "dec": ("u32",),
}


class Access:
    """The modifiers of one opcode, sorted by what they say."""

    def __init__(self, writer: Writer, opcode: str) -> None:
        words = re.findall(r"\.((?:\w+::)?\w+)", opcode)
        self.order = self.scope = self.operation = self.space = ""
        self.spaced = self.volatile = False
        self.count = 1
        self.hints: set[str] = set()
        if not words or words[-1] not in STORED or words[-1] == "pred":
            raise writer.fail("a memory access of this type")
        self.kind = words[-1]
        for word in words[:-1]:
            self._take(writer, word)

    def _take(self, writer: Writer, word: str) -> None:
        if word in _ORDERS:
            self.order = _ORDERS[word]
        elif word in _SCOPES:
            self.scope = _SCOPES[word]
        elif word in _SPACES:
            self.space, self.spaced = _SPACES[word], True
        elif word == "volatile":
            self.volatile = True
        elif word in ("v2", "v4"):
            self.count = int(word[1])
        elif word in _OPERATIONS and not self.operation:
            self.operation = word
        elif word in _CACHING or _HINT.fullmatch(word):
            self.hints.add(word)
        elif word not in ("weak", "noftz"):
            raise writer.fail(f"the modifier .{word}")

    @property
    def type(self) -> str:
        """C++ type of the whole access."""
        scalar = STORED[self.kind]
        return scalar if self.count == 1 else f"{LIBRARY}vec<{scalar}, {self.count}>"

    def ordering(self) -> tuple[str, str] | None:
        """Order and scope, where others can observe more than a plain access."""
        if self.order:
            return self.order, self.scope or _SCOPES["gpu"]
        if self.volatile or "cv" in self.hints or "wt" in self.hints:
            return _ORDERS["relaxed"], _SCOPES["sys"]
        if "cg" in self.hints:
            return _ORDERS["relaxed"], _SCOPES["gpu"]
        return None

    def function(self, verb: str) -> str:
        """Name and template arguments of the library's function."""
        ordering = self.ordering()
        space = f", {self.space}" if self.space else ""
        if ordering:
            return f"{LIBRARY}{verb}_ordered<{self.type}, {', '.join(ordering)}{space}>"
        if self.hints & _STREAMING and not self.space:
            return f"{LIBRARY}{verb}_streaming<{self.type}>"
        return f"{LIBRARY}{verb}<{self.type}{space}>"


def load(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``ld``: plain, volatile, ordered, of one value or a vector."""
    access = Access(writer, opcode)
    wanted = 3 if "L2::cache_hint" in access.hints else 2
    if len(operands) != wanted or access.operation:
        raise writer.fail("operands of this form")
    value = f"{access.function('load')}({writer.address(operands[1])})"
    if access.count == 1:
        return [writer.write(operands[0], _moved(access.kind), value)]
    target = operands[0]
    if not isinstance(target, Vector) or len(target.parts) != access.count:
        raise writer.fail("operands of this form")
    name = writer.temporary()
    parts = [writer.write(part, _moved(access.kind), f"{name}[{index}]") for index, part in enumerate(target.parts)]
    return [f"const {access.type} {name} = {value}", *parts]


def _moved(kind: str) -> str:
    """What memory holds of a type: halves as whole numbers."""
    return {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}.get(kind, kind)


def store(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``st`` likewise."""
    access = Access(writer, opcode)
    wanted = 3 if "L2::cache_hint" in access.hints else 2
    if len(operands) != wanted or access.operation:
        raise writer.fail("operands of this form")
    address, kind = writer.address(operands[0]), _moved(access.kind)
    if access.count == 1:
        value = writer.read(operands[1], kind)
    else:
        source = operands[1]
        if not isinstance(source, Vector) or len(source.parts) != access.count:
            raise writer.fail("operands of this form")
        parts = (f"{LIBRARY}as<{STORED[kind]}>({writer.read(part, kind)})" for part in source.parts)
        value = f"{access.type}{{{', '.join(parts)}}}"
    return [f"{access.function('store')}({address}, {value})"]


def atomic(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``atom`` and ``red``; without order and scope relaxed and for the whole GPU."""
    access = Access(writer, opcode)
    returns = opcode.startswith("atom")
    if (
        not access.operation
        or access.volatile
        or access.kind not in _ATOMIC_TYPES[access.operation]
        or access.count > 1
    ):
        raise writer.fail("an atomic operation of this type")
    given = list(operands[:-1] if "L2::cache_hint" in access.hints else operands)
    values = 2 if access.operation == "cas" else 1
    if len(given) != values + 1 + returns:
        raise writer.fail("operands of this form")
    target = given.pop(0) if returns else None
    order = access.order or _ORDERS["relaxed"]
    space = f", {access.space}" if access.space else ""
    kind = access.kind
    scope = access.scope or _SCOPES["gpu"]
    address = writer.address(given[0])
    arguments = ", ".join(
        f"{LIBRARY}as<{CPP[kind]}>({writer.read(value, kind)})"
        if isinstance(value, Number)
        else writer.read(value, kind)
        for value in given[1:]
    )
    call = f"{LIBRARY}atom_{access.operation}<{CPP[kind]}, {order}, {scope}{space}>({address}, {arguments})"
    return [writer.write(target, kind, call) if target is not None else f"(void){call}"]


def fence(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``fence.acq_rel.gpu`` and its kin."""
    match = re.fullmatch(r"fence(?:\.(sc|acq_rel|acquire|release))?\.(cta|cluster|gpu|sys)", opcode)
    if match is None or operands:
        raise writer.fail("a fence of this kind")
    return [f"{LIBRARY}fence<{_ORDERS[match.group(1) or 'acq_rel']}, {_SCOPES[match.group(2)]}>()"]


def copy(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``cp.async`` to shared memory, with or without the size from which on bytes are zero."""
    match = re.fullmatch(
        r"cp\.async\.(?:ca|cg)\.shared(?:::cta)?\.global(?P<policy>\.L2::cache_hint)?(?:\.L2::\d+B)?(?P<late>\.L2::cache_hint)?",
        opcode,
    )
    if match is None:
        raise writer.fail("an asynchronous copy of this kind")
    given = list(operands)
    if match.group("policy") or match.group("late"):
        given.pop()
    if len(given) not in (3, 4):
        raise writer.fail("operands of this form")
    size = f"{LIBRARY}cp_async<{writer.constant(given[2])}>"
    arguments = [writer.address(given[0]), writer.address(given[1])]
    if len(given) == 4:
        arguments.append(_source_size(writer, given))
    return [f"{size}({', '.join(arguments)})"]


def _source_size(writer: Writer, given: Sequence[Operand]) -> str:
    """The fourth operand: how many bytes to read, or a predicate that says to read none."""
    last = given[3]
    if isinstance(last, (Number, Reference)):
        return writer.read(last, "u32")
    if isinstance(last, Register) and writer.block.registers[last.name] != "pred":
        return writer.read(last, "u32")
    return f"{writer.read(last, 'pred')} ? 0u : {writer.constant(given[2])}"


def wait(writer: Writer, _opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``cp.async.wait_group N``: nothing is under way."""
    if len(operands) != 1:
        raise writer.fail("operands of this form")
    writer.constant(operands[0])
    return [f"{LIBRARY}cp_async_wait()"]


def prefetch(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """A prefetch into whatever level."""
    if not re.fullmatch(r"prefetchu?(?:\.global)?\.L[12](?:::evict_\w+)?", opcode) or len(operands) != 1:
        raise writer.fail("a prefetch of this kind")
    return [f"{LIBRARY}prefetch({writer.address(operands[0])})"]


def policy(writer: Writer, opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``createpolicy``: the value only ever goes into a cache hint."""
    if not operands or not re.fullmatch(r"createpolicy\.fractional(?:\.L2::\w+)+\.b64", opcode):
        raise writer.fail("a cache policy of this kind")
    return [writer.write(operands[0], "b64", "0ull")]


def hint(writer: Writer, _opcode: str, operands: Sequence[Operand]) -> list[str]:
    """``applypriority`` and ``discard``: no effect on values."""
    if not operands:
        raise writer.fail("operands of this form")
    return [f"(void){writer.address(operands[0])}"]
