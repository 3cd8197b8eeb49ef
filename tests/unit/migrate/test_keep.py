"""Regions that are left alone: where they are found, and that they come back unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from amdflow.migrate import keep

SOURCE = """\
#include <cuda_runtime.h>
// amdflow: keep for the CUDA build
void a(void* p) { cudaFree(p); }

  // amdflow: end
void b(void* p) { cudaFree(p); }  /* amdflow: keep */ int c = __popc(1); /* amdflow: end */ int d;
"""


def test_regions_and_their_lines() -> None:
    kept = keep.find(SOURCE)
    assert [(region.first_line, region.last_line) for region in kept.regions] == [(2, 5), (6, 6)]
    assert [SOURCE[region.start : region.end] for region in kept.regions] == [
        "\nvoid a(void* p) { cudaFree(p); }\n\n  ",
        " int c = __popc(1); ",
    ]
    assert [line for line in range(1, 8) if kept.covers(line)] == [2, 3, 4, 5, 6]
    assert not kept.strays


def test_blanking_moves_nothing() -> None:
    kept = keep.find(SOURCE)
    assert len(kept.blanked) == len(SOURCE)
    assert kept.blanked.count("\n") == SOURCE.count("\n")
    assert kept.blanked.count("cudaFree") == 1
    assert "__popc" not in kept.blanked


def test_a_changed_region_is_restored_and_the_rest_stays_changed() -> None:
    kept = keep.find(SOURCE)
    changed = "#include <hip/hip_runtime.h>\n" + SOURCE.replace("cudaFree", "hipFree").replace("__popc", "popcll")
    restored = keep.restore(kept, changed)
    assert restored is not None
    assert "void a(void* p) { cudaFree(p); }" in restored
    assert "void b(void* p) { hipFree(p); }  /* amdflow: keep */ int c = __popc(1);" in restored
    assert keep.restore(kept, "no markers left\n") is None
    assert keep.restore(keep.find("plain"), "changed") == "changed"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("// amdflow: keep\nint a;\n", [1]),
        ("int a;\n// amdflow: end\n", [2]),
        ("// amdflow: keep\n// amdflow: keep\n// amdflow: end\n", [2]),
        ("// amdflow: end\n// amdflow: keep\n", [1, 2]),
    ],
)
def test_markers_without_a_partner_are_told(text: str, lines: list[int]) -> None:
    assert [stray.line for stray in keep.find(text).strays] == lines


def test_markers_count_in_comments_only() -> None:
    assert not keep.find('const char* s = "// amdflow: keep"; const char* t = R"(// amdflow: end)";\n').strays
    assert not keep.find("/* text\n// amdflow: keep\n*/\n").strays
    assert not keep.find("// see amdflow: keep, or // amdflow: keepsake\n// amdflow: keepsake\n").strays
    assert not keep.find("#define A 1\n# amdflow: keep\n").strays, "no comment in C++"


def test_build_files_use_hash_comments_on_lines_of_their_own() -> None:
    text = 'set(X "# amdflow: end")\n  # amdflow: keep\nfind_package(CUDA)\n# amdflow: end\nproject(b)\n'
    kept = keep.find(text, build_file=True)
    assert [(region.first_line, region.last_line) for region in kept.regions] == [(2, 4)]
    assert "find_package" not in kept.blanked
    assert keep.restore(kept, text.replace("CUDA", "hip").replace("(b)", "(c)"), build_file=True) == text.replace(
        "(b)", "(c)"
    )


def test_bytes_line_ends_and_continued_lines_survive() -> None:
    text = "// amdflow: keep\r\n#define A \\\r\n  x\udcff\r\n// amdflow: end\r\n"
    kept = keep.find(text)
    assert kept.blanked.count("\\\r\n") == 1
    assert keep.restore(kept, kept.blanked) == text


@given(strategies.lists(strategies.sampled_from(["// amdflow: keep\n", "// amdflow: end\n", "int x;\n", '"s"\n'])))
def test_restoring_what_was_blanked_gives_the_text_back(lines: list[str]) -> None:
    text = "".join(lines)
    kept = keep.find(text)
    assert keep.restore(kept, kept.blanked) == text
