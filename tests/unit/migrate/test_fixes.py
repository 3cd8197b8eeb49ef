"""Automatic fixes keep the meaning, and say what they did."""

from __future__ import annotations

import pytest

from amdflow.migrate.compat import StandIn, with_dependencies
from amdflow.migrate.fixes import Applied, Draft, Fix, FixContext
from amdflow.migrate.fixes.compat_headers import defined_names, use_compat_headers
from amdflow.migrate.fixes.compiler_macros import extend_compiler_conditions
from amdflow.migrate.fixes.lane_masks import ALL_LANES, CAST, WIDENED, find_mask_names, widen_lane_masks
from amdflow.migrate.fixes.runtime_header import add_math_header, add_runtime_header
from amdflow.migrate.lexer import mask


def apply(fix: Fix, text: str, context: FixContext | None = None) -> tuple[str, list[Applied]]:
    change = fix(Draft("a.cu", text, True, context or FixContext()))
    return change.text, list(change.applied)


def widen(text: str, *others: str) -> tuple[str, list[Applied]]:
    return apply(widen_lane_masks, text, find_mask_names([mask(text), *map(mask, others)]))


def in_device(statement: str, parameters: str = "int v") -> str:
    return f"__device__ int f({parameters}) {{\n  {statement}\n}}\n"


@pytest.mark.parametrize(
    "written",
    ["0xffffffff", "0xFFFFFFFFu", "0xffffffffUL", "~0", "~0u", "-1", "(unsigned)-1", "4294967295u", "UINT_MAX"],
)
def test_all_ones_become_all_lanes_of_the_wave(written: str) -> None:
    text, applied = widen(in_device(f"return __shfl_down_sync({written}, v, 1);"))
    assert f"__shfl_down_sync({ALL_LANES}, v, 1)" in text
    assert [(fix.rule, fix.line) for fix in applied] == [(WIDENED, 2)]


@pytest.mark.parametrize("written", ["0xffffffffffffffffull", "~0ull", "__activemask()", "static_cast<uint64_t>(m)"])
def test_masks_that_are_wide_already_stay(written: str) -> None:
    before = in_device(f"return __any_sync({written}, v);")
    assert widen(before) == (before, [])


def test_a_macro_that_is_only_a_mask_is_widened_where_it_is_defined() -> None:
    text, applied = widen("#define FULL 0xffffffff\n" + in_device("return __ballot_sync(FULL, v);"))
    assert text.startswith(f"#define FULL {ALL_LANES}\n")
    assert "__ballot_sync(FULL, v)" in text
    assert applied[0].line == 1


def test_a_macro_that_is_used_otherwise_keeps_its_value() -> None:
    before = "#define FULL 0xffffffff\n" + in_device("if (v == FULL) return 0; return __shfl_sync(FULL, v, 0);")
    text, applied = widen(before)
    assert "#define FULL 0xffffffff\n" in text
    assert "v == FULL" in text
    assert f"__shfl_sync({ALL_LANES} /* FULL */, v, 0)" in text
    assert [fix.rule for fix in applied] == [WIDENED]


def test_another_file_counts_as_a_use() -> None:
    text, _applied = widen(
        "#define FULL 0xffffffff\n" + in_device("return __shfl_sync(FULL, v, 0);"),
        "int x = __any_sync(FULL, 1) + FULL;",
    )
    assert "#define FULL 0xffffffff\n" in text


def test_a_constant_gets_a_wide_type_too() -> None:
    text, _applied = widen("constexpr unsigned kAll = 0xffffffffu;\n" + in_device("return __all_sync(kAll, v);"))
    assert text.startswith(f"constexpr unsigned long long kAll = {ALL_LANES};")


def test_a_local_mask_is_made_wide() -> None:
    text, applied = widen(
        in_device("unsigned m = __activemask(); v = __shfl_sync(m, v, 0); return __shfl_sync(m, v, 1);")
    )
    assert "unsigned long long m = __activemask();" in text
    assert [fix.rule for fix in applied] == [WIDENED]


def test_a_computed_mask_is_cast_and_reported_as_a_risk() -> None:
    text, applied = widen(in_device("return __shfl_sync((1u << n) - 1, v, 0);", "int v, int n"))
    assert "__shfl_sync(static_cast<unsigned long long>((1u << n) - 1), v, 0)" in text
    assert [fix.rule for fix in applied] == [CAST]


def test_macro_bodies_are_seen() -> None:
    text, applied = widen("#define RED(v) \\\n  v += __shfl_down_sync(0xffffffff, v, \\\n    16)\n")
    assert f"__shfl_down_sync({ALL_LANES}, v," in text
    assert applied[0].line == 2


def test_comments_and_strings_stay() -> None:
    before = '// __shfl_sync(0xffffffff, v, 0)\nconst char* s = "__shfl_sync(0xffffffff, v, 0)";\n'
    assert widen(before) == (before, [])


def test_line_endings_and_odd_bytes_survive() -> None:
    text, _applied = apply(
        widen_lane_masks, "// gr\udcf6\udcdfe\r\n" + in_device("return __any_sync(-1, v);").replace("\n", "\r\n")
    )
    assert text.startswith("// gr\udcf6\udcdfe\r\n")
    assert text.count("\r\n") == 4
    assert ALL_LANES in text


def test_the_runtime_header_comes_before_the_programs_own() -> None:
    text, applied = apply(add_runtime_header, '// head\n#include "own.h"\n#include <hip/hip_runtime.h>\n')
    assert text.startswith('// head\n#include <hip/hip_runtime.h>\n#include "own.h"')
    assert applied[0].line == 2


def test_the_runtime_header_is_not_added_twice() -> None:
    before = '#include <cstdio>\n#include <hip/hip_runtime.h>\n#include "own.h"\n'
    assert apply(add_runtime_header, before) == (before, [])


def test_the_runtime_header_goes_behind_the_byte_order_mark() -> None:
    text, _applied = apply(add_runtime_header, "\ufeff__global__ void k() {}\r\n")
    assert text == "\ufeff#include <hip/hip_runtime.h>\r\n__global__ void k() {}\r\n" or text.startswith(
        "\ufeff#include <hip/hip_runtime.h>"
    )


STAND_INS = {"__ldcs": StandIn("amdflow::ldcs", "cache_operators.h")}


def test_a_missing_function_comes_from_a_header_of_ours() -> None:
    before = (
        "#include <hip/hip_runtime.h>\n#if X\n#include <x.h>\n#endif\nint f(int* p) { return __ldcs(p); } // __ldcs\n"
    )
    change = use_compat_headers(Draft("a/b/c.cu", before, True, FixContext(stand_ins=STAND_INS)))
    text = change.text
    assert text.startswith('#include <hip/hip_runtime.h>\n#include "../../amdflow_compat/cache_operators.h"\n#if X\n')
    assert "return amdflow::ldcs(p); } // __ldcs" in text
    assert change.compat == {"cache_operators.h"}
    assert [fix.line for fix in change.applied] == [5]


def test_a_function_that_the_tree_defines_is_left_alone() -> None:
    masked = ["__device__ int __ldcs(const int* p) { return *p; }", "#define __stcs(p, v) (*(p) = (v))"]
    own = defined_names(masked, {"__ldcs", "__stcs", "__ldcg"})
    assert own == {"__ldcs", "__stcs"}
    before = "int f(int* p) { return __ldcs(p); }\n"
    context = FixContext(own_names=frozenset(own), stand_ins=STAND_INS)
    assert apply(use_compat_headers, before, context) == (before, [])


def test_headers_of_ours_bring_what_they_include() -> None:
    assert with_dependencies({"cooperative_groups_scan.h"}) == {
        "cooperative_groups_scan.h",
        "cooperative_groups_reduce.h",
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("#ifdef __CUDACC__", "#if defined(__CUDACC__) || defined(__HIPCC__)"),
        ("#ifndef __NVCC__", "#if !defined(__NVCC__) && !defined(__HIPCC__)"),
        ("#ifdef __CUDACC__ // no __HIPCC__", "#if defined(__CUDACC__) || defined(__HIPCC__) // no __HIPCC__"),
        ("  # ifdef __CUDACC__ // why", "  # if defined(__CUDACC__) || defined(__HIPCC__) // why"),
        ("#if !defined __CUDACC__ && X", "#if !(defined(__CUDACC__) || defined(__HIPCC__)) && X"),
        ("#ifdef __CUDA_ARCH__", "#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)"),
    ],
)
def test_questions_about_the_compiler_hold_for_hip_too(before: str, after: str) -> None:
    text, applied = apply(extend_compiler_conditions, f"int a;\n{before}\n#endif\n")
    assert text == f"int a;\n{after}\n#endif\n"
    assert [fix.line for fix in applied] == [2]


def test_a_question_that_hipify_clang_renamed_is_not_the_authors() -> None:
    original = "#ifdef __CUDACC__\n#endif\n#ifdef __CUDA_ARCH__\n#endif\n"
    draft = Draft("a.cu", original.replace("__CUDACC__", "__HIPCC__"), True, FixContext(), original)
    assert "defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)" in extend_compiler_conditions(draft).text


@pytest.mark.parametrize(
    "kept",
    [
        "#if __CUDA_ARCH__ >= 800",
        "#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 600)",
        "#if defined(__CUDACC__) || defined(__HIPCC__)",
        "// #ifdef __CUDACC__",
        "#ifdef __CUDA_ARCH__\n#define A 1\n#elif defined(__HIP_DEVICE_COMPILE__)\n#define A 2",
        "#ifdef __HIPCC__\n#define W 64\n#endif\n#ifdef __CUDACC__\n#define W 32",
        "#ifndef __CUDACC__\n#define __CUDACC__",
        "#ifdef __CUDACC_VER_MAJOR__",
    ],
)
def test_comparisons_and_what_knows_hip_already_stay(kept: str) -> None:
    assert apply(extend_compiler_conditions, f"{kept}\n#endif\n") == (f"{kept}\n#endif\n", [])


def test_c_math_names_get_their_header() -> None:
    text, applied = apply(add_math_header, "#include <cmath>\nbool f(float x) { return isfinite(x); }\n")
    assert text.startswith("#include <cmath>\n#include <math.h>\n")
    assert [fix.line for fix in applied] == [2]


@pytest.mark.parametrize(
    "kept",
    [
        "bool f(float x) { return std::isnan(x); }\n",
        "#include <math.h>\nbool f(float x) { return isnan(x); }\n",
        "// isnan(x)\n",
    ],
)
def test_math_header_is_not_added_without_need(kept: str) -> None:
    assert apply(add_math_header, kept) == (kept, [])
