"""Warp functions go to logical warps of 32 lanes; what knows AMD's waves already is left alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amdflow.content import shipped
from amdflow.findings import Finding, Severity
from amdflow.migrate.compat import header, with_dependencies
from amdflow.migrate.finish import FIXES
from amdflow.migrate.fixes import Applied, Draft, FixContext
from amdflow.migrate.fixes.cub_warps import write_out_warp_widths
from amdflow.migrate.fixes.fragments import bring_fragment_headers, needs_of_fragments
from amdflow.migrate.fixes.lane_masks import find_mask_names
from amdflow.migrate.fixes.logical_warps import (
    HARDWARE_WIDTH,
    LEFT_ALONE,
    RULE,
    keeps_warps,
    own_warp_functions,
    use_logical_warps,
)
from amdflow.migrate.fixes.wave_awareness import wave_aware_files
from amdflow.migrate.hazards import WHOLE_FILE, settle
from amdflow.migrate.lexer import mask
from amdflow.migrate.rules.catalogue import load_catalogue

STAND_INS = load_catalogue(shipped("migration").parent).supplement.stand_ins


def use(text: str, context: FixContext | None = None, name: str = "a.cu") -> tuple[str, list[Applied]]:
    change = use_logical_warps(Draft(name, text, True, context or FixContext(own_names=own_warp_functions([text]))))
    return change.text, list(change.applied)


def body(text: str) -> str:
    """The text without the includes that were added."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#include"))


def widths(text: str) -> str:
    return write_out_warp_widths(Draft("a.cu", text, True, FixContext())).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v += __shfl_down_sync(0xffffffff, v, 1);", "v += amdflow::shfl_down_sync(0xffffffff, v, 1);"),
        ("#define S(v) __shfl_xor(v, 1)", "#define S(v) amdflow::shfl_xor(v, 1)"),
        ("#define SHUFFLE __shfl_sync", "#define SHUFFLE amdflow::shfl_sync"),
        ("auto f = [&] { return __any(p) + ::__all(p); };", "auto f = [&] { return amdflow::any(p) + ::amdflow::all(p); };"),
        ("unsigned m = __ballot_sync(~0u, p);", "unsigned m = amdflow::ballot_sync(~0u, p);"),
        ("__syncwarp(); m = __activemask();", "amdflow::syncwarp(); m = amdflow::activemask();"),
        ("int n = __reduce_add_sync(m, v) + __match_any_sync(m, v);", "int n = amdflow::reduce_add_sync(m, v) + amdflow::match_any_sync(m, v);"),
        ("#define S(how, v) __shfl_##how(v, 1)", "#define S(how, v) amdflow::shfl_##how(v, 1)"),
        ("#define S(how, v) __shfl ## how ## _sync(~0u, v, 1)", "#define S(how, v) amdflow::shfl ## how ## _sync(~0u, v, 1)"),
        ("#define R(how, v) __reduce_##how##_sync(~0u, v)", "#define R(how, v) amdflow::reduce_##how##_sync(~0u, v)"),
        ("#define W(what, p) __##what##_sync(~0u, p)", "#define W(what, p) amdflow::what##_sync(~0u, p)"),
        ("__global__ void k() { /* the int warpSize */ f(warpSize); }", "__global__ void k() { /* the int warpSize */ f(amdflow::warp_size); }"),
        ('void f() { puts("int warpSize"); g(warpSize); }', 'void f() { puts("int warpSize"); g(amdflow::warp_size); }'),
        ("auto g = cg::coalesced_threads();", "auto g = cg::coalesced_warp_threads();"),
        ("__shared__ float s[warpSize];", "__shared__ float s[amdflow::warp_size];"),
        ("template <int N = warpSize> struct A;", "template <int N = amdflow::warp_size> struct A;"),
        ("int n = props(0).warpSize + now::get(d)->warpSize;", "int n = amdflow::warp_size + amdflow::warp_size;"),
        ("int f() { return (*p).warpSize; }", "int f() { return amdflow::warp_size; }"),
        ("int n = std::log2(p.warpSize);", "int n = std::log2(amdflow::warp_size);"),
        ("if (stream) launch(stream, p.warpSize);", "if (stream) launch(stream, amdflow::warp_size);"),
        ("int n = 1024 / prop.warpSize;", "int n = 1024 / amdflow::warp_size;"),
        ("if (props[d]->warpSize != 32) exit(1);", "if (amdflow::warp_size != 32) exit(1);"),
        (
            "hipDeviceGetAttribute(&n, hipDeviceAttributeWarpSize, d);",
            "amdflow::device_attribute(&n, hipDeviceAttributeWarpSize, d);",
        ),
    ],
)  # fmt: skip
def test_warp_functions_and_the_warp_size_are_redirected(before: str, after: str) -> None:
    text, applied = use(before + "\n")
    assert body(text) == after + "\n"
    assert {fix.rule for fix in applied} == {RULE}


@pytest.mark.parametrize(
    "kept",
    [
        '// __shfl_sync(m, v, 0)\nconst char* s = "__ballot_sync";\n',
        "x.__any(1); other::__all(2); my__shfl(v);\n",
        "#ifdef __shfl_sync\n#endif\n#if defined(__ballot)\n#endif\n",
        "void f() { int warpSize = 3; g(warpSize); }\n",
        "void f(int warpSize) { g(warpSize); }\n",
        "const int warpSize = 16;\nint f() { return warpSize; }\n",
        "namespace n {\nconstexpr int warpSize = 16;\nint f() { return warpSize; }\n}\n",
        "template <int warpSize> void f() { g(warpSize); }\n",
        "struct Device { int warpSize; int twice() { return 2 * warpSize; } };\nint f(Device d) { return d.warpSize; }\n",
        'printf("%d", prop.warpSize);\n',
        "std::cout << prop.warpSize;\n",
        "query(&prop.warpSize);\n",
        "prop.warpSize = 64;\n",
        "#define warpSize 32\nint n = warpSize;\n",
        "int coalesced_threads() { return 1; }\nint n = coalesced_threads() + g.coalesced_threads();\n",
        "#define __shfl_sync(m, v, l) mine(v)\n#define S(how) __shfl_##how(v, 1)\n",
        "#define JOIN(a, b) a##b\n#define MATH(f) __##f##f(x)\n",
    ],
)
def test_what_is_no_warp_function_or_the_programs_own_stays(kept: str) -> None:
    assert use(kept) == (kept, [])


def test_a_warp_size_that_cannot_be_followed_is_told() -> None:
    before = "int n = props(at(0)).warpSize;\nint f() { return (p).warpSize; }\n"
    text, applied = use(before)
    assert text == before
    assert [(fix.rule, fix.line) for fix in applied] == [(HARDWARE_WIDTH, 1), (HARDWARE_WIDTH, 2)]


def test_properties_are_known_by_their_name_in_other_files_too() -> None:
    header, source = "struct Context { hipDeviceProp_t prop; };\n", "int warpSize = c.prop.warpSize + mine.warpSize;\n"
    context = FixContext(own_names=own_warp_functions([header, source]))
    assert body(use(source, context)[0]) == "int warpSize = amdflow::warp_size + mine.warpSize;\n"


def test_a_local_variable_hides_the_warp_size_in_its_function_only() -> None:
    text, _applied = use("void f() { int warpSize = 3; g(warpSize); }\n__global__ void k() { h(warpSize); }\n")
    assert "g(warpSize)" in text
    assert "h(amdflow::warp_size)" in text


def test_masks_keep_their_32_bits() -> None:
    before = (
        "#define FULL 0xffffffff\n__device__ int f(int v) {\n  unsigned m = __ballot_sync(FULL, v);\n"
        "  return __shfl_sync(1u << 3, v, __ffs(m) - 1);\n}\n"
    )
    text, context = before, FixContext(own_names=own_warp_functions([before]))
    for fix in FIXES:
        text = fix(Draft("a.cu", text, False, context)).text
    assert body(text) == before.replace("__ballot_sync", "amdflow::ballot_sync").replace(
        "__shfl_sync", "amdflow::shfl_sync"
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("auto warp = cg::tiled_partition<32>(block); int lane = threadIdx.x % 32;", True),
        ("auto warp = cg::tiled_partition<32>(block); v += __shfl_down(v, 16);", False),
        ("// tiled_partition<32>\nint lane = threadIdx.x % 32;", False),
    ],
)
def test_tiles_of_32_lanes_are_as_wide_on_every_target(text: str, kept: bool) -> None:
    assert keeps_warps("a.cu", text, FixContext(native_warps=True)) is kept


def test_native_warps_leave_everything_as_wide_as_the_hardware() -> None:
    before = "#define FULL 0xffffffff\n__device__ int f(int v) { return __any_sync(FULL, v) + warpSize; }\n"
    masks = find_mask_names([before])
    text, context = before, FixContext(masks.mask_names, masks.values, native_warps=True)
    for fix in FIXES:
        text = fix(Draft("a.cu", text, False, context)).text
    assert text == before.replace("0xffffffff", "0xffffffffffffffffull")
    assert not keeps_warps("a.cu", text, context)


def test_the_header_comes_before_the_first_use_and_behind_other_includes() -> None:
    text, _applied = use(
        "#pragma once\n#include <a.h>\ninline int f(int v) { return __any(v); }\n#include <late.h>\n", name="x/y/a.cuh"
    )
    assert text.startswith('#pragma once\n#include <a.h>\n#include "../../amdflow_compat/warp.h"\ninline')


def test_what_includes_a_fragment_brings_its_headers() -> None:
    files = {
        "a.cu": '#include <vector>\n#include "guarded.h"\nnamespace n {\n#include "outer.inl"\n}\n',
        "outer.inl": '// for the inside of a namespace\n#include "inner.inl"\n',
        "inner.inl": "__device__ int g(int v) { __nanosleep(1); return __any(v); }\n",
        "guarded.h": "#pragma once\ninline int h(int v) { return __any(v); }\n",
    }
    resolved = {"a.cu": {"outer.inl": "outer.inl", "guarded.h": "guarded.h"}, "outer.inl": {"inner.inl": "inner.inl"}}
    needs = needs_of_fragments(files, resolved, FixContext(stand_ins=STAND_INS))
    headers = {"warp.h", "device_functions.h"}
    assert needs == {"a.cu": headers, "outer.inl": headers}
    brought = '#include "amdflow_compat/device_functions.h"\n#include "amdflow_compat/warp.h"\n'
    change = bring_fragment_headers(Draft("a.cu", files["a.cu"], True, FixContext(fragment_needs=needs)))
    assert change.text.startswith(f'#include <vector>\n{brought}#include "guarded.h"\n')
    assert change.compat == headers
    again = bring_fragment_headers(Draft("a.cu", change.text, True, FixContext(fragment_needs=needs)))
    assert again.text == change.text


@pytest.mark.parametrize(
    "nested",
    [
        'extern "C" {\n#include "c.h"\n}\n',
        'int table[] = {\n#include "t.inc"\n};\n',
        'namespace n {\n#include "n.h"\n}\n',
    ],
)
@pytest.mark.parametrize(
    "use_of", ["__any(1)", "__nanosleep(1)", 'asm("mov.u32 %0, %laneid;" : "=r"(x))', "isnan(1.0)"]
)
def test_headers_come_behind_the_last_include_outside_of_braces_before_the_use(nested: str, use_of: str) -> None:
    text = f'#include <a.h>\n{nested}inline void f(unsigned x) {{ {use_of}; }}\n#include "late.inl"\n'
    for fix in FIXES:
        text = fix(Draft("a.cuh", text, False, FixContext(stand_ins=STAND_INS))).text
    assert text.startswith("#include <a.h>\n#include ")
    assert nested in text
    assert text.endswith('}\n#include "late.inl"\n')


def test_branches_of_a_conditional_count_braces_once() -> None:
    text = "#ifdef A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\n#include <b.h>\nint h() { return __any(1); }\n"
    assert '#include <b.h>\n#include "amdflow_compat/warp.h"\n' in use(text)[0]


def test_a_host_file_gets_no_more_than_the_size() -> None:
    text, _applied = use("#include <vector>\nint f(hipDeviceProp_t p) { return p.warpSize; }\n", name="host.cpp")
    assert '#include "amdflow_compat/warp_size.h"' in text
    assert "warp.h" not in text


def test_active_threads_as_a_group_are_those_of_the_own_warp() -> None:
    text, _applied = use("#include <hip/hip_cooperative_groups.h>\nauto g = cooperative_groups::coalesced_threads();\n")
    assert "auto g = cooperative_groups::coalesced_warp_threads();" in text
    assert '#include "amdflow_compat/cooperative_groups_coalesced.h"' in text


def test_functions_that_the_tree_defines_are_its_own() -> None:
    definition = "__device__ float2 __shfl_down_sync(unsigned m, float2 v, int d) { return v; }\n"
    own = own_warp_functions([definition])
    assert "__shfl_down_sync" in own
    context = FixContext(own_names=own)
    text, _applied = use(definition + "float2 a = __shfl_down_sync(m, v, 1); int b = __any(p);\n", context)
    assert "a = __shfl_down_sync(m" in text
    assert "b = amdflow::any(p)" in text
    assert not keeps_warps("a.cu", text, context)


def test_a_macro_that_spells_one_function_by_another_changes_nothing() -> None:
    before = "#if CUDART_VERSION < 9000\n#define __shfl_sync(m, v, l) __shfl(v, l)\n#endif\nint f(int v) { return __shfl_sync(1, v, 0); }\n"
    text, _applied = use(before)
    assert "#define __shfl_sync(m, v, l) amdflow::shfl(v, l)" in text
    assert "return amdflow::shfl_sync(1, v, 0)" in text


@pytest.mark.parametrize(
    "macro",
    [
        "#define __shfl(v, l) __shfl_sync(0xffffffff, v, l, 8)",
        "#define __shfl_down(v, l) __shfl_sync(0xffffffff, v, l)",
        "#define __any(p) false",
        "#define __shfl_sync __shfl",
    ],
)
def test_a_macro_that_means_something_else_is_the_programs_own(macro: str) -> None:
    name = macro.split()[1].partition("(")[0]
    text, _applied = use(f"{macro}\nint f(int v) {{ return {name}(v, 0); }}\n")
    assert f"return {name}(v, 0)" in text


def test_an_open_query_of_the_warp_size_is_marked() -> None:
    before = "int n = attribute(hipDeviceAttributeWarpSize);\n"
    text, applied = use(before)
    assert text == before
    assert [(fix.rule, fix.line) for fix in applied] == [(HARDWARE_WIDTH, 1)]


def aware(files: Mapping[str, str], includes: Mapping[str, tuple[str, ...]] | None = None) -> set[str]:
    known = includes or {}
    return set(wave_aware_files(files, mask, lambda name: (name, *known.get(name, ()))))


def test_pytorchs_names_tell_of_wide_waves_where_they_are_not_the_trees_own() -> None:
    text = "__device__ int f(int v) { return WARP_SHFL_DOWN(v, 1) + __any(v); }\n"
    assert set(wave_aware_files({"a.cu": text}, mask, lambda name: (name,))) == {"a.cu"}
    own = "#define WARP_SHFL_DOWN(v, d) __shfl_down_sync(~0u, v, d)\n"
    assert not wave_aware_files({"a.cu": text, "own.h": own}, mask, lambda name: (name,))


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef __HIP_PLATFORM_AMD__\n#define WARP_SIZE 64\n#else\n#define WARP_SIZE 32\n#endif\n",
        "#if defined(USE_ROCM)\n  v = __shfl_down(v, 1);\n#else\n  v = __shfl_down_sync(m, v, 1);\n#endif\n",
        "#if !GGML_USE_HIP\n  v = __shfl_sync(m, v, 1);\n#endif\n",
        "constexpr int kWaveSize = 64;\nint v = __any(1);\n",
        "int v = __any_sync(0xffffffffffffffff, 1);\n",
        "#include <hip/hip_runtime.h>\nint v = __any(1);\n",
        "int n = C10_WARP_SIZE; v = __shfl_xor(v, 1);\n",
    ],
)
def test_files_that_know_amds_waves_tell(text: str) -> None:
    assert aware({"a.cu": text}) == {"a.cu"}


@pytest.mark.parametrize(
    "text",
    [
        "#define WARP_SIZE 32\nint v = __any(1);\n",
        "#if defined(__CUDACC__) || defined(__HIPCC__)\nint v = __any(1);\n#endif\n",
        "#ifdef __HIP_PLATFORM_AMD__\n#include <my/half.h>\n#endif\nint v = __any(1);\n",
        "// #ifdef USE_ROCM\nint v = __any(1);\n#if RELATIONSHIP\nv = __all(1);\n#endif\n",
        "#define TILE_WIDTH 64\nint v = __any(1);\n",
    ],
)
def test_ordinary_cuda_does_not(text: str) -> None:
    assert aware({"a.cu": text}) == set()


def test_files_that_share_warp_code_with_one_that_knows_go_with_it() -> None:
    files = {
        "common.h": "#ifdef USE_ROCM\n#define WARP_SIZE 64\n#endif\n",
        "reduce.cuh": "#include <common.h>\nint v = __any(1);\n",
        "a.cu": "int w = __all(1);\n",
        "host.cpp": "int x;\n",
        "alone.cu": "int w = __all(1);\n",
    }
    includes = {"a.cu": ("reduce.cuh", "common.h"), "reduce.cuh": ("common.h",), "host.cpp": ("common.h",)}
    assert aware(files, includes) == {"common.h", "reduce.cuh", "a.cu"}


def test_what_knows_amds_waves_is_left_alone_and_said() -> None:
    before = "int f(int v) {\n  return __any(v); }\n"
    context = FixContext(wave_aware=frozenset({"a.cu"}))
    text, applied = use(before, context)
    assert text == before
    assert [(fix.rule, fix.line) for fix in applied] == [(LEFT_ALONE, 2)]
    assert not keeps_warps("a.cu", text, context)
    assert keeps_warps("b.cu", text, context)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("using R = hipcub::WarpReduce<float>;", "using R = hipcub::WarpReduce<float, 32>;"),
        ("hipcub::WarpScan<std::pair<int, A<(2 > 1)>>> s;", "hipcub::WarpScan<std::pair<int, A<(2 > 1)>>, 32> s;"),
        ("typename cub::WarpReduce<T>::TempStorage t;", "typename cub::WarpReduce<T, 32>::TempStorage t;"),
        ("hipcub::WarpExchange<int, 4> e;", "hipcub::WarpExchange<int, 4, 32> e;"),
        ("hipcub::WarpMergeSort<int, 4> e;", "hipcub::WarpMergeSort<int, 4, 32> e;"),
        ("hipcub::WarpLoad<int, 4> l;", "hipcub::WarpLoad<int, 4, hipcub::WARP_LOAD_DIRECT, 32> l;"),
        ("hipcub::WarpStore<int, 4, X> l;", "hipcub::WarpStore<int, 4, X, 32> l;"),
        ("namespace c = ::cub;\nc::WarpReduce<int> r;", "namespace c = ::cub;\nc::WarpReduce<int, 32> r;"),
        (
            "using cub::WarpScan;\nWarpScan<int> r;\nWarpReduce<int> s;",
            "using cub::WarpScan;\nWarpScan<int, 32> r;\nWarpReduce<int> s;",
        ),
        ("using namespace hipcub;\nWarpReduce<int> r;", "using namespace hipcub;\nWarpReduce<int, 32> r;"),
        ("int n = N / HIPCUB_WARP_THREADS;", "int n = N / 32;"),
    ],
)
def test_hipcubs_warps_get_their_width(before: str, after: str) -> None:
    assert widths(before + "\n") == after + "\n"


@pytest.mark.parametrize(
    "kept",
    [
        "hipcub::WarpReduce<float, 16> r;\n",
        "hipcub::WarpExchange<int, 4, 8> e;\n",
        "hipcub::BlockReduce<float, 128> r;\n",
        "// hipcub::WarpReduce<float>\n",
        "my::WarpReduce<float> r;\n",
        "if (a < hipcub_WarpReduce && b > c) {}\n",
    ],
)
def test_other_widths_and_classes_stay(kept: str) -> None:
    assert widths(kept) == kept


def test_cubs_lane_numbers_are_those_of_the_warp() -> None:
    aliased = widths("namespace c = cub;\nint warp = c::WarpId() + mine::LaneId();\n")
    assert "int warp = amdflow::warp_id() + mine::LaneId();" in aliased
    text = widths("int lane = hipcub::LaneId();\nunsigned below = cub::LaneMaskLt();\n")
    assert body(text) == "int lane = amdflow::lane_id();\nunsigned below = amdflow::lanemask_lt();\n"
    assert '#include "amdflow_compat/warp.h"' in text


def test_findings_that_logical_warps_settle_go() -> None:
    catalogue = load_catalogue(shipped("migration").parent)

    def finding(rule: str, line: int) -> Finding:
        return Finding(rule, Severity.SILENT, "", "a.cu", line)

    found = [finding("AMF1101", 3), finding("AMF1104", 9), finding("AMF1111", 12), finding("AMF1121", 5)]
    whole = {("a.cu", WHOLE_FILE, RULE)}
    assert [item.id for item in settle(found, catalogue, whole, ())] == ["AMF1111", "AMF1121"]
    assert [item.id for item in settle(found, catalogue, {("a.cu", 5, RULE)}, ())] == ["AMF1101", "AMF1104", "AMF1111"]


def test_the_library_brings_all_of_its_headers() -> None:
    names = with_dependencies({"warp.h"})
    assert {"warp.h", "wave_primitives.h", "warp_size.h", "warp_cuda.h", "warp_shuffle.h"} <= names
    assert all(header(name).is_file() for name in names)
