"""``amdflow migrate`` with the real hipify-clang and HIP compiler, on a small tree with everything that goes wrong."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CommandLine

KERNEL = """\
#include <cuda_runtime.h>
#include <cstdio>
#define SCALE 3.0f
#include "scale.cuh"
__global__ void k(float* x) { x[threadIdx.x] = scaled(x[threadIdx.x]); }
#if 0
void dead(void* p) { cudaFree(p); }
#endif
int main() {
  float* p;  // cudaMalloc in a comment stays
  cudaMalloc(&p, 256);
  k<<<1, 64>>>(p);
  std::puts("done");
  return cudaFree(p) == cudaSuccess ? 0 : 1;
}
"""
FILES = {
    "src/app.cu": KERNEL,
    "src/scale.cuh": "__device__ inline float scaled(float v) { return v * SCALE; }\n#define CHECK(x) if ((x) != cudaSuccess) return 1\n",
    "src/warp.cu": "__global__ void w(int* x) {\n  int lane = threadIdx.x & 31;\n  x[lane] = __shfl_down_sync(0xffffffff, x[lane], 1);\n}\n",
    "src/text.cu": 'const char* kSource = R"(\n  cudaMalloc(&p, 4); // "cudaFree"\n)";\nconst char* kHelp = "call cudaFree first";\nvoid t(void* p) { cudaFree(p); }\n',
    "src/broken.cu": "#include <cuda_runtime.h>\n\n__global__ void b(int* x) { x[0] = undeclared_thing; }\n",
    "src/torch_op.cu": '#include <torch/nowhere.h>\nconst char* s = "cudaFree in a string stays";\nvoid f(void* p) { cudaFree(p); }\n',
    'odd names/quo\'te "内核".cu': "__global__ void odd(int* x) { x[0] = 1; }\nvoid f(int* x) { cudaFree(x); }\n",
    "plain/host.cpp": "int plain() { return 1; }\n",
    "README.md": "cudaMalloc\n",
    "Makefile": "app: src/app.cu\n\tnvcc -o app $^\n",
}
RAW = {
    "latin.cu": "// Gr\xf6\xdfe\n#include <cuda_runtime.h>\nvoid f(void* p) { cudaFree(p); }".encode("latin-1"),
    "crlf.cu": b"#include <cuda_runtime.h>\r\nvoid g(void* p) { cudaFree(p); }\r\n",
    "bom.cu": b"\xef\xbb\xbf#include <cuda_runtime.h>\nvoid h(void* p) { cudaFree(p); }\n",
    "wide.h": "#include <cuda.h>".encode("utf-16"),
    "data.bin": bytes(range(256)),
}


@dataclass(frozen=True)
class Workspace:
    folder: Path
    amdflow: CommandLine

    @property
    def hip(self) -> Path:
        return self.folder / "out" / "migrate" / "hip"

    def manifest(self) -> Any:
        return json.loads((self.folder / "out" / "migrate" / "manifest.json").read_text())

    def findings(self, rule: str = "") -> list[dict[str, Any]]:
        found = json.loads((self.folder / "out" / "migrate" / "findings.json").read_text())["findings"]
        return [finding for finding in found if finding["id"] == rule or not rule]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("migrate")
    for name, text in FILES.items():
        (folder / "cuda" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cuda" / name).write_text(text)
    for name, data in RAW.items():
        (folder / "cuda" / name).write_bytes(data)
    (folder / "cuda" / "loop").symlink_to(".")
    workspace = Workspace(folder, CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "none")}))
    said = workspace.amdflow("migrate", "cuda", "--arch", "gfx942,gfx1100")
    assert said.code == 0, said.err
    return workspace


def test_every_file_is_in_the_output(done: Workspace) -> None:
    for name in (*FILES, *RAW):
        assert (done.hip / name).is_file(), name
    assert (done.hip / "loop").is_symlink()


def test_what_is_not_translated_is_the_same_byte_for_byte(done: Workspace) -> None:
    for name in ("plain/host.cpp", "README.md", "wide.h", "data.bin"):
        assert (done.hip / name).read_bytes() == (done.folder / "cuda" / name).read_bytes(), name


def test_code_is_translated_and_comments_strings_and_bytes_stay(done: Workspace) -> None:
    text = (done.hip / "src/app.cu").read_text()
    assert "hipMalloc(&p, 256)" in text
    assert "// cudaMalloc in a comment stays" in text
    assert '"cudaFree in a string stays"' in (done.hip / "src/torch_op.cu").read_text(), "translated as text"
    assert "hipFree(p); }\n#endif" in text, "a dead branch is translated too"
    assert b"Gr\xf6\xdfe" in (done.hip / "latin.cu").read_bytes()
    assert (done.hip / "latin.cu").read_bytes().endswith(b"hipFree(p); }")
    crlf = (done.hip / "crlf.cu").read_bytes()
    assert crlf.count(b"\n") == crlf.count(b"\r\n") > 1
    assert (done.hip / "bom.cu").read_bytes().startswith(b"\xef\xbb\xbf")


def test_a_header_that_does_not_stand_alone_is_translated_as_its_unit_includes_it(done: Workspace) -> None:
    assert "hipSuccess" in (done.hip / "src/scale.cuh").read_text()
    assert done.manifest()["metrics"]["files_by_method"]["hipify-clang, in the context of a unit"] == 1
    assert [finding["path"] for finding in done.findings("AMF1003")] == ["src/broken.cu", "src/torch_op.cu"]
    assert "translated as src/app.cu includes it" in (done.folder / "out" / "migrate" / "report.html").read_text()


def test_cuda_headers_are_read_once(done: Workspace) -> None:
    made = list((done.folder / "out/.amdflow/cache/migrate/precompiled").iterdir())
    assert len(made) == 1
    assert made[0].stat().st_size > 1_000_000, "an empty one stands for one that changed the tool's answers"
    assert not (done.folder / "out/migrate/hipify").exists()


def test_string_literals_keep_what_they_say(done: Workspace) -> None:
    text = (done.hip / "src/text.cu").read_text()
    assert text.endswith(FILES["src/text.cu"].replace("{ cudaFree(p); }", "{ hipFree(p); }"))


def test_the_figures_add_up(done: Workspace) -> None:
    metrics = done.manifest()["metrics"]
    assert sum(metrics["files_by_method"].values()) == metrics["files"] == len(FILES) + len(RAW)
    assert metrics["units"] == 9
    assert metrics["units_compiled"] == {"gfx942": 7, "gfx1100": 7}


def test_a_compile_error_is_at_its_original_line(done: Workspace) -> None:
    found = done.findings("AMF1002")
    assert [(finding["path"], finding["line"]) for finding in found] == [("src/broken.cu", 3)]
    assert "undeclared_thing" in found[0]["message"]
    assert found[0]["targets"] == ["gfx1100", "gfx942"]


def test_a_missing_header_is_named(done: Workspace) -> None:
    found = done.findings("AMF1004")
    assert [(finding["extra"]["header"], finding["path"]) for finding in found] == [
        ("torch/nowhere.h", "src/torch_op.cu")
    ]


def test_warp_code_keeps_its_32_lanes(done: Workspace) -> None:
    assert "amdflow::shfl_down_sync(0xffffffff, x[lane], 1)" in (done.hip / "src/warp.cu").read_text()
    assert (done.hip / "amdflow_compat/warp.h").is_file()
    assert done.findings("AMF1026")[0]["line"] == 3
    assert done.findings("AMF1102") == done.findings("AMF1022") == []


def test_native_warps_are_as_wide_as_the_hardware_and_the_hazard_is_named(amdflow: CommandLine) -> None:
    (amdflow.folder / "code").mkdir()
    (amdflow.folder / "code" / "warp.cu").write_text(FILES["src/warp.cu"])
    assert amdflow("migrate", "code", "--no-compile", "--native-warp", "--arch", "gfx942", "--output", "hip").code == 0
    assert "__shfl_down_sync(0xffffffffffffffffull, x[lane], 1)" in (amdflow.folder / "hip" / "warp.cu").read_text()
    assert not (amdflow.folder / "hip" / "amdflow_compat").exists()
    found = json.loads((amdflow.folder / "hip" / "amdflow-report" / "findings.json").read_text())["findings"]
    places = {(finding["id"], finding["line"], finding["severity"]) for finding in found}
    assert {("AMF1022", 3, "silent"), ("AMF1102", 2, "silent")} <= places


def test_utf_16_is_carried_over_and_reported(done: Workspace) -> None:
    assert [finding["path"] for finding in done.findings("AMF1005")] == ["wide.h"]


def test_the_reports_are_there(done: Workspace) -> None:
    folder = done.folder / "out" / "migrate"
    page = (folder / "report.html").read_text()
    assert "undeclared_thing" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "src/broken.cu" in (folder / "report.md").read_text()


def test_the_terminal_never_claims_too_much(done: Workspace) -> None:
    said = done.amdflow("migrate", "cuda", "--arch", "gfx942,gfx1100", "--force")
    assert "100 %" not in said.out
    assert "7 of 9" in said.out
    assert "AMF1004" in said.out
    assert done.manifest()["metrics"]["processes"]["hipify"] == 0, "nothing is translated twice"
    assert done.manifest()["metrics"]["processes"]["compile"] == 0, "failures are remembered too"
    assert done.findings("AMF1004")[0]["path"] == "src/torch_op.cu"


def test_an_unchanged_tree_is_skipped_and_one_changed_file_is_redone(done: Workspace) -> None:
    again = done.amdflow("migrate", "cuda", "--arch", "gfx942,gfx1100")
    assert "skipped" in again.err
    source = done.folder / "cuda" / "src" / "warp.cu"
    source.write_text(source.read_text() + "// changed\n")
    changed = done.amdflow("migrate", "cuda", "--arch", "gfx942,gfx1100", "--format", "json")
    assert "src/warp.cu" in changed.err
    assert changed.json["metrics"]["processes"]["hipify"] == 1
    assert (done.hip / "src/warp.cu").read_text().endswith("// changed\n")


def test_fail_on_sets_the_exit_status(done: Workspace) -> None:
    strict = ("migrate", "cuda", "--no-compile", "--native-warp", "--fail-on", "silent")
    assert done.amdflow(*strict).code == 3
    assert done.amdflow(*strict, "--exclude", "src").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["migrate", "nowhere"], "no such folder"),
        (["migrate", "empty"], "it is empty"),
        (["migrate", "a.txt"], "is a file"),
        (["migrate"], "no source folder"),
        (["migrate", "code", "--output", "code/hip"], "lies inside"),
        (["migrate", "code", "--arch", "sm_80"], "sm_80"),
        (["migrate", "code", "--jobs", "-3"], "jobs"),
        (["migrate", "code", "--fail-on", "everything"], "fail_on"),
        (["explain", "AMF9999"], "no such rule"),
        (["lookup", "cudaMaloc"], "cudaMalloc"),
    ],
)
def test_bad_input_is_answered_in_one_line_with_status_2(
    amdflow: CommandLine, arguments: list[str], words: str
) -> None:
    (amdflow.folder / "empty").mkdir()
    (amdflow.folder / "code").mkdir()
    (amdflow.folder / "code" / "a.cu").write_text("int a;\n")
    (amdflow.folder / "a.txt").write_text("")
    said = amdflow(*arguments)
    assert said.code == 2
    assert words in said.err


def test_lookup_and_explain(amdflow: CommandLine) -> None:
    assert amdflow("lookup", "cudaMallocAsync", "--format", "json").json["hip"] == "hipMallocAsync"
    assert "hipblas" in amdflow("lookup", "cublas_v2.h").out
    assert "no such thing" in amdflow("lookup", "cudaInitDevice").out
    page = amdflow("explain", "amf1104").out
    assert "AMF1104" in page
    assert "warpSize / 2" in page
    assert len(amdflow("explain", "--list", "--format", "json").json) > 60


def test_a_source_folder_that_holds_the_workdir_is_not_read_twice(amdflow: CommandLine) -> None:
    (amdflow.folder / "a.cu").write_text("#include <cuda_runtime.h>\nvoid f(void* p) { cudaFree(p); }\n")
    assert amdflow("migrate", ".", "--no-compile").code == 0
    shutil.copy(amdflow.folder / "a.cu", amdflow.folder / "b.cu")
    said = amdflow("migrate", ".", "--no-compile", "--format", "json")
    assert said.json["metrics"]["files"] == 2
