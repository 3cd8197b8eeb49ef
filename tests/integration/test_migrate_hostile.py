"""Trees, moments and places in which a migration must lose nothing and find clear words."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CommandLine

FREE = "#include <cuda_runtime.h>\nvoid f(void* p) { cudaFree(p); }"
AS_NVCC = """\
static int min(int a, int b) { return a < b ? a : b; }
int f(int a, unsigned b) { return min(a, 2) + (int)max(b, 3u) + (int)max(1.5f, 2.0); }
#if __CUDACC__
void g(void* p) { cudaFree(p); }
#endif
"""
NAMES = ["with space.cu", "quo\"te'.cu", "new\nline.cu", "内核/核.cu", "-dash.cu", "sub/-x/&;$(id).cuh"]
BIG = "big/generated.cu"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace after one run over everything odd."""
    folder = tmp_path_factory.mktemp("hostile")
    tree = folder / "tree"
    for name in NAMES:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(FREE)
    (tree / "big").mkdir()
    with (tree / BIG).open("w") as stream:
        for _block in range(50):
            stream.write("static const int table[] = {1, 2, 3, 4, 5, 6, 7, 8};\n" * 20_000)
    (tree / "mark.cu").write_bytes(b'\xef\xbb\xbf#include "mark.cuh"\r\nvoid g(void* p) { cudaFree(p); }')
    (tree / "mark.cuh").write_text("#pragma once\n#define SIZE sizeof(cudaDeviceProp)\n")
    (tree / "latin.cu").write_bytes(FREE.encode() + " // Größe".encode("latin-1"))
    (tree / "wide.cu").write_bytes(FREE.encode("utf-16"))
    (tree / "empty.cu").write_text("")
    (tree / "as_nvcc.cu").write_text(AS_NVCC)
    (folder / "outside.cuh").write_text(FREE)
    (tree / "outside.cuh").symlink_to("../outside.cuh")
    (tree / "loop").symlink_to(".")
    (tree / "self.cu").symlink_to("self.cu")
    locked = tree / "locked"
    locked.mkdir()
    (locked / "only.cu").write_text(FREE)
    (locked / "only.cu").chmod(0o444)
    locked.chmod(0o555)
    said = CommandLine(folder, {})("migrate", "tree", "--no-compile")
    locked.chmod(0o755)
    assert said.code == 0, said.err
    return folder


def findings(folder: Path, rule: str) -> dict[str, str]:
    found: list[dict[str, Any]] = json.loads((folder / "out/migrate/findings.json").read_text())["findings"]
    return {finding["path"]: finding["message"] for finding in found if finding["id"] == rule}


def test_every_odd_name_is_translated_under_its_name(done: Path) -> None:
    for name in (*NAMES, "locked/only.cu"):
        assert "hipFree(p)" in (done / "out/migrate/hip" / name).read_text(), name


def test_every_encoding_keeps_its_bytes(done: Path) -> None:
    hip, tree = done / "out/migrate/hip", done / "tree"
    assert "Größe".encode("latin-1") in (hip / "latin.cu").read_bytes()
    assert (hip / "mark.cu").read_bytes().startswith(b"\xef\xbb\xbf")
    assert (hip / "mark.cu").read_bytes().endswith(b"{ hipFree(p); }")
    assert "hipDeviceProp_t" in (hip / "mark.cuh").read_text()
    for name in ("wide.cu", BIG):
        assert (hip / name).read_bytes() == (tree / name).read_bytes(), name


def test_the_tool_reads_every_file_as_nvcc_does(done: Path) -> None:
    assert findings(done, "AMF1003") == {}, "none is left to the text map"
    assert "hipFree(p)" in (done / "out/migrate/hip/as_nvcc.cu").read_text()


def test_what_was_not_read_is_said(done: Path) -> None:
    assert set(findings(done, "AMF1005")) == {"wide.cu", BIG}
    left_out = findings(done, "AMF1006")
    assert "outside the tree" in left_out["outside.cuh"]
    assert "a link to nothing" in left_out["self.cu"]
    assert (done / "out/migrate/hip/outside.cuh").resolve() == (done / "outside.cuh").resolve()


def test_foreign_files_in_the_output_stop_it_before_the_work(amdflow: CommandLine) -> None:
    for folder in ("code", "hip"):
        (amdflow.folder / folder).mkdir()
        (amdflow.folder / folder / "a.cu").write_text(FREE)
    said = amdflow("migrate", "code", "--output", "hip", "--no-compile")
    assert said.code == 2
    assert "not from amdflow: a.cu" in said.err
    assert "CUDA sources to HIP" not in said.err, "it has not begun"
    assert (amdflow.folder / "hip" / "a.cu").read_text() == FREE


def start_over(amdflow: CommandLine, files: int) -> Any:
    """A good result, then a run over changed sources that has begun to translate."""
    for number in range(files):
        (amdflow.folder / "code").mkdir(exist_ok=True)
        (amdflow.folder / "code" / f"a{number}.cu").write_text("int a;\n")
    assert amdflow("migrate", "code", "--no-compile").code == 0
    for number in range(files):
        (amdflow.folder / "code" / f"a{number}.cu").write_text(f"{FREE} // {number}\n")
    running = amdflow.start("migrate", "code", "--no-compile", "--jobs", "1")
    scratch = amdflow.folder / "out" / ".amdflow" / "scratch"
    deadline = time.monotonic() + 120
    while not list(scratch.glob("*/hipify/*/out")):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return running


def test_ctrl_c_in_the_middle_leaves_the_last_good_output(amdflow: CommandLine) -> None:
    running = start_over(amdflow, 3)
    before = (amdflow.folder / "out/migrate/hip/a0.cu").read_text()
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(60) == 130
    assert "cancelled by Ctrl-C" in (amdflow.folder / "started.log").read_text()
    assert (amdflow.folder / "out/migrate/hip/a0.cu").read_text() == before
    assert json.loads((amdflow.folder / "out/migrate/manifest.json").read_text())["status"].startswith("ok")


def test_a_source_that_changes_meanwhile_is_named(amdflow: CommandLine) -> None:
    running = start_over(amdflow, 1)
    (amdflow.folder / "code/a0.cu").write_text("int changed_meanwhile;\n")
    assert running.wait(120) == 1
    said = (amdflow.folder / "started.log").read_text()
    assert "a0.cu was changed while it was being migrated" in said
    assert "run the same command again" in said
