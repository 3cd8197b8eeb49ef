"""What a function takes, as far as its own text tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tree_sitter import Node

from amdflow.migrate.scaffold.items import Function
from amdflow.migrate.syntax import text_of

_QUALIFIERS = re.compile(
    r"\b(?:__global__|__device__|__host__|__forceinline__|__inline__|__noinline__|inline|static|extern|constexpr|virtual|explicit|friend)\b"
    r"|__(?:launch_bounds__|attribute__)\s*\((?:[^()]|\([^()]*\))*\)|\[\[[^\]]*\]\]"
)
_RESTRICT = re.compile(r"\b(?:__restrict__|__restrict|restrict|register|__grid_constant__)\b")
_CONST = re.compile(r"\bconst\b")


class Where(StrEnum):
    """How a function can be called."""

    KERNEL = "kernel"
    DEVICE = "device function"
    HOST = "host function"


@dataclass(frozen=True)
class Parameter:
    """``type`` is the element's type of a pointer or array (``depth`` stars taken off one), else the value's own, without const."""

    name: str
    type: str
    is_pointer: bool = False
    is_reference: bool = False
    is_const: bool = False


@dataclass(frozen=True)
class TemplateParameter:
    """``type`` is empty for a type parameter."""

    name: str
    type: str = ""


@dataclass(frozen=True)
class Signature:
    """A function as a caller sees it. ``obstacle`` says why no call can be written by rule; it is empty when one can."""

    name: str
    where: Where
    returns: str
    parameters: tuple[Parameter, ...]
    templates: tuple[TemplateParameter, ...] = ()
    owner: str = ""
    """The class whose member function it is."""
    obstacle: str = ""


def read_signature(function: Function) -> Signature:
    """From a function's definition."""
    node = function.node
    declarator = node.child_by_field_name("declarator")
    stars = ""
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        stars += "*" if declarator.type == "pointer_declarator" else ""
        declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
    head = text_of(node)[: declarator.start_byte - node.start_byte if declarator is not None else 0]
    owner, name = _owner(node, function.name)
    template = node.parent if node.parent is not None and node.parent.type == "template_declaration" else None
    templates, obstacle = _templates(template)
    parameters: list[Parameter] = []
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    for index, child in enumerate(listed.named_children if listed is not None else ()):
        if child.type == "comment" or text_of(child) == "void":
            continue
        read = _parameter(child, index)
        if read is None:
            obstacle = obstacle or f"its parameter `{' '.join(text_of(child).split())}` cannot be made up by rule"
        else:
            parameters.append(read)
    if name == "main":
        obstacle = "it is the whole program, called program_main here"
    if owner and template is None and _is_template(node):
        obstacle = obstacle or "it is a member of a class template"
    if not re.fullmatch(r"[A-Za-z_]\w*", name) or name == owner:
        obstacle = obstacle or "it is an operator, a constructor or a specialization"
    full_head = (text_of(template) if template is not None else text_of(node)).partition("{")[0]
    where = Where.KERNEL if "__global__" in full_head else Where.DEVICE if "__device__" in full_head else Where.HOST
    returns = " ".join(_QUALIFIERS.sub(" ", head.replace("*", " ").replace("&", " ")).split())
    return Signature(
        name, where, _CONST.sub("", returns).strip() + stars, tuple(parameters), templates, owner, obstacle
    )


def _owner(node: Node, name: str) -> tuple[str, str]:
    if "::" in name:
        owner, _, own = name.rpartition("::")
        return owner, own
    current = node.parent
    while current is not None and current.type not in ("struct_specifier", "class_specifier"):
        current = current.parent
    return (text_of(current.child_by_field_name("name")) if current is not None else ""), name


def _is_template(node: Node) -> bool:
    current: Node | None = node
    while current is not None and current.type != "template_declaration":
        current = current.parent
    return current is not None


def _templates(template: Node | None) -> tuple[tuple[TemplateParameter, ...], str]:
    found: list[TemplateParameter] = []
    listed = template.child_by_field_name("parameters") if template is not None else None
    for child in listed.named_children if listed is not None else ():
        if child.type in ("type_parameter_declaration", "optional_type_parameter_declaration"):
            named = child.child_by_field_name("name") or next(iter(child.named_children), None)
            found.append(TemplateParameter(text_of(named)))
        elif child.type in ("parameter_declaration", "optional_parameter_declaration"):
            read = _parameter(child, len(found))
            if read is not None and not read.name.startswith("argument_"):
                found.append(TemplateParameter(read.name, read.type))
        elif child.type != "comment":
            return tuple(found), f"its template parameter `{text_of(child)}` cannot be chosen by rule"
    return tuple(found), ""


def _parameter(node: Node, index: int) -> Parameter | None:
    """None for what cannot be made up: packs, functions, arrays of arrays."""
    if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
        return None
    kind = text_of(node.child_by_field_name("type"))
    qualifiers = "".join(f"{text_of(child)} " for child in node.named_children if child.type == "type_qualifier")
    stars, arrays, references, name = 0, 0, 0, ""
    inner = node.child_by_field_name("declarator")
    while inner is not None:
        if inner.type in ("function_declarator", "abstract_function_declarator", "variadic_declarator"):
            return None
        stars += inner.type in ("pointer_declarator", "abstract_pointer_declarator")
        arrays += inner.type in ("array_declarator", "abstract_array_declarator")
        references += inner.type in ("reference_declarator", "abstract_reference_declarator")
        if inner.type == "identifier":
            name = text_of(inner)
        following = inner.child_by_field_name("declarator")
        if following is None and inner.type in (
            "reference_declarator",
            "parenthesized_declarator",
            "abstract_reference_declarator",
        ):
            following = next(
                (child for child in reversed(inner.named_children) if child.type != "type_qualifier"), None
            )
        inner = following
    if arrays > 1 or (arrays and references):
        return None
    whole = f"{qualifiers}{kind}"
    base = " ".join(_CONST.sub(" ", _RESTRICT.sub(" ", whole)).split())
    depth = stars + arrays
    return Parameter(
        name or f"argument_{index + 1}",
        base + "*" * max(depth - 1, 0),
        bool(depth),
        bool(references),
        bool(_CONST.search(whole)) and depth <= 1,
    )
