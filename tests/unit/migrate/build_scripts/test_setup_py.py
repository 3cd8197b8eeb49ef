"""setup.py: flags and libraries only; the script stays Python."""

from __future__ import annotations

import ast

import pytest

from tests.unit.migrate.build_scripts.scripts import setup


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["-O3", "--expt-relaxed-constexpr"]', '["-O3"]'),
        ('["--expt-relaxed-constexpr", "-O3"]', '["-O3"]'),
        ('["-gencode=arch=compute_80,code=sm_80"]', "[]"),
        ('["-gencode", "arch=compute_80,code=sm_80", "-O3"]', '["-O3"]'),
        ("['-Xcompiler', '-fPIC', '-O3']", "['-fPIC', '-O3']"),
        ('["-Xcompiler=-Wall,-fPIC"]', '["-Wall", "-fPIC"]'),
        ('["-lineinfo"]', '["-gline-tables-only"]'),
        ('["--threads", "4"]', "[]"),
        ('["-O3", "-std=c++17", "-DX"]', '["-O3", "-std=c++17", "-DX"]'),
    ],
)
def test_flags(before: str, after: str) -> None:
    start, end = 'CUDAExtension("x", ["x.cu"], extra_compile_args={"cxx": ["-O3"], "nvcc": ', "})\n"
    made = setup(start + before + end)
    assert made == start + after + end
    ast.parse(made)


def test_flags_that_are_appended_and_libraries() -> None:
    text = 'nvcc = []\nnvcc.append("--use_fast_math")\nCUDAExtension("ü", [], libraries=["cublas", "cudadevrt", "m"])\n'
    made = setup(text)
    assert "-fgpu-approx-transcendentals" in made
    assert 'libraries=["hipblas", "m"]' in made


@pytest.mark.parametrize(
    "text",
    [
        "from setuptools import setup\nsetup(name='x', libraries=['cublas'])\n",
        "CUDAExtension(  # not Python\n",
        'CUDAExtension("x", ["x.cu"])\n',
    ],
)
def test_what_is_not_understood_is_left_alone(text: str) -> None:
    assert setup(text) == text
