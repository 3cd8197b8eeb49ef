"""``amdflow kernels`` with the real TileLang and HIP compiler: code objects, refusals by name, numbers on the CPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from amdflow.content import shipped
from tests.conftest import REPOSITORY, CommandLine

SMALL = ("--kernel", "rms_norm,swiglu", "--dtype", "bfloat16")


@pytest.fixture(scope="module")
def amdflow(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """One workspace for the whole file, so that builds share its cache."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "amdflow.yaml").write_text("targets: [gfx942, gfx1100]\n")
    (folder / "kernels" / "tiles").mkdir(parents=True)
    (folder / "kernels" / "shapes.yaml").write_text(
        "rms_norm: [{hidden: 576}]\nswiglu: [{}]\nattention: [{head: 128, causal: true}]\n"
    )
    return CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "config-home")})


def test_a_build_leaves_code_objects_for_each_target(amdflow: CommandLine) -> None:
    said = amdflow("kernels", "build", *SMALL, "--format", "json")
    assert said.code == 0, said.err
    manifest = said.json
    rows = {(row["target"], row["kernel"]): row for row in manifest["metrics"]["kernels"]}
    assert set(rows) == {(target, op) for target in ("gfx942", "gfx1100") for op in ("rms_norm", "swiglu")}
    assert rows["gfx942", "rms_norm"]["lds_dynamic"] > 0
    assert all(row["spills"] == 0 and row["waves_per_simd"] >= 4 for row in rows.values())
    for op in ("rms_norm", "swiglu"):
        for target in ("gfx942", "gfx1100"):
            place = manifest["handoff"]["ops"][op][target]
            folder = amdflow.folder / "out" / "kernels"
            assert (folder / place["code_object"]).read_bytes()[:4] == b"\x7fELF"
            assert place["symbol"] in (folder / place["source"]).read_text()
            launch = json.loads((folder / place["launch"]).read_text())
            assert [parameter["name"] for parameter in launch["parameters"]]
    assert {output["role"] for output in manifest["outputs"]} == {
        "source",
        "code-object",
        "launch",
        "resources",
        "index",
        "report",
    }


def test_the_same_build_again_is_skipped_and_a_wider_one_reuses_what_is_there(amdflow: CommandLine) -> None:
    assert amdflow("kernels", "build", *SMALL).code == 0
    again = amdflow("kernels", "build", *SMALL)
    assert again.code == 0
    assert "skipped, nothing it depends on has changed" in again.err
    assert "gfx1100" in again.out
    wider = amdflow(
        "kernels",
        "build",
        "--kernel",
        "rms_norm,swiglu,rope",
        "--dtype",
        "bfloat16",
        "--arch",
        "gfx942",
        "--format",
        "json",
    )
    assert wider.json["metrics"]["from_cache"] == 2


def test_too_much_lds_fails_by_name_with_the_setting_that_fits(amdflow: CommandLine) -> None:
    """Neither TileLang nor clang says a word about it."""
    tiles = amdflow.folder / "kernels" / "tiles" / "gfx942.yaml"
    tiles.write_text("attention: {block_m: 128, block_n: 128}\n")
    try:
        said = amdflow("kernels", "build", "--kernel", "attention", "--dtype", "float16", "--arch", "gfx942")
    finally:
        tiles.unlink()
    assert said.code == 1
    place = "kernels/attention.py: attention-head128-causal-f16 for gfx942: over budget"
    lds = r"takes (\d+) bytes of LDS \(0 static \+ (\d+) dynamic\), gfx942 gives a workgroup 65536"
    refusal = re.search(f"{place}: {lds}", said.err)
    assert refusal is not None, said.err
    assert refusal[1] == refusal[2]
    assert "in kernels/tiles/gfx942.yaml fits" in said.err
    assert "amdflow kernels build --kernel attention --arch gfx942" in said.err


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("raise ValueError('no such layout')", "TileLang refuses it: ValueError: no such layout"),
        ("import os; os._exit(3)", "TileLang crashed: its process ended with exit status 3"),
    ],
)
def test_a_kernel_that_does_not_lower_is_named_with_its_log(amdflow: CommandLine, body: str, complaint: str) -> None:
    text = (shipped("kernels") / "swiglu.py").read_text().replace('"op": "swiglu"', '"op": "bad"')
    path = amdflow.folder / "kernels" / "bad.py"
    path.write_text(text.replace("    groups, height =", f"    {body}\n    groups, height ="))
    try:
        said = amdflow("kernels", "build", "--kernel", "bad", "--dtype", "bfloat16", "--arch", "gfx942")
    finally:
        path.unlink()
    assert said.code == 1
    assert f"kernels/bad.py: bad-bf16 for gfx942: {complaint}" in said.err
    assert "log: out/.amdflow/logs/kernels/" in said.err


def test_a_source_that_does_not_compile_is_named_with_the_compilers_first_error(amdflow: CommandLine) -> None:
    text = (shipped("kernels") / "swiglu.py").read_text().replace('"op": "swiglu"', '"op": "bad"')
    path = amdflow.folder / "kernels" / "bad.py"
    path.write_text(text.replace("tl.exp(-value)", 'tl.call_extern("float32", "no_such_function", value)'))
    try:
        said = amdflow("kernels", "build", "--kernel", "bad", "--dtype", "bfloat16", "--arch", "gfx1100")
    finally:
        path.unlink()
    assert said.code == 1
    assert "kernels/bad.py: bad-bf16 for gfx1100: does not compile:" in said.err
    assert "no_such_function" in said.err


def test_matrix_kernels_are_left_out_where_there_are_no_matrix_instructions(amdflow: CommandLine) -> None:
    said = amdflow(
        "kernels", "build", "--kernel", "gemm,swiglu", "--dtype", "bfloat16", "--arch", "gfx1030", "--format", "json"
    )
    assert said.code == 0, said.err
    assert set(said.json["handoff"]["ops"]) == {"swiglu"}
    report = json.loads((amdflow.folder / "out" / "kernels" / "kernels.json").read_text())
    assert [finding["id"] for finding in report["findings"]] == ["AMF2002"]


def test_numbers_are_checked_on_the_cpu(amdflow: CommandLine) -> None:
    said = amdflow("kernels", "test", "--kernel", "rms_norm", "--format", "json")
    assert said.code == 0, said.err
    tests = said.json["tests"]
    assert {test["dtype"] for test in tests} == {"float32", "float16", "bfloat16"}
    assert {test["sizes"]["hidden"] for test in tests} == {1, 77, 576, 1024}
    assert all(test["passed"] for test in tests)


def test_a_wrong_kernel_fails_the_test_by_name(amdflow: CommandLine) -> None:
    path = amdflow.folder / "kernels" / "swiglu.py"
    text = (shipped("kernels") / "swiglu.py").read_text()
    path.write_text(text.replace("(1.0 + tl.exp", "(1.01 + tl.exp"))
    try:
        said = amdflow("kernels", "test", "--kernel", "swiglu", "--dtype", "float32")
    finally:
        path.unlink()
    assert said.code == 1
    assert "WRONG" in said.out
    assert "kernel tests failed: swiglu f32 on cpu" in said.err


def test_a_kernel_that_writes_past_its_output_is_caught(amdflow: CommandLine) -> None:
    path = amdflow.folder / "kernels" / "swiglu.py"
    text = (shipped("kernels") / "swiglu.py").read_text()
    path.write_text(text.replace("y: tl.Tensor((groups, lanes), dtype)", "y: tl.Tensor((groups + 8, lanes), dtype)"))
    try:
        said = amdflow("kernels", "test", "--kernel", "swiglu", "--dtype", "float32")
    finally:
        path.unlink()
    assert said.code == 1
    assert "extent" in said.out or "writes past the end of y" in said.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("build", "--kernel", "gem"), "no kernel called 'gem' (did you mean gemm?)"),
        (("build", "--arch", "gfx943"), "unknown gfx target 'gfx943'"),
        (("build", "--dtype", "float64"), "dtypes"),
        (("build", "--jobs", "-1"), "jobs"),
        (("test", "--dtype", "float8"), "unknown value type 'float8'"),
        (("test", "--kernel", "ropes"), "no kernel called 'ropes' (did you mean rope?)"),
    ],
)
def test_bad_input_is_one_clear_line(amdflow: CommandLine, arguments: tuple[str, ...], complaint: str) -> None:
    said = amdflow("kernels", *arguments)
    assert said.code == 2
    assert complaint in said.err


def test_the_repositorys_own_kernels_are_what_is_shipped() -> None:
    assert shipped("kernels") == REPOSITORY / "kernels"
    assert Path(shipped("kernels") / "README.md").is_file()
