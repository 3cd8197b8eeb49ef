"""Comments, strings and include paths told apart from code."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amdflow.migrate import lexer

HARD = r"""/* cudaFree */ int a = 1'000'000; // cudaFree \
 cudaFree still comment
const char* s = "cudaFree \" // no comment"; char c = '"';
auto raw = R"x(cudaFree ")x"; cudaFree(p); auto wide = L"cudaFree";
#include <cuda_runtime.h> // why
  # include "my \
"""


def upper(text: str) -> str:
    return lexer.rewrite(
        text, lambda word, _match: word.upper() if word == "cudaFree" else word, lambda _path, _quoted: None
    )


def test_only_code_is_rewritten() -> None:
    assert upper(HARD).count("CUDAFREE") == 1
    assert "CUDAFREE(p)" in upper(HARD)


def test_a_digit_separator_does_not_open_a_string() -> None:
    assert "1'000'000" in lexer.mask("x = 1'000'000; y = 'z';")
    assert "cudaFree" in lexer.mask("x = 1'000'000; cudaFree(p);")


def test_mask_keeps_every_offset_and_line() -> None:
    masked = lexer.mask(HARD)
    assert len(masked) == len(HARD)
    assert [i for i, c in enumerate(masked) if c == "\n"] == [i for i, c in enumerate(HARD) if c == "\n"]
    assert masked.count("cudaFree") == 1


def test_includes_outside_comments() -> None:
    text = '// #include <a.h>\n/*\n#include <b.h>\n*/\n#include <c.h>\n  #  include "d/e.h"\n'
    assert [(include.path, include.quoted) for include in lexer.includes(text)] == [("c.h", False), ("d/e.h", True)]


def test_an_include_can_be_renamed_or_dropped() -> None:
    text = '#include <old.h> // keep\n#include "gone.h"\n'
    new = lexer.rewrite(
        text, lambda word, _match: word, lambda path, _quoted: {"old.h": "new/old.h", "gone.h": ""}[path]
    )
    assert new == "#include <new/old.h> // keep\n\n"


def test_unfinished_strings_and_comments_end_with_the_text() -> None:
    assert lexer.mask("int a; /* cudaFree") == "int a;            "
    assert "cudaFree(q)" in lexer.mask('"open\ncudaFree(q)')


@given(st.text(alphabet="ab\"'\\/*\n\r#<>R(){} \t01é", max_size=60))
def test_any_text_survives(text: str) -> None:
    assert lexer.rewrite(text, lambda word, _match: word, lambda _path, _quoted: None) == text
    assert len(lexer.mask(text)) == len(text)


def test_an_include_behind_a_byte_order_mark_is_seen_and_rewritten() -> None:
    text = "\ufeff#include <cuda.h>\n"
    assert [found.path for found in lexer.includes(text)] == ["cuda.h"]
    assert lexer.rewrite(text, lambda name, _match: name, lambda _path, _quoted: "x.h") == "\ufeff#include <x.h>\n"
