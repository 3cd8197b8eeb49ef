"""Preprocessor conditions as the HIP compiler sees them."""

from __future__ import annotations

import pytest

from amdflow.migrate.lexer import mask
from amdflow.migrate.rules.conditions import branches, comes_out_otherwise, evaluate


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("__CUDA_ARCH__ >= 700", 0),
        ("__CUDA_ARCH__ < 600", 1),
        ("defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 530", 0),
        ("!defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 700)", 1),
        ("defined(__CUDA_ARCH__)", None),
        ("defined __HIPCC__ || FOO", 1),
        ("FOO && CUDA_VERSION >= 11*1000", 0),
        ("FOO || CUDA_VERSION >= 11000", None),
        ("CUDART_VERSION - 1 == -1 && !0x10 == 0", 1),
        ("__has_include(<cub/cub.cuh>) && 0", 0),
        ("__has_include(<cub/cub.cuh>)", None),
        ("10'000 % 0", None),
        ("CUDA_VERSION ? 1 : 0", None),
        ("", None),
        ("((", None),
    ],
)
def test_values(condition: str, expected: int | None) -> None:
    assert evaluate(condition) == expected


def test_branches_of_nested_and_unbalanced_groups() -> None:
    text = """#endif
#ifdef CUDA_VERSION
a
#elif FOO /* __CUDA_ARCH__ */
b
# if 0
c
# else
d
# endif
#else
e
#endif
#ifndef __HIP__
f
"""
    found = {text[branch.start : branch.end].strip(): (branch.dead, branch.by_cuda) for branch in branches(mask(text))}
    assert found["a"] == (True, True)
    assert found["c"] == (True, False)
    assert found["d"] == (False, False)
    assert found["e"] == (False, False)
    assert "f" not in found, "a group without an end tells nothing"


def test_what_follows_a_branch_that_is_always_taken_is_dead() -> None:
    text = "#if __CUDA_ARCH__ < 600\nold\n#else\nnew\n#endif\n"
    assert [(branch.dead, branch.by_cuda) for branch in branches(text)] == [(False, False), (True, True)]


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("#if CUDART_VERSION >= 4000", True),
        ("#if CUDART_VERSION < 4000", True),
        ("#if CUDART_VERSION >= 13000", False),
        ("#if CUDART_VERSION < 13000", False),
        ("# elif __CUDA_ARCH__ >= 800", True),
        ("#if __CUDA_ARCH__ >= 200", True),
        ("#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 350", False),
        ("#if __CUDA_ARCH__ < 900 && FOO", True),
        ("#ifdef CUDA_VERSION", True),
        ("#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 8)", True),
    ],
)
def test_what_comes_out_otherwise_for_amd(directive: str, expected: bool) -> None:
    assert comes_out_otherwise(directive) is expected


def test_macros_that_the_program_defines_agree() -> None:
    assert not comes_out_otherwise("#if __CUDA_API_VERSION >= 4000", {"__CUDA_API_VERSION"})
    assert comes_out_otherwise("#if __CUDA_API_VERSION >= 4000 && CUDA_VERSION > 1", {"__CUDA_API_VERSION"})
