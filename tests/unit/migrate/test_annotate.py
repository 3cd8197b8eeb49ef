"""Markers in the source: at the right line, in no place where they could change what compiles."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies

from amdflow.findings import Finding, Severity
from amdflow.migrate import lexer
from amdflow.migrate.annotate import annotate, annotate_all, strip
from amdflow.migrate.linemap import LineMap

MARK = "  // amdflow: AMF1302 silent: half a wave (see amdflow explain AMF1302)"
BLOCK = "  /* amdflow: AMF1302 silent: half a wave (see amdflow explain AMF1302) */"


def at(line: int, message: str = "half a wave", severity: Severity = Severity.SILENT, **extra: object) -> Finding:
    return Finding("AMF1302", severity, message, "a.cu", line, extra=dict(extra))


def marked(text: str, *findings: Finding) -> str:
    return annotate(text, findings, LineMap(text, text))


def test_a_marker_ends_the_line_of_its_finding_and_no_line_moves() -> None:
    assert marked("int a;\nint b;\n", at(2)) == f"int a;\nint b;{MARK}\n"
    assert marked("int a;\r\nint b;", at(1), at(2)) == f"int a;{MARK}\r\nint b;{MARK}"
    assert marked("int a;  // why\n", at(1), at(1)) == f"int a;  // why{MARK}{MARK}\n"
    assert marked("int a;\nint b;\n", at(1, lines=[1, 2])) == f"int a;{MARK}\nint b;{MARK}\n"


def test_notes_and_whole_files_get_none() -> None:
    text = "int a;\n"
    assert marked(text, at(0), at(1, severity=Severity.NOTE), at(9)) == text


def test_lines_are_those_of_the_migrated_text() -> None:
    original, migrated = "int a;\nint b;\n", "#include <x>\nint a;\nint b;\n"
    lines = LineMap.of([1, 1, 2, 3])
    assert annotate(migrated, [at(2)], lines) == f"#include <x>\nint a;\nint b;{MARK}\n"
    assert annotate_all({"a.cu": (original, LineMap(original, original)), "b.cu": ("", lines)}, [at(1)]) == {
        "a.cu": f"int a;{MARK}\nint b;\n"
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define F(x) \\\n  (x) \\\n  + 1\nint a;\n", f"#define F(x){BLOCK} \\\n  (x) \\\n  + 1\nint a;\n"),
        ("#define F\\\n  x\nint a;\n", f"#define F{BLOCK}\\\n  x\nint a;\n"),
        ("#define F\\\r\n  x\r\n", f"#define F{BLOCK}\\\r\n  x\r\n"),
        ("#define F \\\n", f"#define F{BLOCK} \\\n"),
    ],
)
def test_a_continued_line_takes_a_block_comment_before_its_backslash(text: str, expected: str) -> None:
    assert marked(text, at(1)) == expected
    assert strip(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "#define F\\\n(x) x\nint a;\n",  # would make F a macro without parameters
        "int long\\\nname;\n",  # one identifier
        "// a comment \\\nthat goes on\n",
        'const char* s = "a \\\nb";\n',
        "/* a\nb */ int c;\n",
        'asm(R"(\nmov\n)" : );\n',
        "int a; \\ \nint b;\n",  # continued for compilers
        "int a; ??/\nint b;\n",
    ],
)
def test_where_a_line_cannot_carry_a_marker_a_later_one_does(text: str) -> None:
    done = marked(text, at(1))
    assert strip(done) == text
    rows = done.split("\n")
    place = next(index for index, row in enumerate(rows) if "amdflow" in row)
    assert place > 0
    assert f"AMF1302 silent ({place} line{'s' if place > 1 else ''} above): half a wave" in rows[place]
    assert lexer.mask(done).split() == lexer.mask(text).split()


def test_a_message_cannot_break_out_of_its_comment() -> None:
    done = marked("#define F(x) \\\n  x\nint b;\n", at(1, "a */ b \\"), at(3, "ends in \\\nand ??/"))
    assert lexer.mask(done).split() == ["#define", "F(x)", "\\", "x", "int", "b;"]
    assert all(not row.endswith(("\\", "/")) for row in done.split("\n")[2:])


def test_marking_twice_is_marking_once_and_the_keepers_comments_stay() -> None:
    text = "// amdflow: keep\nint a; /* amdflow: AMF */\n// amdflow: end\nint b;\n"
    once = marked(text, at(2), at(4))
    assert once.count("explain") == 2
    assert annotate(once, [at(2), at(4)], LineMap(text, text)) == once
    assert annotate(once, [], LineMap(text, text)) == text


def tokens(text: str) -> list[str]:
    """Words of the text with continued lines joined, comments and strings blanked."""
    return re.sub(r"\\\r?(\n|$)", "", lexer.mask(text)).split()


PIECES = ["int a;", "/* x", "*/", '"s"', "// c", "\\", "\\\n", "\n", "\r\n", 'R"(', ')"', " ", "#define F", "(x)", "'"]


@settings(max_examples=300)
@given(
    strategies.lists(strategies.sampled_from(PIECES), max_size=14),
    strategies.lists(strategies.integers(1, 9), max_size=3),
)
def test_tokens_are_the_same_with_and_without_markers(pieces: list[str], lines: list[int]) -> None:
    text = "".join(pieces)
    done = marked(text, *(at(line) for line in lines))
    assert strip(done) == text
    assert done.count("\n") == text.count("\n")
    assert tokens(done) == tokens(text)
