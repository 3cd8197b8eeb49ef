from __future__ import annotations

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from amdflow.report.difference import CONTEXT, edits, segments, split_lines

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "}"]), max_size=30)


def text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def rebuilt(parts: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    before: list[str] = []
    after: list[str] = []
    for part in parts:
        assert part["a"] == len(before) + 1
        assert part["b"] == len(after) + 1
        before += part["t"] if part["k"] == "=" else part["o"]
        after += part["t"] if part["k"] == "=" else part["n"]
    return before, after


@settings(deadline=None)
@given(LINES, LINES)
def test_segments_hold_both_files_whole(before: list[str], after: list[str]) -> None:
    old_text, new_text = text(before), text(after)
    assert rebuilt(segments(old_text, new_text)) == (before, after)


@settings(deadline=None)
@given(LINES, LINES, st.sets(st.integers(1, 30), max_size=3))
def test_a_cut_file_keeps_every_edit_and_every_marked_line(
    before: list[str], after: list[str], marked: set[int]
) -> None:
    old_text, new_text = text(before), text(after)
    parts = segments(old_text, new_text, marked, whole=False)
    shown: set[int] = set()
    a = b = 1
    for part in parts:
        assert (part["a"], part["b"]) == (a, b)
        old = part["c"] if part["k"] == "-" else len(part["t"] if part["k"] == "=" else part["o"])
        new = old if part["k"] in "-=" else len(part["n"])
        if part["k"] != "-":
            shown.update(range(a, a + old))
        a, b = a + old, b + new
    assert (a, b) == (len(before) + 1, len(after) + 1)
    assert {line for line in marked if line <= len(before)} <= shown


def test_far_away_lines_are_left_out_of_a_cut_file() -> None:
    before = [f"line {number}" for number in range(100)]
    after = [*before[:50], "changed", *before[51:]]
    kinds = [
        (part["k"], len(part.get("t", [])) or part.get("c", 1))
        for part in segments("\n".join(before), "\n".join(after), whole=False)
    ]
    assert kinds == [("-", 50 - CONTEXT), ("=", CONTEXT), ("~", 1), ("=", CONTEXT), ("-", 49 - CONTEXT)]


def test_lines_are_counted_as_a_compiler_counts_them() -> None:
    assert split_lines("a\x0cb\u2028c\r\nd\n\ne") == ["a\x0cb\u2028c", "d", "", "e"]
    assert split_lines("") == []
    assert edits(split_lines("a\r\nb\r\n"), split_lines("a\nb\n")) == []


def test_an_inserted_line_does_not_make_the_rest_differ() -> None:
    before = ["a", "b", "c", "d", "e"]
    assert edits(before, ["new", *before]) == [(0, 0, 0, 1)]
    assert edits(before, ["new", *before[:-1]]) == [(0, 0, 0, 1), (4, 5, 5, 5)]


def test_a_long_file_is_compared_quickly() -> None:
    before = [f"call({number % 7});" if number % 3 else "" for number in range(20_000)]
    after = ["#include <hip/hip_runtime.h>", *(line.replace("call(3)", "hip(3)") for line in before)]
    started = time.perf_counter()
    assert edits(before, after)
    assert time.perf_counter() - started < 10
