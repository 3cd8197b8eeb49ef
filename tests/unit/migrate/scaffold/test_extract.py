"""What a scaffold takes out of a tree, and from which lines."""

from __future__ import annotations

from pathlib import Path

from amdflow.migrate.include_graph import IncludeGraph
from amdflow.migrate.scaffold.extract import ItemIndex, Target, needed, origins, written
from amdflow.migrate.scaffold.items import Includes, Item, read_items
from amdflow.migrate.scan import Entry, classify
from amdflow.migrate.syntax import Source

UNIT = """\
#include <hip/hip_runtime.h>
#include "steps.cuh"
#define WIDTH 64
#define UNUSED 1
struct Shape { int rows; };
texture<float> broken;
namespace ops {
namespace {
template <typename T>
__device__ T doubled(T x) { return x + x; }
#if WIDTH > 32
__global__ void scale(float* x, Shape shape) {
  x[0] = doubled(x[0]) * stepped(shape.rows);
}
#else
__global__ void scale(float* x, Shape shape) {}
#endif
}
#include "inside.inl"
__global__ void other(int* x) { x[0] = undeclared; }
struct Box {
  int depth;
  __device__ int size() const { return depth * WIDTH; }
  __device__ int area() const;
};
__device__ int Box::area() const { return size(); }
}
"""
FILES = {
    "src/unit.cu": UNIT,
    "src/steps.cuh": "#pragma once\n#ifndef STEPS\n#define STEPS\n__device__ inline int stepped(int n) { return n + 1; }\n#endif\n",
    "src/inside.inl": "__device__ int inner(int n) { return n * WIDTH; }\n",
}


def items(files: dict[str, str] = FILES) -> ItemIndex:
    root = Path("/tree")
    entries = [Entry(name, root / name, classify(name), len(text)) for name, text in files.items()]
    return ItemIndex(files, IncludeGraph(entries, files, root, lambda _path: ()))


def target(name: str, file: str = "src/unit.cu", index: int = 0) -> Target:
    return [found for found in items().targets(file) if found.function.name == name][index]


def names(parts: object) -> list[str]:
    assert isinstance(parts, list)
    return [name for part in parts if isinstance(part, Item) for name in sorted(part.names)]


def test_only_what_a_function_needs_comes_along() -> None:
    parts = needed(items().parts("src/unit.cu"), target("scale"))
    assert names(parts) == ["WIDTH", "Shape", "doubled", "scale", "scale"]
    assert [part.path for part in parts if isinstance(part, Includes)] == [
        "hip/hip_runtime.h",
        "steps.cuh",
        "inside.inl",
    ]


def test_items_of_included_files_replace_the_includes_of_the_tree() -> None:
    parts = needed(items().flattened("src/unit.cu"), target("scale"))
    assert names(parts) == ["stepped", "WIDTH", "Shape", "doubled", "scale", "scale"]
    assert [part.path for part in parts if isinstance(part, Includes)] == ["hip/hip_runtime.h"]


def test_a_file_included_in_a_namespace_keeps_that_place() -> None:
    unit = items().unit_of("src/inside.inl")
    assert unit == "src/unit.cu"
    wanted = target("inner", "src/inside.inl")
    inner = next(
        part for part in needed(items().flattened(unit), wanted) if isinstance(part, Item) and "inner" in part.names
    )
    assert inner.scopes == ("namespace ops {",)
    assert "WIDTH" in names(needed(items().flattened(unit), wanted))


def test_branches_keep_their_conditions_and_a_guard_is_none() -> None:
    parts = needed(items().flattened("src/unit.cu"), target("scale"))
    conditions = [part.conditions for part in parts if isinstance(part, Item)]
    assert conditions == [(), (), (), (), ("(WIDTH > 32)",), ("!(WIDTH > 32)",)]


def test_a_member_function_brings_its_class_and_lines_stay_known() -> None:
    parts = needed(items().parts("src/unit.cu"), target("Box::area"))
    assert names(parts) == ["WIDTH", "Box", "area"]
    text = written(parts, target("Box::area"))
    lines = text.split("\n")
    rows = origins(text)
    for wanted in ("__device__ int Box::area() const { return size(); }", "  int depth;", "#define WIDTH 64"):
        origin = rows[lines.index(wanted)]
        assert origin is not None
        assert UNIT.split("\n")[origin.line - 1] == wanted
        assert origin.own is (wanted.startswith("__device__"))


def test_a_member_defined_in_its_class_is_marked_inside_it() -> None:
    wanted = target("size")
    text = written(needed(items().parts("src/unit.cu"), wanted), wanted)
    rows = origins(text)
    own = [line.strip() for line, origin in zip(text.split("\n"), rows, strict=True) if origin and origin.own]
    assert own == ["__device__ int size() const { return depth * WIDTH; }"]
    after = rows[text.split("\n").index("  __device__ int area() const;")]
    assert after is not None
    assert (after.line, after.own) == (24, False)


def test_what_the_compiler_did_not_find_becomes_a_comment_and_scopes_close() -> None:
    parts = needed(items().parts("src/unit.cu"), target("scale"))
    text = written(parts, target("scale"), {"steps.cuh"})
    assert '// not found by the compiler: "steps.cuh"' in text
    assert '#include "steps.cuh"' not in text
    assert text.count("{") == text.count("}")


def test_declarations_are_known_by_all_their_names() -> None:
    source = Source(
        "a.cu",
        "static const int one = 1, two[2] = {1, 2};\nenum Colour { Red, Green };\nusing Real = float;\n"
        "typedef struct { int a; } Pair;\n__constant__ float table[4];\nfloat* make(const float& x, int (&rows)[4]);\n",
    )
    assert [sorted(part.names) for part in read_items(source) if isinstance(part, Item)] == [
        ["one", "two"],
        ["Colour", "Green", "Red"],
        ["Real"],
        ["Pair"],
        ["table"],
        ["make"],
    ]


def test_a_main_gets_another_name_and_keeps_its_lines() -> None:
    files = {"main.cu": "int one() { return 1; }\nint main() {\n  return one();\n}\n"}
    whole = items(files)
    wanted = whole.targets("main.cu")[1]
    text = written(needed(whole.parts("main.cu"), wanted), wanted)
    assert "#define main program_main\n// >>>> yours to work on: main, from main.cu:2" in text
    origin = origins(text)[text.split("\n").index("  return one();")]
    assert origin is not None
    assert (origin.line, origin.own) == (3, True)
