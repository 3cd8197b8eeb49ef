"""Finds rules in one file. Comments and strings never match; lines and columns are those of the original file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from amdflow.migrate import lexer
from amdflow.migrate.rules.asm import asm_text, blocking, is_gpu_asm
from amdflow.migrate.rules.checks import CHECKS
from amdflow.migrate.rules.conditions import comes_out_otherwise, holds_no_meaning
from amdflow.migrate.rules.model import (
    AsmPattern,
    BinaryPattern,
    CallPattern,
    Check,
    CodePattern,
    ConditionPattern,
    ConstantPattern,
    IncludePattern,
    Rule,
    StringPattern,
)
from amdflow.migrate.syntax import Source, arguments, callee, text_of

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(?:[^\\\n]|\\\r?\n)*", re.MULTILINE)
_CONSTANT = re.compile(r"\b(?:const|constexpr)\b[^;=(){}]*?\b(\w+)\s*(?:=|\{)\s*([^;{}]+?)\s*\}?\s*;")
_MATCH_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Match:
    """A place where a rule was found. ``line`` and ``column`` count from 1; ``text`` is the code that matched."""

    rule: Rule
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class _Span:
    """Character offset for text searches, byte offset for nodes."""

    start: int
    text: str
    in_bytes: bool = False


def detect(source: Source, rules: Iterable[Rule]) -> list[Match]:
    """Every rule in every place, each rule once a line, in line order."""
    chosen = list(rules)
    found: dict[tuple[str, int], Match] = {}
    asm_rules = [rule for rule in chosen if isinstance(rule.detect, AsmPattern)]
    for rule in chosen:
        if not isinstance(rule.detect, AsmPattern):
            for span in _spans(rule, source):
                _keep(found, rule, source, span)
    for rule, span in _asm_spans(asm_rules, source):
        _keep(found, rule, source, span)
    for better in list(found.values()):
        for weaker in better.rule.replaces:
            found.pop((weaker, better.line), None)
    return sorted(found.values(), key=lambda match: (match.line, match.rule.id))


def _keep(found: dict[tuple[str, int], Match], rule: Rule, source: Source, span: _Span) -> None:
    at = source.offset_of_byte(span.start) if span.in_bytes else span.start
    line = source.line_of(at)
    if (rule.id, line) not in found:
        column = at - source.start(line) + 1
        found[rule.id, line] = Match(rule, line, column, " ".join(span.text.split()).rstrip(" ;,({")[:_MATCH_SHOWN])


def _spans(rule: Rule, source: Source) -> Iterator[_Span]:
    how = rule.detect
    search = _SEARCHES.get(type(how))
    return search(how, source) if search else iter(())


def _code(how: CodePattern, source: Source) -> Iterator[_Span]:
    unless = _compiled(how.unless) if how.unless else None
    for match in _compiled(how.pattern).finditer(source.masked):
        if unless is None or not unless.search(source.line(source.line_of(match.start()))):
            yield _Span(match.start(), source.text[match.start() : match.end()])


def _include(how: IncludePattern, source: Source) -> Iterator[_Span]:
    pattern = _compiled(how.pattern)
    for include in source.includes:
        if pattern.search(include.path):
            yield _Span(include.start, include.path)


def _condition(how: ConditionPattern, source: Source) -> Iterator[_Span]:
    pattern = _compiled(how.pattern)
    unless = _compiled(how.unless) if how.unless else None
    for match in _CONDITION.finditer(source.masked) if "#" in source.masked else ():
        found = pattern.search(match.group())
        if not found or (unless and unless.search(match.group())):
            continue
        if not how.differs or (
            comes_out_otherwise(match.group(), source.own_macros)
            and not holds_no_meaning(source.text, source.masked, match.end())
        ):
            yield _Span(match.start() + found.start(), match.group().strip())


def _string(how: StringPattern, source: Source) -> Iterator[_Span]:
    pattern = _compiled(how.pattern)
    if not pattern.search(source.text):
        return
    for place in (*source.of("string_literal"), *source.of("raw_string_literal")):
        parent = place.node.parent
        if parent is not None and (
            parent.type.startswith("gnu_asm")
            or (parent.parent is not None and parent.parent.type.startswith("gnu_asm"))
        ):
            continue
        literal = source.data[place.node.start_byte + place.offset : place.node.end_byte + place.offset]
        text = literal.decode("utf-8", "surrogateescape")
        found = pattern.search(text)
        if found:
            whole = "\n" not in text
            before = 0 if whole else len(text[: found.start()].encode("utf-8", "surrogateescape"))
            start = place.node.start_byte + place.offset + before
            yield _Span(start, text if whole else found.group(), in_bytes=True)


def _call(how: CallPattern, source: Source) -> Iterator[_Span]:
    name = _compiled(how.name)
    for place in source.of("call_expression"):
        if not name.fullmatch(callee(place.node)):
            continue
        given = arguments(place.node)
        wanted = all(
            index < len(given) and _compiled(pattern).search(text_of(given[index]))
            for index, pattern in how.arguments.items()
        )
        if wanted and len(given) < how.fewer_than and _compiled(how.holds).search(text_of(place.node)):
            yield _Span(place.node.start_byte + place.offset, text_of(place.node), in_bytes=True)


def _binary(how: BinaryPattern, source: Source) -> Iterator[_Span]:
    left, right = _compiled(how.left), _compiled(how.right)
    for kind in ("binary_expression", "assignment_expression"):
        for place in source.of(kind):
            node = place.node
            if (
                text_of(node.child_by_field_name("operator")) in how.operators
                and right.search(text_of(node.child_by_field_name("right")))
                and left.search(text_of(node.child_by_field_name("left")))
            ):
                yield _Span(node.start_byte + place.offset, text_of(node), in_bytes=True)


def _constant(how: ConstantPattern, source: Source) -> Iterator[_Span]:
    name, value = _compiled(how.name), _compiled(how.value)
    for place in source.of("preproc_def"):
        node = place.node
        if name.fullmatch(text_of(node.child_by_field_name("name"))) and value.fullmatch(
            _bare(text_of(node.child_by_field_name("value")))
        ):
            yield _Span(node.start_byte + place.offset, text_of(node).strip(), in_bytes=True)
    for place in source.of("enumerator"):
        node = place.node
        if name.fullmatch(text_of(node.child_by_field_name("name"))) and value.fullmatch(
            _bare(text_of(node.child_by_field_name("value")))
        ):
            yield _Span(node.start_byte + place.offset, text_of(node), in_bytes=True)
    for match in _CONSTANT.finditer(source.masked):
        if name.fullmatch(match.group(1)) and value.fullmatch(_bare(match.group(2))):
            yield _Span(match.start(), match.group())


def _bare(value: str) -> str:
    return lexer.mask(value).strip().strip("()").strip()


def _check(how: Check, source: Source) -> Iterator[_Span]:
    for offset, text in CHECKS[how.name](source):
        yield _Span(offset, text, in_bytes=True)


def _asm_spans(rules: Sequence[Rule], source: Source) -> Iterator[tuple[Rule, _Span]]:
    for place in source.of("gnu_asm_expression") if rules else ():
        if not is_gpu_asm(place):
            continue
        text = asm_text(place.node)
        hits = [
            rule
            for rule in rules
            if isinstance(rule.detect, AsmPattern)
            and not rule.detect.fallback
            and _compiled(rule.detect.pattern).search(text)
        ]
        hits = hits or [rule for rule in rules if isinstance(rule.detect, AsmPattern) and rule.detect.fallback]
        for rule in hits:
            yield rule, _Span(place.node.start_byte + place.offset, blocking(place.node) or text, in_bytes=True)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_SEARCHES: dict[type, Callable[..., Iterator[_Span]]] = {
    CodePattern: _code,
    IncludePattern: _include,
    ConditionPattern: _condition,
    StringPattern: _string,
    CallPattern: _call,
    BinaryPattern: _binary,
    ConstantPattern: _constant,
    Check: _check,
}
