"""ROCm's ``*_sync`` functions take 64-bit lane masks only. All-ones means "the whole wave" on both, so it can be widened; the rest is cast and reported."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tree_sitter import Node

from amdflow.migrate.fixes import Applied, Change, Draft, Edit, FixContext, apply_edits
from amdflow.migrate.syntax import Place, Source, arguments, callee, enclosing_function, text_of

WIDENED, CAST = "AMF1022", "AMF1023"
ALL_LANES = "0xffffffffffffffffull"
SYNC = re.compile(
    r"__(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_any|match_all|reduce_(?:add|min|max|and|or|xor))_sync|__syncwarp"
)
_ALL_ONES = re.compile(
    r"\(*(?:\(\s*unsigned(?:\s+int)?\s*\)\s*)?(?:0x[fF]{8}[uUlL]*|~\s*\(?0[xX]?0*[uUlL]*\)?|-1|4294967295[uU]?|UINT_MAX|UINT32_MAX)\)*"
)
_ALREADY_WIDE = re.compile(
    r"(?:0x[0-9a-fA-F]{9,}|\b\d[0-9a-fA-FxX]*[uU]?[lL]{2}[uU]?\b|long\s+long|uint64_t|int64_t|size_t|lane_mask)",
    re.IGNORECASE,
)
_MASK_SOURCE = re.compile(r"\b__(?:activemask|ballot|ballot_sync|match_any_sync|match_all_sync)\s*\(")
_DEFINED = re.compile(
    rf"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+({_ALL_ONES.pattern})[ \t]*(?:\\?\r?\n|\r?$)"
    rf"|\b(?:const|constexpr)\b[\w\s]*?\b(?:unsigned(?:\s+int)?|uint32_t|int|uint|auto)\s+(\w+)\s*(?:=|\{{)\s*({_ALL_ONES.pattern})\s*\}}?\s*;",
    re.MULTILINE,
)
_NARROW = re.compile(r"(?:unsigned(?:\s+int)?|uint32_t|int|uint)")


def find_mask_names(masked: Iterable[str]) -> FixContext:
    """Look through the masked texts of a tree for named all-ones masks, and which of them are used as nothing else."""
    texts = [text for text in masked if "_sync" in text or "__syncwarp" in text or _DEFINED.search(text)]
    values = {
        match.group(1) or match.group(3): match.group(2) or match.group(4)
        for text in texts
        for match in _DEFINED.finditer(text)
    }
    other_use = set()
    for text in texts:
        for name in values:
            if name not in other_use and name in text:
                uses = len(re.findall(rf"\b{re.escape(name)}\b", text))
                as_mask = len(re.findall(rf"(?:_sync|__syncwarp)\s*\(\s*{re.escape(name)}\s*[,)]", text))
                defined = sum(1 for match in _DEFINED.finditer(text) if name in (match.group(1), match.group(3)))
                if uses != as_mask + defined:
                    other_use.add(name)
    return FixContext(frozenset(values) - other_use, values)


def widen_lane_masks(draft: Draft) -> Change:
    """Make every mask of a ``*_sync`` call 64 bits wide."""
    source, context = Source(draft.name, draft.text), draft.context
    if (
        "_sync" not in source.masked
        and "__syncwarp" not in source.masked
        and not any(name in source.masked for name in context.mask_names)
    ):
        return Change(source.text)
    edits: list[Edit] = []
    applied: list[Applied] = []
    widened_variables: dict[tuple[int, str], bool] = {}
    for place in source.of("call_expression"):
        given = arguments(place.node)
        if given and SYNC.fullmatch(callee(place.node)):
            _widen(source, place, given[0], context, widened_variables, edits, applied)
    for match in _DEFINED.finditer(source.masked):
        name = match.group(1) or match.group(3)
        if name in context.mask_names:
            _widen_definition(source, match, edits, applied)
    return Change(apply_edits(source.data, edits).decode("utf-8", "surrogateescape"), applied)


def _widen(
    source: Source,
    call: Place,
    mask: Node,
    context: FixContext,
    variables: dict[tuple[int, str], bool],
    edits: list[Edit],
    applied: list[Applied],
) -> None:
    written = text_of(mask)
    start, end = mask.start_byte + call.offset, mask.end_byte + call.offset
    line = source.line_of_byte(start)
    if _ALREADY_WIDE.search(written) or written in context.mask_names or _MASK_SOURCE.match(written):
        return
    if _ALL_ONES.fullmatch(written):
        edits.append(Edit(start, end, ALL_LANES))
        applied.append(Applied(WIDENED, line, f"lane mask {written} widened to 64 bits: all lanes of the wave"))
    elif written in context.values:
        edits.append(Edit(start, end, f"{ALL_LANES} /* {written} */"))
        applied.append(
            Applied(
                WIDENED,
                line,
                f"lane mask {written} ({context.values[written]}) widened to 64 bits: all lanes of the wave",
            )
        )
    elif _is_wide_variable(source, call, mask, variables, edits, applied):
        return
    else:
        edits.append(Edit(start, end, f"static_cast<unsigned long long>({written})"))
        applied.append(
            Applied(CAST, line, f"lane mask {written} has 32 bits: lanes 32 to 63 of a wave64 are not in it")
        )


def _is_wide_variable(
    source: Source,
    call: Place,
    mask: Node,
    variables: dict[tuple[int, str], bool],
    edits: list[Edit],
    applied: list[Applied],
) -> bool:
    """Whether the mask is a variable 64 bits wide, or a local one that takes a lane mask and was made so."""
    function = enclosing_function(mask)
    if mask.type != "identifier" or function is None or call.offset:
        return False
    name = text_of(mask)
    key = (function.start_byte, name)
    if key not in variables:
        variables[key] = _widen_variable(source, function, name, edits, applied)
    return variables[key]


def _widen_variable(source: Source, function: Node, name: str, edits: list[Edit], applied: list[Applied]) -> bool:
    for place in source.of("declaration"):
        node = place.node
        if not (function.start_byte <= node.start_byte < function.end_byte) or place.offset:
            continue
        kind = node.child_by_field_name("type")
        declared = node.child_by_field_name("declarator")
        if kind is None or declared is None or text_of(declared).partition("=")[0].strip() != name:
            continue
        if _ALREADY_WIDE.search(text_of(kind)):
            return True
        value = text_of(declared).partition("=")[2].strip()
        takes_mask = bool(
            _MASK_SOURCE.match(value) or _ALL_ONES.fullmatch(value) or _assigned_from_mask(source, function, name)
        )
        if _NARROW.fullmatch(text_of(kind)) and takes_mask and len(node.children_by_field_name("declarator")) == 1:
            edits.append(Edit(kind.start_byte, kind.end_byte, "unsigned long long"))
            given = node.child_by_field_name("declarator")
            initial = given.child_by_field_name("value") if given is not None else None
            if initial is not None and _ALL_ONES.fullmatch(text_of(initial)):
                edits.append(Edit(initial.start_byte, initial.end_byte, ALL_LANES))
            applied.append(
                Applied(WIDENED, source.line_of_byte(node.start_byte), f"lane mask variable {name} made 64 bits wide")
            )
            return True
        return text_of(kind) == "auto" and bool(_MASK_SOURCE.match(value))
    return False


def _assigned_from_mask(source: Source, function: Node, name: str) -> bool:
    return any(
        text_of(place.node.child_by_field_name("left")) == name
        and _MASK_SOURCE.match(text_of(place.node.child_by_field_name("right")))
        for place in source.of("assignment_expression")
        if function.start_byte <= place.node.start_byte < function.end_byte and not place.offset
    )


def _widen_definition(source: Source, match: re.Match[str], edits: list[Edit], applied: list[Applied]) -> None:
    group = 2 if match.group(1) else 4
    before = len(source.text[: match.start(group)].encode("utf-8", "surrogateescape"))
    edits.append(Edit(before, before + len(match.group(group).encode()), ALL_LANES))
    if group == 4:
        kind = _NARROW.search(source.masked, match.start(), match.start(3))
        if kind:
            at = len(source.text[: kind.start()].encode("utf-8", "surrogateescape"))
            edits.append(Edit(at, at + len(kind.group()), "unsigned long long"))
    applied.append(
        Applied(
            WIDENED,
            source.line_of(match.start(group)),
            f"lane mask {match.group(1) or match.group(3)} made 64 bits wide: all lanes of the wave",
        )
    )
