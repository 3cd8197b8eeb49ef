"""Who includes whom, and what a result depends on."""

from __future__ import annotations

from pathlib import Path

from amdflow.migrate.include_graph import Digests, IncludeGraph
from amdflow.migrate.scan import Entry, classify


def graph(files: dict[str, str], folders: tuple[str, ...] = ()) -> IncludeGraph:
    root = Path("/tree")
    entries = [Entry(name, root / name, classify(name), len(text)) for name, text in files.items()]
    return IncludeGraph(entries, files, root, lambda _path: [root / folder for folder in folders])


FILES = {
    "src/a.cu": '#include "b.cuh"\n#include <lib/c.h>\n#include <cuda_runtime.h>\n',
    "src/b.cuh": '#include "a.cu"\n#include "deep/d.h"\n',
    "include/lib/c.h": "",
    "other/deep/d.h": "",
    "src/alone.cu": "",
}


def test_includes_are_followed_through_loops() -> None:
    made = graph(FILES, ("include",))
    assert made.closure("src/a.cu")[0] == "src/a.cu"
    assert set(made.closure("src/a.cu")) == {"src/a.cu", "src/b.cuh", "include/lib/c.h", "other/deep/d.h"}
    assert made.closure("src/alone.cu") == ["src/alone.cu"]
    assert made.included == {"src/b.cuh", "include/lib/c.h", "src/a.cu", "other/deep/d.h"}


def test_a_folder_nobody_names_is_found_by_the_header_in_it() -> None:
    made = graph(FILES, ("include",))
    assert made.closure_folders("src/a.cu") == (Path("/tree/other"),)


def test_the_nearest_header_of_that_name_is_taken() -> None:
    made = graph({"x/src/a.cu": '#include "util/u.h"\n', "x/lib/util/u.h": "", "y/util/u.h": ""})
    assert made.closure("x/src/a.cu") == ["x/src/a.cu", "x/lib/util/u.h"]


def test_a_digest_changes_with_what_is_included_and_with_flags() -> None:
    made = graph(FILES, ("include",))
    before = Digests(made, FILES).of(("src/a.cu",), "-O1")
    assert Digests(made, {**FILES, "src/alone.cu": "x"}).of(("src/a.cu",), "-O1") == before
    assert Digests(made, {**FILES, "other/deep/d.h": "x"}).of(("src/a.cu",), "-O1") != before
    assert Digests(made, FILES).of(("src/a.cu",), "-O2") != before


def test_an_include_by_macro_leads_to_every_file_the_macro_may_name() -> None:
    made = graph({"a.cu": "#include KERNEL\n", "config.h": '#define KERNEL "fast.cuh"\n', "fast.cuh": "int k;\n"})
    assert made.included == {"fast.cuh"}
    assert made.closure("a.cu") == ["a.cu", "fast.cuh"]
