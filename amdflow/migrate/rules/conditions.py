"""Preprocessor conditions as the HIP compiler and as nvcc see them: which branches of a CUDA source are gone for AMD.

A value is an int, or None where it hangs on something that is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from amdflow.migrate.lexer import CONDITIONAL

Value = int | None
_ABSENT = re.compile(r"__CUDA_ARCH\w*__|CUDA_VERSION|CUDART_VERSION|__CUDA_API_VERSION|__CUDACC_VER_\w+__")
"""Macros of CUDA's versions and architectures: never defined for AMD."""
_PRESENT = frozenset({"__HIP__", "__HIPCC__", "__HIP_PLATFORM_AMD__", "__HIP_DEVICE_COMPILE__", "__AMDGCN__"})
_INCLUDE_LINE = re.compile(r"^[ \t]*#[ \t]*(?:include|pragma)[^\n]*", re.MULTILINE)
_ARCHITECTURES = (700, 750, 800, 860, 890, 900, 1000, 1200)
_CUDA_VERSION = 12090
_TOKEN = re.compile(r"\s*(?:(\d[\w']*)|([A-Za-z_]\w*)|(\|\||&&|[<>=!]=|<<|>>|[-+*/%<>!()&|^~?:,]))")
_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))


@dataclass
class Branch:
    """One branch of a group of conditionals: offsets of its directive and its code, whether AMD's compiler drops it."""

    directive: int
    start: int
    end: int
    condition: str
    dead: bool
    by_cuda: bool
    """It is dropped because of CUDA's version or architecture, not because of a plain ``#if 0``."""


@dataclass
class _Group:
    known_true: bool = False
    branches: list[Branch] = field(default_factory=list)


def branches(masked: str) -> list[Branch]:
    """Every branch of every ``#if`` in the text (comments and strings blanked), in the order in which they end."""
    open_groups: list[_Group] = []
    done: list[Branch] = []
    for match in CONDITIONAL.finditer(masked) if "#" in masked else ():
        word, condition = match.group(1), " ".join(match.group(2).replace("\\", " ").split())
        if word in ("elif", "else", "endif"):
            if not open_groups:
                continue
            if open_groups[-1].branches:
                open_groups[-1].branches[-1].end = match.start()
        if word == "endif":
            done += open_groups.pop().branches
            continue
        if word not in ("elif", "else"):
            open_groups.append(_Group())
        group = open_groups[-1]
        value = _value_of(word, condition)
        dead = value == 0 or group.known_true
        asked = " ".join((condition, *(branch.condition for branch in group.branches)))
        group.branches.append(
            Branch(match.start(), match.end(), len(masked), condition, dead, dead and bool(_ABSENT.search(asked)))
        )
        group.known_true = group.known_true or bool(value)
    return done


def _value_of(word: str, condition: str) -> Value:
    if word == "else":
        return 1
    if word in ("ifdef", "ifndef"):
        known = _defined(condition.split(" ")[0] if condition else "", compared=False)
        return known if word == "ifdef" or known is None else int(not known)
    return evaluate(condition)


def evaluate(condition: str, macros: Mapping[str, int] = MappingProxyType({})) -> Value:
    """Value of an ``#if`` expression for AMD's compiler, or with the ``macros`` of CUDA that are given."""
    words = [match.group().strip() for match in _TOKEN.finditer(condition)]
    bare = re.sub(r"defined\s*\(?\s*\w+\s*\)?", "", condition)
    return _Parser(words, compared="__CUDA_ARCH__" in bare, macros=macros).whole()


def comes_out_otherwise(directive: str, own: Collection[str] = ()) -> bool:
    """Whether a whole ``#if`` line can decide otherwise for AMD than for CUDA 12 on a current GPU.

    ``own`` are macros that the program itself gives a value: for those CUDA and AMD agree.
    """
    if own and not set(_ABSENT.findall(directive)) - set(own):
        return False
    match = CONDITIONAL.match(directive)
    condition = " ".join(match.group(2).replace("\\", " ").split()) if match else ""
    if match is None or match.group(1) not in ("if", "elif") or not _ABSENT.search(condition):
        return True
    here = evaluate(condition)
    if here is None:
        return True
    versions = dict.fromkeys(("CUDA_VERSION", "CUDART_VERSION", "__CUDA_API_VERSION"), _CUDA_VERSION)
    versions |= {"__CUDACC_VER_MAJOR__": _CUDA_VERSION // 1000, "__CUDACC_VER_MINOR__": _CUDA_VERSION // 10 % 100}
    there = {evaluate(condition, versions | {"__CUDA_ARCH__": number}) for number in _ARCHITECTURES}
    return {bool(value) if value is not None else None for value in there} != {bool(here)}


def holds_no_meaning(text: str, masked: str, end: int) -> bool:
    """Whether the branch whose directive ends at ``end``, the only one of its group, may go without a change of meaning.

    It holds includes only, whose lack the compiler reports, or full specializations, for which the general template stands in.
    """
    following = CONDITIONAL.search(masked, end)
    if following is None or following.group(1) != "endif":
        return False
    left = _INCLUDE_LINE.sub("", masked[end : following.start()]).strip()
    if not left:
        return bool(text[end : following.start()].strip())
    return all(re.match(r"template\s*<\s*>", piece) for piece in _pieces(left))


def _pieces(code: str) -> Iterator[str]:
    """Declarations and definitions that stand next to each other."""
    depth = start = 0
    for index, character in enumerate(code):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and character in "};":
            yield code[start : index + 1].strip()
            start = index + 1
    if code[start:].strip():
        yield code[start:].strip()


def _defined(name: str, *, compared: bool) -> Value:
    """Existence of a macro. A question for __CUDA_ARCH__'s existence alone is answered by an automatic fix."""
    if name == "__CUDA_ARCH__" and not compared:
        return None
    if _ABSENT.fullmatch(name):
        return 0
    return 1 if name in _PRESENT else None


class _Parser:
    """Precedence climbing over the tokens of one expression."""

    def __init__(self, tokens: list[str], *, compared: bool, macros: Mapping[str, int]) -> None:
        self.tokens, self.at, self.compared, self.macros = tokens, 0, compared, macros

    def whole(self) -> Value:
        """The expression's value; None when it is more than this grammar knows."""
        value = self._level(0)
        return value if self.at == len(self.tokens) else None

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        word = self._next()
        self.at += 1
        return word

    def _level(self, level: int) -> Value:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._next() in _LEVELS[level]:
            sign = self._take()
            left = _apply(sign, left, self._level(level + 1))
        return left

    def _unary(self) -> Value:
        word = self._take()
        if word == "!":
            value = self._unary()
            return None if value is None else int(not value)
        if word == "-":
            value = self._unary()
            return None if value is None else -value
        if word == "(":
            value = self._level(0)
            return value if self._take() == ")" else None
        if word == "defined":
            brackets = self._next() == "("
            name = self._take() if not brackets else (self._take(), self._take())[1]
            if brackets:
                self._take()
            return 1 if name in self.macros else _defined(name, compared=self.compared)
        if word[:1].isdigit():
            digits = re.match(r"0[xX][0-9a-fA-F]+|\d+", word.replace("'", ""))
            return int(digits.group(), 0 if digits.group().lower().startswith("0x") else 10) if digits else None
        if self._next() == "(":
            self._skip_arguments()
            return None
        if word in self.macros:
            return self.macros[word]
        if _ABSENT.fullmatch(word):
            return 0
        return 1 if word in _PRESENT else None

    def _skip_arguments(self) -> None:
        depth = 0
        for word in self._rest():
            depth += {"(": 1, ")": -1}.get(word, 0)
            if not depth:
                return

    def _rest(self) -> Iterator[str]:
        while self.at < len(self.tokens):
            yield self._take()


def _apply(sign: str, left: Value, right: Value) -> Value:
    if sign == "&&" and (left == 0 or right == 0):
        return 0
    if sign == "||" and (left or right):
        return 1
    if left is None or right is None:
        return None
    if sign in ("/", "%"):
        return None if not right else (left // right if sign == "/" else left % right)
    return int(
        {
            "&&": bool(left and right),
            "||": bool(left or right),
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
            "<=": left <= right,
            ">=": left >= right,
            "+": left + right,
            "-": left - right,
            "*": left * right,
        }[sign]
    )
