"""Findings about the original sources, and what becomes of them once fixes and compiler have spoken."""

from __future__ import annotations

from amdflow.content import shipped
from amdflow.findings import Finding, Severity
from amdflow.migrate.api_map import ApiMap
from amdflow.migrate.hazards import UNSUPPORTED, findings_of, settle, unsupported_names, without_own_names
from amdflow.migrate.regions import find_regions
from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.rules.detect import detect
from amdflow.migrate.syntax import Source

CATALOGUE = load_catalogue(shipped("migration").parent)


def findings(text: str, name: str = "a.cu") -> list[Finding]:
    source = Source(name, text)
    return findings_of(name, detect(source, CATALOGUE.rules.values()), source.line)


def test_a_finding_says_where_and_what() -> None:
    found = findings("// é\nconst int kWarpSize = 32;\n")
    assert [(finding.id, finding.line, finding.column, finding.path) for finding in found] == [
        ("AMF1101", 2, 1, "a.cu")
    ]
    assert found[0].snippet == "const int kWarpSize = 32;"
    assert "kWarpSize = 32" in found[0].message


def test_columns_count_characters() -> None:
    (found,) = findings("__device__ int f() { /* 内核 */ return threadIdx.x & 31; }\n")
    assert (found.id, found.line, found.column) == ("AMF1102", 1, 38)


def test_a_rule_that_counts_reports_once_a_file() -> None:
    found = [finding for finding in findings("curandState a;\n\ncurandState b;\n") if finding.id == "AMF1409"]
    assert len(found) == 1
    assert found[0].extra["lines"] == [1, 3]
    assert "2 lines" in found[0].message


def test_names_hip_does_not_have() -> None:
    api = ApiMap({}, {}, frozenset({"cudaInitDevice", "__trap"}))
    source = Source("a.cu", "cudaInitDevice(0);\n// __trap\ncudaInitDevice(1);\n__trap();\n")
    found = unsupported_names(source, api, CATALOGUE.get(UNSUPPORTED), covered={4})
    assert [(finding.line, finding.extra["name"], finding.extra["lines"]) for finding in found] == [
        (1, "cudaInitDevice", [1, 3])
    ]


def test_the_trees_own_functions_with_common_names_are_no_gaps() -> None:
    texts = {
        "a.cu": "int f(int a) { return mulhi(a, saturate(a)); }\nint g() { fftw_plan_many_dft(); return cudaInitDevice(0); }\n",
        "own.h": "inline int mulhi(int a, int b) { return a; }\nint saturate(int a);\nint cudaInitDevice(int d) { return d; }\n",
    }
    api = ApiMap({}, {}, frozenset({"mulhi", "saturate", "fftw_plan_many_dft", "cudaInitDevice"}))
    found = unsupported_names(Source("a.cu", texts["a.cu"]), api, CATALOGUE.get(UNSUPPORTED), covered=())
    assert [finding.extra["name"] for finding in without_own_names(found, texts)] == ["cudaInitDevice", "saturate"]
    texts["b.h"] = "#include <cufftw.h>\n"
    assert "fftw_plan_many_dft" in {finding.extra["name"] for finding in without_own_names(found, texts)}


def test_what_a_fix_settles_goes() -> None:
    found = findings("__device__ int f(bool p) {\n  unsigned m = __ballot_sync(~0ull, p);\n  return 0;\n}\n")
    assert [finding.id for finding in found] == ["AMF1106"]
    assert settle(found, CATALOGUE, {("a.cu", 2, "AMF1022")}, ()) == []
    assert settle(found, CATALOGUE, {("b.cu", 2, "AMF1022")}, ()) == found


def test_what_should_block_the_compiler_and_does_not_becomes_a_note() -> None:
    found = findings("#include <mma.h>\nconst int kWarpSize = 32;\n")
    settled = settle(found, CATALOGUE, (), {"a.cu"})
    assert [finding.severity for finding in found] == [Severity.COMPILE, Severity.SILENT]
    assert [finding.severity for finding in settled] == [Severity.NOTE, Severity.SILENT]
    assert settle(found, CATALOGUE, (), {"other.cu"}) == found


def test_regions_name_the_kernel_and_guess_the_operation() -> None:
    source = Source(
        "kernels/flash_attention.cu",
        '__global__ void scores(float* d) {\n  int x;\n  wmma::mma_sync(c, a, b, c);\n  asm volatile("mma.sync.aligned.m16n8k16 {%0};" : "+f"(d[0]));\n}\n'
        "__global__ void other() { wmma::fill_fragment(c, 0.0f); }\n",
    )
    regions = find_regions(source, detect(source, CATALOGUE.rules.values()))
    assert [(region["line"], region["kind"], region["op"]) for region in regions] == [
        (1, "wmma", "attention"),
        (1, "tensor-core-ptx", "attention"),
        (6, "wmma", "attention"),
    ]


def test_a_kernel_is_one_region_whatever_macros_it_holds() -> None:
    code = """template <int N>
__global__ void gemm(const half* a, float* c) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  FOR_EACH(i) {
    wmma::fill_fragment(f, 0.0f);
  }
  REPEAT(4) { wmma::mma_sync(f, a, b, f); }
  auto store = [&](int i) { wmma::store_matrix_sync(c + i, f, 16, wmma::mem_row_major); };
}
"""
    source = Source("a.cu", code)
    regions = find_regions(source, detect(source, CATALOGUE.rules.values()))
    assert [(region["line"], region["kind"]) for region in regions] == [(2, "wmma")]


def test_blocks_of_32_threads_are_seen_through_names() -> None:
    code = """#define THREADS 32
const int kTwice = 2 * THREADS;
void f(int n) {
  dim3 grid(n / 4, 2), block(THREADS, 1, 1), other(THREADS, 4);
  int threads = THREADS;
  int varying = 32;
  varying = 64;
  k<<<grid, block>>>(n);
  k<<<n, threads>>>(n);
  k<<<n, dim3(32)>>>(n);
  k<<<n, THREADS, 0, stream>>>(n);
  k<<<grid, other>>>(n);
  k<<<32, kTwice>>>(n);
  k<<<n, varying>>>(n);
}
"""
    assert [finding.line for finding in findings(code) if finding.id == "AMF1119"] == [8, 9, 10, 11]


def test_scanning_stays_linear() -> None:
    block = (
        "__global__ void k{n}(int* x) {{ int lane = threadIdx.x & 31; x[lane] = __shfl_sync(0xffffffff, lane, 0); }}\n"
    )
    text = "".join(block.format(n=n) for n in range(2_000))
    assert len([finding for finding in findings(text) if finding.id == "AMF1102"]) == 2_000
