"""A file as a list of items, the things at file or namespace level, each with what it stands in and what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from amdflow.migrate.lexer import mask
from amdflow.migrate.syntax import Source, function_name, text_of

_WORD = re.compile(r"(\.\s*|->\s*)?\b([A-Za-z_]\w*)")
_SPECIFIERS = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
_DECLARATIONS = (
    "declaration",
    "type_definition",
    "alias_declaration",
    "namespace_alias_definition",
    "using_declaration",
    "preproc_def",
    "preproc_function_def",
    *_SPECIFIERS,
)
_BRANCHES = ("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef", "preproc_else")


@dataclass(frozen=True)
class Function:
    """A function with a body: its name as it is written (``Buffer::size``) and its lines in the file, from 1."""

    name: str
    node: Node
    first: int
    last: int


@dataclass(frozen=True)
class Item:
    """One thing of a file. ``scopes`` are the namespaces (``namespace a {``) and ``conditions`` the #if branches around it."""

    file: str
    line: int
    text: str
    kind: str
    names: frozenset[str]
    scopes: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ()

    @cached_property
    def _words(self) -> tuple[frozenset[str], frozenset[str]]:
        plain: set[str] = set()
        members: set[str] = set()
        for access, word in _WORD.findall(mask(self.text) + " " + " ".join(self.conditions)):
            (members if access else plain).add(word)
        return frozenset(plain), frozenset(members)

    @property
    def uses(self) -> frozenset[str]:
        """Names in its text and conditions that may be those of other items."""
        return self._words[0]

    @property
    def members(self) -> frozenset[str]:
        """Names used after a dot or an arrow."""
        return self._words[1]


@dataclass(frozen=True)
class Includes:
    """An include directive at its place."""

    file: str
    line: int
    path: str
    quoted: bool
    scopes: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


Part = Item | Includes


@dataclass
class _Reader:
    source: Source
    parts: list[Part] = field(default_factory=list)

    def walk(self, nodes: list[Node], scopes: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        for node in nodes:
            if node.type == "preproc_include":
                self._include(node, scopes, conditions)
            elif node.type in _BRANCHES:
                self._branch(node, scopes, conditions, [])
            elif node.type in ("namespace_definition", "linkage_specification"):
                self._scope(node, scopes, conditions)
            elif (
                node.type == "function_definition" or node.type == "template_declaration" or node.type in _DECLARATIONS
            ):
                self._item(node, scopes, conditions)

    def _include(self, node: Node, scopes: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        path = text_of(node.child_by_field_name("path"))
        if path[:1] in ('"', "<"):
            self.parts.append(
                Includes(
                    self.source.name, node.start_point[0] + 1, path[1:-1].strip(), path[0] == '"', scopes, conditions
                )
            )

    def _scope(self, node: Node, scopes: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        body = node.child_by_field_name("body")
        if body is None:
            return
        if body.type != "declaration_list":  # extern "C" before a single declaration
            self._item(node, scopes, conditions)
            return
        head = self.source.data[node.start_byte : body.start_byte].decode("utf-8", "replace")
        self.walk(body.named_children, (*scopes, f"{' '.join(head.split())} {{"), conditions)

    def _branch(self, node: Node, scopes: tuple[str, ...], conditions: tuple[str, ...], earlier: list[str]) -> None:
        """One branch of an #if and those after it; ``earlier`` are the conditions that failed before."""
        own, head = _condition(node)
        alternative = node.child_by_field_name("alternative")
        inner = [child for child in node.named_children if child not in (*head, alternative)]
        is_guard = (
            node.type == "preproc_ifdef"
            and text_of(node).startswith("#ifndef")
            and inner[:1]
            and inner[0].type == "preproc_def"
            and text_of(inner[0].child_by_field_name("name")) == text_of(node.child_by_field_name("name"))
            and inner[0].child_by_field_name("value") is None
            and alternative is None
        )
        if is_guard:
            self.walk(inner[1:], scopes, conditions)
            return
        failed = tuple(f"!({condition})" for condition in earlier)
        self.walk(inner, scopes, (*conditions, *failed, *([f"({own})"] if own else [])))
        if alternative is not None:
            self._branch(alternative, scopes, conditions, [*earlier, own])

    def _item(self, node: Node, scopes: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        text = self.source.data[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")
        text = text.rstrip() + (";" if node.type in _SPECIFIERS else "")
        if node.type == "template_declaration" and node.named_children[-1].type in _SPECIFIERS:
            text += "" if text.endswith(";") else ";"
        functions = tuple(self._functions(node))
        names = frozenset(_names(node))
        self.parts.append(
            Item(self.source.name, node.start_point[0] + 1, text, node.type, names, scopes, conditions, functions)
        )

    def _functions(self, node: Node) -> Iterator[Function]:
        pending = [node]
        while pending:
            current = pending.pop()
            if current.type == "function_definition":
                yield Function(function_name(current), current, current.start_point[0] + 1, current.end_point[0] + 1)
            elif current.type != "compound_statement":
                pending += reversed(current.named_children)


def read_items(source: Source) -> list[Part]:
    """Items and includes of a file, in order."""
    reader = _Reader(source)
    reader.walk(source.tree.root_node.named_children, (), ())
    return reader.parts


def _condition(node: Node) -> tuple[str, tuple[Node | None, ...]]:
    """The branch's own condition as an expression, and the nodes that spell it."""
    condition, name = node.child_by_field_name("condition"), node.child_by_field_name("name")
    if condition is not None:
        return " ".join(text_of(condition).replace("\\\n", " ").split()), (condition,)
    if name is not None:
        negated = text_of(node).lstrip("# \t").startswith(("ifndef", "elifndef"))
        return f"{'!' if negated else ''}defined({text_of(name)})", (name,)
    return "", ()


def _names(node: Node) -> Iterator[str]:
    """What an item declares or defines, without the namespaces."""
    if node.type in ("template_declaration", "linkage_specification"):
        for child in node.named_children:
            if child.type in ("function_definition", "template_declaration", *_DECLARATIONS):
                yield from _names(child)
        return
    if node.type == "function_definition":
        yield re.split(r"::", function_name(node))[-1].strip()
        return
    for name in ("name", "type"):
        named = node.child_by_field_name(name)
        if named is not None and named.type in _SPECIFIERS:
            yield from _names(named)
        elif named is not None and name == "name":
            yield re.split(r"[:<]", text_of(named))[0].strip() or text_of(named)
    if node.type == "enum_specifier":
        body = node.child_by_field_name("body")
        yield from (text_of(child.child_by_field_name("name")) for child in (body.named_children if body else ()))
    if node.type == "using_declaration":
        yield re.split(r"::|\s", text_of(node).rstrip("; \n"))[-1]
    if node.type in ("declaration", "type_definition"):
        for declarator in node.children_by_field_name("declarator"):
            yield _declared(declarator)


def _declared(declarator: Node) -> str:
    inner = declarator.child_by_field_name("declarator")
    while inner is not None:
        declarator, inner = inner, inner.child_by_field_name("declarator")
    if declarator.named_children and declarator.type in ("parenthesized_declarator", "reference_declarator"):
        return _declared(declarator.named_children[-1])
    return re.split(r"::", text_of(declarator))[-1].strip()
