"""What a header sees of the unit that includes it."""

from __future__ import annotations

from pathlib import Path

from amdflow.migrate.context import Context, Contexts, folders
from amdflow.migrate.include_graph import IncludeGraph
from amdflow.migrate.scan import Entry, classify

ROOT = Path("/tree")


def contexts(files: dict[str, str]) -> Contexts:
    entries = [Entry(name, ROOT / name, classify(name), len(text)) for name, text in files.items()]
    return Contexts(IncludeGraph(entries, files, ROOT, lambda _path: ()), files)


def found(files: dict[str, str], name: str) -> Context:
    context = contexts(files).of(name)
    assert context is not None
    return context


def test_all_that_comes_before_the_include_is_there_and_nothing_after() -> None:
    files = {"a.cu": '#include <x>\n#define N 3\n#include "k.cuh"\nint after;\n', "k.cuh": "int k[N];"}
    context = found(files, "k.cuh")
    assert (context.unit, context.before) == ("a.cu", "#include <x>\n#define N 3\n")


def test_a_header_deep_down_sees_each_includer_on_the_way_with_its_conditionals_closed() -> None:
    files = {
        "src/a.cu": '#define UNIT\n#include "../inc/mid.h"\n',
        "inc/mid.h": '#ifndef MID\n#define MID\n#include "low.h"\n#include "k.h"\n#endif\n',
        "inc/low.h": "typedef int T;\n",
        "inc/k.h": "T k;\n",
    }
    context = found(files, "inc/k.h")
    assert context.before == '#define UNIT\n#ifndef MID\n#define MID\n#include "low.h"\n#endif\n'
    assert context.reads == ("inc/low.h",)
    assert folders(context, ROOT) == (ROOT / "inc", ROOT / "src")


def test_braces_that_the_includer_leaves_open_are_closed_and_taken_off_again() -> None:
    files = {"a.cu": 'namespace x { // {\nint table[] = {\n#include "t.inc"\n};}\n', "t.inc": "1, 2"}
    context = found(files, "t.inc")
    closed = context.closed(files["t.inc"])
    assert closed.endswith("};};\n")
    assert context.opened(closed, files["t.inc"]) == files["t.inc"]
    answer = f"\n#include <hip/hip_runtime.h>\n{closed}"
    assert context.opened(answer, files["t.inc"]) == files["t.inc"], "no include inside an initializer"


def test_of_several_units_the_one_that_says_least_is_taken() -> None:
    files = {"a.cu": '#include <many>\nint a;\n#include "k.h"\n', "b.cu": '#include "k.h"\n', "k.h": "int k;"}
    assert found(files, "k.h").unit == "b.cu"


def test_files_that_nobody_or_only_each_other_include_have_none() -> None:
    files = {"a.cu": "", "x.h": '#include "y.h"\n', "y.h": '#include "x.h"\n'}
    assert all(contexts(files).of(name) is None for name in files)
