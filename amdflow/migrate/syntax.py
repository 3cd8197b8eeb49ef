"""The syntax tree of a CUDA file (tree-sitter): tolerant of missing headers and of code no compiler would take."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from amdflow.migrate import lexer
from amdflow.migrate.text import line_starts

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Tree

KINDS = (
    "call_expression",
    "binary_expression",
    "assignment_expression",
    "init_declarator",
    "for_statement",
    "if_statement",
    "while_statement",
    "declaration",
    "launch_bounds",
    "gnu_asm_expression",
    "kernel_call_syntax",
    "preproc_def",
    "preproc_function_def",
    "function_definition",
    "array_declarator",
    "enumerator",
    "template_function",
    "template_type",
    "qualified_identifier",
    "field_expression",
    "string_literal",
    "raw_string_literal",
)
_FRAGMENT_HEAD = "void _(){"
_OWN_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(CUDA_VERSION|CUDART_VERSION|__CUDA_API_VERSION|__CUDACC_VER_\w+__|__CUDA_ARCH__)[ \t]+[1-9]",
    re.MULTILINE,
)
_PROMISING = re.compile(r"[&%<>/*(]|\basm\b")


@dataclass(frozen=True)
class Place:
    """A node and where its fragment starts in the file. ``offset`` is added to the node's byte positions."""

    node: Node
    offset: int


class Source:
    """One file's text, seen three ways: masked text, byte offsets, syntax tree (macro bodies included, each parsed by itself)."""

    def __init__(self, name: str, text: str, own_macros: frozenset[str] = frozenset()) -> None:
        self.name = name
        self.text = text
        self.own_macros = own_macros | defined_macros(text)
        """Macros of CUDA's versions that this file, or one that it includes, gives a value of its own."""
        self.data = self.text.encode("utf-8", "surrogateescape")

    @cached_property
    def masked(self) -> str:
        """Comments, strings and include paths blanked; same offsets as ``text``."""
        return lexer.mask(self.text)

    @cached_property
    def includes(self) -> list[lexer.Include]:
        """Include directives."""
        return list(lexer.includes(self.text))

    def start(self, line: int) -> int:
        """Character offset of a line's first character."""
        return self._starts[line - 1]

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends."""
        return self.text.split("\n")

    @cached_property
    def _starts(self) -> list[int]:
        return line_starts(self.text)

    @cached_property
    def _byte_starts(self) -> list[int]:
        starts = [0]
        for line in self.data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def line_of(self, offset: int) -> int:
        """Line (from 1) of a character offset."""
        return bisect_right(self._starts, offset)

    def line_of_byte(self, offset: int) -> int:
        """Line (from 1) of a byte offset."""
        return bisect_right(self._byte_starts, offset)

    def byte_of(self, offset: int) -> int:
        """Byte offset of a character offset."""
        line = self.line_of(offset)
        head = self.text[self._starts[line - 1] : offset]
        return self._byte_starts[line - 1] + len(head.encode("utf-8", "surrogateescape"))

    def offset_of_byte(self, offset: int) -> int:
        """Character offset of a byte offset."""
        line = self.line_of_byte(offset)
        head = self.data[self._byte_starts[line - 1] : offset]
        return self._starts[line - 1] + len(head.decode("utf-8", "surrogateescape"))

    def line(self, number: int) -> str:
        """Text of a line counted from 1."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @cached_property
    def tree(self) -> Tree:
        """The whole file's syntax tree."""
        return _parser().parse(self.data)

    @cached_property
    def nodes(self) -> dict[str, list[Place]]:
        """Every node of the kinds in ``KINDS``, in file order, those in macro bodies last."""
        found: dict[str, list[Place]] = {kind: [] for kind in KINDS}
        self._collect(self.tree.root_node, 0, found)
        for macro in (*found["preproc_def"], *found["preproc_function_def"]):
            body = macro.node.child_by_field_name("value")
            if body is None:
                continue
            code = self.data[body.start_byte : body.end_byte]
            if _PROMISING.search(code.decode("utf-8", "replace")):
                head = _FRAGMENT_HEAD.encode()
                fragment = _parser().parse(head + code.replace(b"\\\r\n", b"  \n").replace(b"\\\n", b" \n") + b"\n;}")
                self._collect(fragment.root_node, body.start_byte - len(head), found)
        return found

    def _collect(self, root: Node, offset: int, found: dict[str, list[Place]]) -> None:
        from tree_sitter import QueryCursor

        captures: dict[str, list[Any]] = QueryCursor(_query()).captures(root)
        for kind, nodes in captures.items():
            found[kind] += [Place(node, offset) for node in sorted(nodes, key=lambda node: node.start_byte)]

    def of(self, kind: str) -> Iterator[Place]:
        """Nodes of one kind."""
        yield from self.nodes[kind]


def defined_macros(text: str) -> frozenset[str]:
    """CUDA's own macros that a text defines to a number."""
    return frozenset(_OWN_MACRO.findall(text)) if "define" in text else frozenset()


def text_of(node: Node | None) -> str:
    """Source text of a node; empty for None."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def arguments(call: Node) -> list[Node]:
    """Argument nodes of a call."""
    found = call.child_by_field_name("arguments")
    return [child for child in found.named_children if child.type != "comment"] if found is not None else []


def callee(call: Node) -> str:
    """Name of the called function without namespace, object or template arguments."""
    function = call.child_by_field_name("function")
    while function is not None and function.type in (
        "template_function",
        "qualified_identifier",
        "field_expression",
        "kernel_call_expression",
    ):
        function = function.child_by_field_name("name") or function.child_by_field_name("field")
    return text_of(function)


def enclosing_function(node: Node) -> Node | None:
    """The function definition around a node. A macro with a body in braces, which looks like one without a type, does not count."""
    current: Node | None = node
    untyped: Node | None = None
    while current is not None:
        if current.type == "function_definition":
            if current.child_by_field_name("type") is not None:
                return current
            untyped = untyped or current
        current = current.parent
    return untyped


def function_start(node: Node) -> int:
    """Byte at which the function definition around a node starts; -1 outside of all."""
    function = enclosing_function(node)
    return function.start_byte if function is not None else -1


def function_name(function: Node) -> str:
    """Name in a function definition."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.child_by_field_name("declarator") is not None:
        declarator = declarator.child_by_field_name("declarator")
    return text_of(declarator)


def is_device(function: Node | None) -> bool:
    """Whether it runs on the GPU (by its qualifiers)."""
    if function is None:
        return False
    head = text_of(function).partition("{")[0]
    if function.parent is not None and function.parent.type == "template_declaration":
        head = text_of(function.parent).partition("{")[0]
    return bool(re.search(r"__(?:global|device)__", head))


@cache
def _language() -> Language:
    import tree_sitter_cuda
    from tree_sitter import Language

    return Language(tree_sitter_cuda.language())


def _parser() -> Parser:
    """A parser of its own: parsers are not shared between threads."""
    from tree_sitter import Parser

    return Parser(_language())


@cache
def _query() -> Any:
    from tree_sitter import Query

    return Query(_language(), "\n".join(f"({kind}) @{kind}" for kind in KINDS))
