"""Translation as text, where hipify-clang cannot help."""

from __future__ import annotations

from pathlib import Path

from amdflow.migrate.api_map import ApiMap
from amdflow.migrate.textual import HeaderPlaces, Supplement, TextMap, restore_own_headers


def text_map(include: Path) -> TextMap:
    for name in ("hip/hip_runtime.h", "hipblas/hipblas.h", "rccl/rccl.h", "hiprand.h"):
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_text("")
    names = {"cudaFree": "hipFree", "cudaStream_t": "hipStream_t", "__shfl": "__shfl"}
    headers = {
        "cuda_runtime.h": "hip/hip_runtime.h",
        "cublas_v2.h": "hipblas.h",
        "device_launch_parameters.h": "",
        "helper_cuda.h": "hip/hip_runtime_api.h",
    }
    supplement = Supplement({"nvtxRangePop": "roctxRangePop"}, {"nccl.h": "rccl/rccl.h"}, {"cub": "hipcub"})
    return TextMap(ApiMap(names, headers, frozenset({"cudaInitDevice"})), supplement, HeaderPlaces(include))


def test_names_in_code_only(tmp_path: Path) -> None:
    made = text_map(tmp_path)
    assert (
        made.translate('cudaFree(p); // cudaFree\nlog("cudaFree"); mycudaFree();')
        == 'hipFree(p); // cudaFree\nlog("cudaFree"); mycudaFree();'
    )


def test_dead_branches_and_macros_too(tmp_path: Path) -> None:
    assert (
        text_map(tmp_path).translate("#if 0\n#define F(x) cudaFree(x)\n#endif\n")
        == "#if 0\n#define F(x) hipFree(x)\n#endif\n"
    )


def test_headers_are_found_where_they_lie_today(tmp_path: Path) -> None:
    made = text_map(tmp_path)
    assert made.translate("#include <cublas_v2.h>\n") == "#include <hipblas/hipblas.h>\n"
    assert made.translate("#include <nccl.h>\n") == "#include <rccl/rccl.h>\n"
    assert made.translate("#include <hipblas.h>\n") == "#include <hipblas/hipblas.h>\n"
    assert made.translate("#include <hiprand.h>\n") == "#include <hiprand.h>\n"


def test_a_header_hip_does_not_need_goes_and_its_line_stays(tmp_path: Path) -> None:
    assert text_map(tmp_path).translate("#include <device_launch_parameters.h>\nint a;\n") == "\nint a;\n"


def test_the_trees_own_header_of_that_name_stays(tmp_path: Path) -> None:
    assert text_map(tmp_path).translate('#include "helper_cuda.h"\n', {"helper_cuda.h"}) == '#include "helper_cuda.h"\n'


def test_a_namespace_is_not_a_variable(tmp_path: Path) -> None:
    made = text_map(tmp_path)
    assert (
        made.translate("cub::Sum s; using namespace cub; namespace c = ::cub; int cub = 1; f(cub);")
        == "hipcub::Sum s; using namespace hipcub; namespace c = ::hipcub; int cub = 1; f(cub);"
    )


def test_own_headers_that_the_tool_renamed_come_back() -> None:
    original = '#include <cuda.h>\n#include "helper_cuda.h"\n#include <helper_math.h>\nint a;\n'
    tool = '#include <hip/hip_runtime.h>\n#include <hip/hip_runtime.h>\n#include "hip/hip_runtime_api.h"\n#include <hip/hip_vector_types.h>\nint a;\n'
    headers = {
        "cuda.h": "hip/hip_runtime.h",
        "helper_cuda.h": "hip/hip_runtime_api.h",
        "helper_math.h": "hip/hip_vector_types.h",
    }
    restored = restore_own_headers(original, tool, {"helper_cuda.h", "helper_math.h"}, headers)
    assert restored == tool.replace("hip/hip_runtime_api.h", "helper_cuda.h").replace(
        "hip/hip_vector_types.h", "helper_math.h"
    )
    assert restore_own_headers(original, tool, (), headers) == tool


def test_a_header_named_through_a_macro_is_translated(tmp_path: Path) -> None:
    made = text_map(tmp_path)
    assert made.translate("#define BLAS <cublas_v2.h>\n") == "#define BLAS <hipblas/hipblas.h>\n"
    included = '#define RT "cuda_runtime.h"\n#include RT\n'
    assert made.translate(included) == '#define RT "hip/hip_runtime.h"\n#include RT\n'
    message = '#define NAME "cuda_runtime.h"\nputs(NAME);\n'
    assert made.translate(message) == message
