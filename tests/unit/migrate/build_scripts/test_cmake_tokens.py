"""CMake files are read as CMake reads them, or not at all."""

from __future__ import annotations

import pytest

from amdflow.migrate.build_scripts.cmake_tokens import read_commands


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set(A b c)", [("set", ["A", "b", "c"])]),
        ("SET ( A\n  b )\n", [("set", ["A", "b"])]),
        ("# set(A)\nset(B) # set(C)\n", [("set", ["B"])]),
        ("#[[ set(A)\n]] set(B)", [("set", ["B"])]),
        ("#[==[ ]] set(A) ]==]\nset(B)", [("set", ["B"])]),
        ('set(A "b # (c) \\" d")', [("set", ["A", 'b # (c) \\" d'])]),
        ('set(A [[b ) " c]])', [("set", ["A", 'b ) " c'])]),
        ("set(A [=[b ]] c]=])", [("set", ["A", "b ]] c"])]),
        ("if((A AND B) OR (C))\nendif()", [("if", ["(", "A", "AND", "B", ")", "OR", "(", "C", ")"]), ("endif", [])]),
        ("set(A b # one\n  c) # two", [("set", ["A", "b", "c"])]),
        (
            'add(-DX="a b" ${V} $<$<BOOL:x>:y> $ENV{Z} a\\ b)',
            [("add", ['-DX="a b"', "${V}", "$<$<BOOL:x>:y>", "$ENV{Z}", "a\\ b"])],
        ),
        ("\ufeffset(A)\r\nset(B)\r\n", [("set", ["A"]), ("set", ["B"])]),
        ("", []),
    ],
)
def test_commands_and_their_arguments(text: str, expected: list[tuple[str, list[str]]]) -> None:
    commands = read_commands(text)
    assert commands is not None
    assert [(command.name, command.values) for command in commands] == expected
    for command in commands:
        assert text[command.closed] == ")"
        assert all(text[argument.start : argument.end] == argument.text for argument in command.arguments)


@pytest.mark.parametrize("text", ["set(A", 'set("A)', "set A)", "@PACKAGE_INIT@\nset(A)", "set(A))", "if(", "<html>"])
def test_what_is_no_cmake_is_not_read(text: str) -> None:
    assert read_commands(text) is None
