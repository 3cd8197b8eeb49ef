"""Unified diffs: written for people and for ``patch``, and applied strictly, without a guess."""

from __future__ import annotations

import difflib
import re

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline at end of file\n"
_NOWHERE = "/dev/null"


def split_lines(text: str) -> list[str]:
    """Lines with their ends; only newlines count, and the last line may have none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def make(base: str, edited: str, path: str, *, added: bool = False, deleted: bool = False) -> str:
    """The unified diff that turns ``base`` into ``edited``; empty when they are equal."""
    shown = path.encode("unicode_escape").decode() if not path.isprintable() else path
    lines = difflib.unified_diff(
        split_lines(base),
        split_lines(edited),
        _NOWHERE if added else f"a/{shown}",
        _NOWHERE if deleted else f"b/{shown}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


def apply(base: str, diff: str) -> str:
    """What a diff makes of exactly the text it was made from. Raises ValueError naming the first line that does not fit."""
    old, new = split_lines(base), []
    at = 0
    body = split_lines(diff)[2:]  # behind the two file names
    for index, line in enumerate(body):
        if line == _NO_NEWLINE:
            continue
        bare = index + 1 < len(body) and body[index + 1] == _NO_NEWLINE
        text = line[1:-1] if bare else line[1:]
        if line.startswith("@@"):
            start = _start(line)
            if start < at or start > len(old):
                raise ValueError(f"`{line.strip()}` does not fit the base text")
            new += old[at:start]
            at = start
        elif line.startswith("+"):
            new.append(text)
        elif line.startswith((" ", "-")):
            if at >= len(old) or old[at] != text:
                raise ValueError(f"`{line.rstrip()}` is not line {at + 1} of the base text")
            new += [text] if line.startswith(" ") else []
            at += 1
        else:
            raise ValueError(f"`{line.rstrip()}` is no line of a unified diff")
    return "".join((*new, *old[at:]))


def changed_lines(base: str, edited: str) -> set[int]:
    """Lines of ``base`` (from 1) that ``edited`` replaces or drops."""
    matcher = difflib.SequenceMatcher(None, split_lines(base), split_lines(edited), autojunk=False)
    return {
        line
        for tag, start, end, _new_start, _new_end in matcher.get_opcodes()
        if tag in ("replace", "delete")
        for line in range(start + 1, end + 1)
    }


def line_origins(base: str, edited: str) -> list[int]:
    """For each line of ``edited``, the line of ``base`` (from 1) that it is, stands for, or stands before."""
    matcher = difflib.SequenceMatcher(None, base.split("\n"), edited.split("\n"), autojunk=False)
    count = base.count("\n") + 1
    origins: list[int] = []
    for _tag, start, end, new_start, new_end in matcher.get_opcodes():
        last = min(max(end - 1, start), count - 1)
        origins += [min(start + offset, last) + 1 for offset in range(new_end - new_start)]
    return origins


def _start(hunk: str) -> int:
    match = _HUNK.match(hunk)
    if match is None:
        raise ValueError(f"`{hunk.strip()}` is no hunk header")
    first, count = int(match[1]), match[2]
    return first if count == "0" else first - 1
