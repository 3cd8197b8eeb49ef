"""What nvcc has before line 1 of every file and clang, parsing CUDA, has not."""

from __future__ import annotations

_ALIKE = ("int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "float", "double")
_MIXED = (("int", "unsigned int"), ("long", "unsigned long"), ("long long", "unsigned long long"), ("float", "double"))


def _host_function(name: str, sign: str, left: str, right: str, result: str) -> str:
    # a template steps back behind a function of the program's own, parentheses keep a macro of that name off
    return (
        f"template <typename = void> inline {result} ({name})({left} a, {right} b) {{ return a {sign} b ? a : b; }}\n"
    )


def _prelude() -> str:
    pairs = [(one, one, one) for one in _ALIKE]
    pairs += [pair for low, high in _MIXED for pair in ((low, high, high), (high, low, high))]
    functions = [
        _host_function(name, sign, left, right, result)
        for name, sign in (("min", "<"), ("max", ">"))
        for left, right, result in pairs
    ]
    # clang leaves the macro empty, which `#if __CUDACC__` does not survive
    return "".join(("#undef __CUDACC__\n#define __CUDACC__ 1\n", *functions))


PRELUDE = _prelude()
"""Source text: ``__CUDACC__`` with a value, ``min`` and ``max`` of two numbers in host code."""
