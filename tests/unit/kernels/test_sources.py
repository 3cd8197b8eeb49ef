"""Kernels are found by what their files declare; the files are read, not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.content import shipped
from amdflow.errors import UsageError
from amdflow.kernels.sources import Folders, find_kernels, open_folders, read_kernel
from tests.unit.kernels.conftest import SCALE


def test_a_kernel_is_what_its_file_declares(folder: Path) -> None:
    found = read_kernel(folder / "scale.py")
    assert found is not None
    assert (found.op, found.name, found.settings) == ("scale", "kernels/scale.py", ("block_m", "threads"))
    assert found.cases[0].run == {"rows": 2}


def test_a_file_without_a_declaration_is_no_kernel(folder: Path) -> None:
    (folder / "helper.py").write_text("import nothing_that_exists\n")
    assert [kernel.op for kernel in find_kernels(Folders((folder,)))] == ["scale"]


def test_the_users_file_wins_over_the_shipped_one(folder: Path) -> None:
    (folder / "gemm.py").write_text(SCALE.replace('"op": "scale"', '"op": "gemm"'))
    found = {kernel.op: kernel for kernel in find_kernels(open_folders(folder, given="kernels"))}
    assert found["gemm"].path.parent == folder
    assert found["rope"].path.parent == shipped("kernels")


def test_the_default_folder_may_be_missing_another_may_not(tmp_path: Path) -> None:
    assert find_kernels(open_folders(tmp_path / "kernels", given="kernels"))
    with pytest.raises(UsageError, match="no such folder"):
        open_folders(tmp_path / "mine", given="mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        open_folders(tmp_path / "file", given="file")


def test_an_unknown_kernel_is_answered_with_the_nearest(folders: Folders) -> None:
    with pytest.raises(UsageError, match=r"'scal' \(did you mean scale\?\)"):
        find_kernels(folders, ("scal",))


def test_two_files_may_not_declare_one_operator(folder: Path) -> None:
    (folder / "again.py").write_text(SCALE)
    with pytest.raises(UsageError, match="both declare the kernel 'scale'"):
        find_kernels(Folders((folder,)))


def test_a_folder_without_kernels_says_what_one_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no kernels in") as caught:
        find_kernels(Folders((tmp_path,)))
    assert "KERNEL" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def build(:\n", r"bad\.py:1: not valid Python"),
        ("\nKERNEL = dict(op='x')\n", r"bad\.py:2: KERNEL must be a literal"),
        ("KERNEL = ['x']\ndef build(tl): ...\n", "must be a dictionary, not list"),
        (SCALE.partition("def build")[0], "no function build"),
        (SCALE.replace('"matrix"', '"matrx"'), r"unknown key 'matrx' \(did you mean matrix\?\)"),
        (SCALE.replace('"float32"', '"float64"'), "dtypes"),
        (
            SCALE.replace('{"width": "columns"}', '{"height": "rows"}'),
            "names the size 'height', which build does not take",
        ),
        (SCALE.replace('"op": "scale"', '"op": "../up"'), "op: string should match"),
    ],
)
def test_a_broken_declaration_is_one_clear_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(UsageError, match=complaint):
        read_kernel(tmp_path / "bad.py")


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_bytes(b"KERNEL = '\xff'\n")
    with pytest.raises(UsageError, match=r"bad\.py is not UTF-8 text \(byte 10\)"):
        read_kernel(tmp_path / "bad.py")
