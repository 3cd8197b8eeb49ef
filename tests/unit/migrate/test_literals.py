"""String literals that hipify-clang must not see, and their way back."""

from __future__ import annotations

import pytest

from amdflow.migrate.literals import protect, restore

RISKY = [
    'const char* s = "call cudaMalloc first";',
    'auto s = R"(cudaFree(p);\ncuInit(0);)";',
    'auto s = u8R"cuda(cudaFree "quoted" )cuda";',
    'puts("a" "cudaFree" /* cudaFree */ "b");',
    'const char* s = "a \\" cudaFree";',
]


@pytest.mark.parametrize("text", RISKY)
def test_a_name_in_a_literal_is_disguised_and_comes_back(text: str) -> None:
    hidden = protect(text)
    assert len(hidden) == len(text)
    assert all("cudaFree" not in part for part in hidden.split("/*")[0].split("*/"))
    assert restore(text, hidden) == text


def test_code_comments_and_file_names_are_left_to_the_tool() -> None:
    text = (
        '#include "cuda_helper.h"\n#define H "cuda_other.cuh"\ncudaFree(p); // cudaFree "cudaFree"\nchar c = \'"\';\n'
    )
    assert protect(text) == text


def test_the_code_around_literals_keeps_its_translation() -> None:
    original = 'say("cudaFree"); cudaFree(p); say(R"(cudaFree)");'
    answer = protect(original).replace("cudaFree(p)", "hipFree(p)")
    assert restore(original, answer) == 'say("cudaFree"); hipFree(p); say(R"(cudaFree)");'


def test_an_answer_with_other_literals_is_refused() -> None:
    assert restore('f("a");', 'f("a", "b");') is None
