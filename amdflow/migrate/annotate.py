"""Markers in the migrated source at the lines of findings: ``// amdflow: AMF1302 silent: ... (see amdflow explain AMF1302)``.

A marker is always a comment at the end of a line that exists, so that no line moves and the compiler sees the same
tokens at the same lines as without it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from amdflow.findings import Finding, Severity
from amdflow.migrate import lexer
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.text import line_starts

_BODY = rf"amdflow: [A-Z]{{2,8}}\d{{3,5}} (?:{'|'.join(Severity)})(?: \(\d+ lines? above\))?: "
_MARKER = re.compile(rf"  (?:// {_BODY}[^\r\n]*|/\* {_BODY}[^\r\n]*?\*/)(?=[ \t]*\\?\r?$)", re.MULTILINE)
_CONTINUED = re.compile(r"\\\r?$")
_LONGEST = 120
_SEARCHED = 200
"""Lines to look ahead for a place, from the line of the finding."""


def annotate(text: str, findings: Iterable[Finding], lines: LineMap) -> str:
    """The migrated text with a marker for each finding that has a line and is no note; older markers are replaced.

    ``findings`` have original lines, which ``lines`` maps to. A line that ends inside a comment, a string or a token
    cannot carry a marker: the next line that can does, and says how far up the place is.
    """
    bare = strip(text)
    wanted = _by_line(findings, lines, bare.count("\n") + 1)
    if not wanted:
        return bare
    starts = line_starts(bare)
    rows = bare.split("\n")
    inside = _Spans(bare)
    markers: dict[int, list[str]] = defaultdict(list)
    for row, found in sorted(wanted.items()):
        place = next(
            (at for at in range(row, min(row + _SEARCHED, len(rows))) if _can_carry(rows, starts, inside, at)), None
        )
        if place is not None:
            markers[place] += [_words(finding, place - row) for finding in found]
    for row, words in markers.items():
        rows[row] = _marked(rows[row], words)
    return "\n".join(rows)


def strip(text: str) -> str:
    """The text without markers."""
    if "amdflow: " not in text:
        return text
    before = None
    while before != text:
        before, text = text, _MARKER.sub("", text)
    return text


def _by_line(findings: Iterable[Finding], lines: LineMap, count: int) -> dict[int, list[Finding]]:
    """Findings by row (from 0) of the migrated text: the first row that comes from the finding's line or one after it."""
    origins = [lines.original(row + 1) for row in range(count)]
    highest: list[int] = []
    for origin in origins:
        highest.append(max(origin, highest[-1] if highest else 0))
    wanted: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.line and finding.severity is not Severity.NOTE:
            for line in dict.fromkeys((finding.line, *finding.extra.get("lines", ()))):
                row = bisect_left(highest, line)
                if row < count:
                    wanted[row].append(finding)
    return wanted


class _Spans:
    """Comments and strings of a text, to ask what a line end lies in."""

    def __init__(self, text: str) -> None:
        spans = [(match.start(), match.end(), match.group()) for match in lexer.comments_and_strings(text)]
        self._starts = [start for start, _end, _text in spans]
        self._spans: Sequence[tuple[int, int, str]] = spans

    def at(self, offset: int) -> str:
        """The comment or string that covers the character at ``offset`` and the one before it, or an empty text."""
        index = bisect_left(self._starts, offset) - 1
        if index < 0 or self._spans[index][1] <= offset:
            return ""
        return self._spans[index][2]


def _can_carry(rows: Sequence[str], starts: Sequence[int], inside: _Spans, row: int) -> bool:
    end = starts[row] + len(rows[row])
    if rows[row].endswith("\r"):
        end -= 1
    if not _CONTINUED.search(rows[row]):
        if rows[row].rstrip().endswith(("\\", "??/")):  # compilers take these for continued lines, too
            return False
        return not inside.at(end) or inside.at(end).startswith("//")
    # before the backslash there is room for a block comment, unless it cuts a token, a string or a comment in two
    before = rows[row].rstrip("\r")[:-1]
    after = rows[row + 1] if row + 1 < len(rows) else ""
    return not inside.at(end - 1) and (before[-1:].isspace() or not after or after[:1].isspace())


def _words(finding: Finding, distance: int) -> str:
    above = f" ({distance} line{'s' if distance > 1 else ''} above)" if distance else ""
    message = " ".join(finding.message.split()).replace("*/", "* /").replace("\\", "/").replace("??/", "?? /")
    message = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3].rstrip()}..."
    return f"amdflow: {finding.id} {finding.severity}{above}: {message} (see amdflow explain {finding.id})"


def _marked(row: str, words: Sequence[str]) -> str:
    carriage = "\r" if row.endswith("\r") else ""
    row = row.removesuffix("\r")
    if row.endswith("\\"):
        comments = "".join(f"  /* {text} */" for text in words)
        body = row[:-1].rstrip(" \t")
        return f"{body}{comments}{row[len(body) :]}{carriage}"
    return row + "".join(f"  // {text}" for text in words) + carriage


def annotate_all(texts: Mapping[str, tuple[str, LineMap]], findings: Iterable[Finding]) -> dict[str, str]:
    """New texts by name, of those files in which a marker was put."""
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    made = {name: annotate(text, by_path[name], lines) for name, (text, lines) in texts.items() if name in by_path}
    return {name: text for name, text in made.items() if text != texts[name][0]}
