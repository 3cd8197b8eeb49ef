"""A function and what it needs of the tree, taken out by the names it uses, with the line each part comes from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from amdflow.migrate.include_graph import IncludeGraph
from amdflow.migrate.scaffold.items import Function, Includes, Item, Part, read_items
from amdflow.migrate.syntax import Source

BEGIN, END = "// >>>> yours to work on: ", "// <<<< end of it"
_FROM = re.compile(r"^// (?:>>>> yours to work on|needed|and on): (?P<name>.*), from (?P<path>.+):(?P<line>\d+)$")


@dataclass(frozen=True)
class Target:
    """The function that a scaffold is for, and the item of its file that holds it."""

    file: str
    function: Function
    item: Item


class ItemIndex:
    """The items of the tree's files, each file read once."""

    def __init__(self, texts: Mapping[str, str], graph: IncludeGraph) -> None:
        self._texts, self.graph = texts, graph
        self._parts: dict[str, list[Part]] = {}

    def parts(self, name: str) -> list[Part]:
        """Items and includes of a file of the tree, in order."""
        if name not in self._parts:
            self._parts[name] = read_items(Source(name, self._texts[name]))
        return self._parts[name]

    def targets(self, name: str) -> list[Target]:
        """Functions with a body in a file."""
        return [
            Target(name, function, part)
            for part in self.parts(name)
            if isinstance(part, Item)
            for function in part.functions
        ]

    def unit_of(self, name: str) -> str:
        """The file itself, or the first that includes it without being included: where its context is whole."""
        return next(
            (
                unit
                for unit in sorted(self.graph.resolved)
                if unit not in self.graph.included and name in self.graph.closure(unit)
            ),
            name,
        )

    def flattened(self, name: str) -> list[Part]:
        """The items of a file and of all files of the tree that it includes, as the compiler meets them; other includes stay."""
        return self._flatten(name, (), (), set())

    def _flatten(self, name: str, scopes: tuple[str, ...], conditions: tuple[str, ...], seen: set[str]) -> list[Part]:
        seen.add(name)
        found: list[Part] = []
        for part in self.parts(name):
            inside, under = (*scopes, *part.scopes), (*conditions, *part.conditions)
            inner = self.graph.resolved.get(name, {}).get(part.path) if isinstance(part, Includes) else None
            if inner is None:
                found.append(replace(part, scopes=inside, conditions=under))
            elif inner not in seen and inner in self._texts:
                found += self._flatten(inner, inside, under, seen)
        return found


def needed(parts: Sequence[Part], target: Target) -> list[Part]:
    """The includes, the target's item and every item that it needs by name, directly or not, in order."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for index, part in enumerate(parts):
        if isinstance(part, Item):
            for name in part.names:
                by_name[name].append(index)
    wanted: set[int] = {
        index
        for index, part in enumerate(parts)
        if isinstance(part, Item) and (part.file, part.line) == (target.file, target.item.line)
    }
    pending = list(wanted)
    members: set[str] = set()
    while pending:
        part = parts[pending.pop()]
        if not isinstance(part, Item):
            continue
        members |= part.members
        for name in part.uses:
            for index in by_name.get(name, ()):
                if index not in wanted and not _is_foreign_method(parts[index], members | part.uses):
                    wanted.add(index)
                    pending.append(index)
    return [
        part for index, part in enumerate(parts) if isinstance(part, Includes) or index in wanted or _is_directive(part)
    ]


def _is_foreign_method(part: Part, used: Iterable[str]) -> bool:
    """Whether it is a member function of a class that is not used."""
    if not isinstance(part, Item) or part.kind != "function_definition" or "::" not in part.functions[0].name:
        return False
    return part.functions[0].name.split("::")[0].split("<")[0].strip() not in used


def _is_directive(part: Part) -> bool:
    return isinstance(part, Item) and part.kind == "using_declaration" and "using namespace" in part.text


def written(parts: Sequence[Part], target: Target, missing: Iterable[str] = ()) -> str:
    """The parts as one header. Includes in ``missing`` become comments, since the compiler did not find them."""
    lines: list[str] = []
    scopes: tuple[str, ...] = ()
    absent = frozenset(missing)
    for part in _without_repeats(parts):
        if isinstance(part, Item) or part.scopes != scopes:
            scopes = _change_scopes(lines, scopes, part.scopes)
        lines += [f"#if {' && '.join(part.conditions)}"] if part.conditions else []
        if isinstance(part, Includes):
            path = f'"{part.path}"' if part.quoted else f"<{part.path}>"
            lines.append(f"// not found by the compiler: {path}" if part.path in absent else f"#include {path}")
        else:
            lines += _item_lines(part, target)
        lines += ["#endif"] if part.conditions else []
    _change_scopes(lines, scopes, ())
    return "\n".join(lines) + "\n"


def _without_repeats(parts: Sequence[Part]) -> Iterator[Part]:
    seen: set[tuple[str, bool]] = set()
    for part in parts:
        if isinstance(part, Includes) and not part.scopes and not part.conditions:
            if (part.path, part.quoted) in seen:
                continue
            seen.add((part.path, part.quoted))
        yield part


def _change_scopes(lines: list[str], old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        shared += 1
    lines += ["}"] * (len(old) - shared)
    lines += new[shared:]
    return new


def _item_lines(item: Item, target: Target) -> list[str]:
    text = item.text.split("\n")
    name = ", ".join(sorted(item.names)) or item.kind
    if item.kind == "using_declaration" and "using namespace" in item.text:
        space = item.text.replace("using namespace", "").strip(" ;\n")
        text = [f"namespace {space} {{}}", *text] if "::" not in space else text
    if (item.file, item.line) != (target.file, target.item.line):
        return ["", f"// needed: {name}, from {item.file}:{item.line}", *text]
    whole = (
        item.kind in ("function_definition", "template_declaration", "linkage_specification")
        and len(item.functions) == 1
    )
    first = 0 if whole else target.function.first - item.line
    last = len(text) if whole else target.function.last - item.line + 1
    head = [f"// needed: {name}, from {item.file}:{item.line}", *text[:first]] if first else []
    tail = [f"// and on: {name}, from {item.file}:{item.line + last}", *text[last:]] if last < len(text) else []
    own = [f"{BEGIN}{target.function.name}, from {item.file}:{item.line + first}", *text[first:last], END]
    if target.function.name == "main":  # the test program has a main() of its own
        own = ["#define main program_main", *own, "#undef main"]
    return ["", *head, *own, *tail]


@dataclass(frozen=True)
class Origin:
    """Where a line of an extract comes from: file and line of the migrated tree, whose text, and whether it is the function itself."""

    path: str
    line: int
    name: str
    own: bool


def origins(text: str) -> list[Origin | None]:
    """For each line of an extract, also one that was edited; None for lines that no file has."""
    found: list[Origin | None] = []
    current: Origin | None = None
    for row in text.split("\n"):
        marker = _FROM.match(row)
        if marker:
            current = Origin(marker["path"], int(marker["line"]) - 1, marker["name"], row.startswith(BEGIN))
            found.append(None)
        elif row == END:
            current = None
            found.append(None)
        else:
            current = Origin(current.path, current.line + 1, current.name, current.own) if current else None
            found.append(current)
    return found
