"""Bytes survive the way through text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amdflow.migrate.text import decode, encode, is_binary, line_ending, line_starts, printable, with_line_ending


@given(st.binary(max_size=80))
def test_every_byte_comes_back(data: bytes) -> None:
    assert encode(decode(data)) == data


def test_latin_1_is_shown_as_latin_1() -> None:
    assert printable(decode("größe".encode("latin-1"))) == "größe"
    assert printable("größe") == "größe"


def test_nul_bytes_mean_binary() -> None:
    assert is_binary("int a;".encode("utf-16"))
    assert not is_binary("größe".encode("latin-1"))


def test_the_files_own_line_ending_wins() -> None:
    assert line_ending("a\r\nb\r\nc\n") == "\r\n"
    assert line_ending("a\nb\n") == "\n"
    assert with_line_ending("a\r\nadded\nb\r\n", "\r\n") == "a\r\nadded\r\nb\r\n"


def test_line_starts() -> None:
    assert line_starts("ab\n\ncd") == [0, 3, 4]
