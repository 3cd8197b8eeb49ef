"""Lines of the translation traced back to the original."""

from __future__ import annotations

from amdflow.migrate.linemap import LineMap

ORIGINAL = "// head\n#include <cuda.h>\nvoid f() {\n  cudaFree(a);\n}\n\nint main() {\n  cudaMalloc(&p, 4);\n}"


def test_same_number_of_lines_means_same_lines() -> None:
    lines = LineMap(ORIGINAL, ORIGINAL.replace("cuda", "hip"))
    assert [lines.original(n) for n in (1, 4, 8)] == [1, 4, 8]


def test_added_lines_shift_the_rest() -> None:
    migrated = ORIGINAL.replace("cuda", "hip").replace("#include", "#include <hip/hip_runtime.h>\n#include")
    lines = LineMap(ORIGINAL, migrated)
    assert lines.original(5) == 4
    assert lines.original(9) == 8


def test_dropped_lines_shift_the_rest() -> None:
    migrated = ORIGINAL.replace("#include <cuda.h>\n", "").replace("cuda", "hip")
    assert LineMap(ORIGINAL, migrated).original(7) == 8


def test_lines_beyond_the_end_are_the_last_line() -> None:
    assert LineMap("a\nb", "a\nx\nb").original(99) == 2
    assert LineMap("", "").original(0) == 1


def test_cost_stays_linear_where_nothing_fits() -> None:
    old, new = (
        "\n".join(f"a{'(' * (n % 7)}" for n in range(20_000)),
        "\n".join(f"b{'[' * (n % 5)}" for n in range(20_001)),
    )
    assert LineMap(old, new).original(20_001) <= 20_000


def test_added_includes_take_no_line_where_the_next_is_rewritten() -> None:
    old = "#include <a.h>\nint f() { asm(1); }\nint g() { asm(2); }\nint h();\n"
    new = '#include <a.h>\n#include "x.h"\n#include "y.h"\nint f() { M(asm(1), p()); }\nint g() { M(asm(2), q()); }\nint h();\n'
    lines = LineMap(old, new)
    assert [lines.original(line) for line in range(1, 7)] == [1, 1, 1, 2, 3, 4]
    lines = LineMap("int f() { asm(1); }\n", '#include "x.h"\n#include "y.h"\nint f() { M(asm(1), p()); }\n')
    assert [lines.original(line) for line in (1, 2, 3)] == [1, 1, 1]
