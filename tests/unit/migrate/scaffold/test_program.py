"""The test program: inputs by type, grid and block from a launch, a reference that is the user's to write."""

from __future__ import annotations

import pytest

from amdflow.migrate.scaffold.items import Item, read_items
from amdflow.migrate.scaffold.launches import Launch, find_launch
from amdflow.migrate.scaffold.program import program
from amdflow.migrate.scaffold.signature import Parameter, Signature, Where, read_signature
from amdflow.migrate.syntax import Source


def signature(text: str) -> Signature:
    item = next(part for part in read_items(Source("a.cu", text)) if isinstance(part, Item))
    return read_signature(item.functions[-1])


def written(text: str, launch: Launch | None = None) -> str:
    return program(signature(text), launch, (), "", text)


def test_parameters_are_read_with_their_element_types() -> None:
    found = signature(
        "template <typename T, int N = 4>\n__global__ void __launch_bounds__(256) k(const T* __restrict__ x, float y[], int n, "
        "const float2& v, T** rows, unsigned) {}"
    )
    assert found.where is Where.KERNEL
    assert [(item.name, item.type, item.is_pointer, item.is_const) for item in found.parameters] == [
        ("x", "T", True, True),
        ("y", "float", True, False),
        ("n", "int", False, False),
        ("v", "float2", False, True),
        ("rows", "T*", True, False),
        ("argument_6", "unsigned", False, False),
    ]
    assert [(item.name, item.type) for item in found.templates] == [("T", ""), ("N", "int")]
    assert not found.obstacle


@pytest.mark.parametrize(
    "text",
    [
        "template <typename... A> __global__ void k(A... a) {}",
        "void f(void (*call)(int)) {}",
        "struct S { S operator+(S o) { return o; } };",
        "template <template <class> class C> void f(C<int>* x) {}",
    ],
)
def test_what_cannot_be_called_by_rule_is_said(text: str) -> None:
    assert signature(text).obstacle
    assert "SCAFFOLD_NOT_WRITTEN" in written(text)


def test_a_kernel_is_launched_as_the_tree_launches_it() -> None:
    files = {
        "a.cu": "__global__ void k(float* x, int n) {}\n",
        "b.cu": "#define BLOCK 128\nvoid go(float* x) {\n  const int blocks = 32;\n  dim3 block(BLOCK, 2);\n"
        "  // k<<<9, 9>>>(x);\n  k<<<blocks * 2, block, 1024>>>(x, 3);\n}\n",
    }
    launch = find_launch("k", files, "a.cu")
    assert launch is not None
    assert (launch.path, launch.line) == ("b.cu", 6)
    text = written(files["a.cu"], launch)
    assert "const dim3 grid = dim3((32) * 2);  // launched at b.cu:6 with blocks * 2" in text
    assert "const dim3 block = dim3((128), 2);" in text
    assert "shared_bytes = 1024;" in text
    assert "k<<<grid, block, shared_bytes>>>(x.to_device(), n);" in text


def test_template_arguments_come_from_the_launch_or_are_left_to_fill_in() -> None:
    text = "template <typename T, int N> __global__ void k(T* x) {}\n"
    launched = find_launch("k", {"a.cu": text + "void go(double* x) { k<double, 8><<<1, 64>>>(x); }\n"}, "a.cu")
    assert "using T = double;" in written(text, launched)
    assert "constexpr int N = 8;" in written(text, launched)
    assert "using T = float;  // template argument: fill in" in written(text)
    assert "k<T, N><<<grid, block, shared_bytes>>>" in written(text)


@pytest.mark.parametrize(
    "call", ["hipLaunchKernelGGL(k, dim3(4), dim3(64), 0, stream, x);", "MY_LAUNCH(k, 4, 64, 0, stream, x);"]
)
def test_launch_macros_count_too(call: str) -> None:
    launch = find_launch("k", {"a.cu": f"void go(float* x) {{ {call} }}"}, "a.cu")
    assert launch is not None
    assert [figure.removeprefix("dim3").strip("()") for figure in launch.figures] == ["4", "64", "0"]


def test_a_call_that_is_no_launch_is_none() -> None:
    assert find_launch("k", {"a.cu": "void go() { printf(k, 1, 2, 3, 4); k < 3; }"}, "a.cu") is None


def test_a_device_function_is_called_once_by_each_thread() -> None:
    text = written("__device__ float mix(const float* table, float x, int& count) { return table[0] * x; }")
    assert "each_thread(float* table_all, float* x_all, int* count_all, float* result_all)" in text
    assert "float* table = table_all;" in text
    assert "result_all[i] = mix(table, x, count);" in text
    assert "count.differences(tolerance)" in text
    assert "table.differences" not in text


def test_groups_are_made_where_they_are_used() -> None:
    text = written("__device__ int f(cg::thread_block_tile<32> tile, int v) { return tile.shfl(v, 0); }")
    assert "f(cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block()), v)" in text


def test_functors_get_one() -> None:
    text = written("template <typename Op> __device__ float f(float a, Op op) { return op(a, a); }")
    assert "using Op = amdflow_scaffold::Plus;" in text


def test_host_functions_are_called_and_their_figure_is_compared() -> None:
    text = written("int count(const float* x, int n, hipStream_t stream) { return n; }")
    assert "result.on_both()[0] = count(x.on_both(), n, stream);" in text
    assert "void reference(const float* x, int n, const hipStream_t& stream, int* result)" in text


def test_the_reference_is_the_users_to_write() -> None:
    text = written("__global__ void k(const int* a, int* b) {}")
    assert 'SCAFFOLD_NOT_WRITTEN("reference() of k()")' in text
    assert "void reference(const int* a, int* b)" in text


def test_the_program_stands_in_the_functions_namespaces() -> None:
    found = Signature("k", Where.KERNEL, "void", (Parameter("x", "int", is_pointer=True),))
    text = program(found, None, ("namespace a {", "namespace {", 'extern "C" {'), "", "")
    assert "namespace a {\nnamespace {\nnamespace scaffold_test {" in text
    assert "return a::scaffold_test::run();" in text
    assert text.count("{") == text.count("}")
