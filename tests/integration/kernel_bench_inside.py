"""Runs in the kernels environment; prints JSON lines that test_kernels_bench.py looks at."""

from __future__ import annotations

import json

from measuring.cases import FACTORIES, case
from measuring.compare import check
from measuring.sizes import CHECKED, OPERATORS, TIMED

SMALL: dict[str, dict[str, int]] = {
    "rms_norm": {"rows": 5, "hidden": 77},
    "rope": {"batch": 2, "tokens": 7, "q_heads": 9, "k_heads": 3, "head": 64},
    "gemm": {"m": 7, "n": 40, "k": 72},
    "column_sum": {"parts": 5, "width": 77},
}


def main() -> None:
    """Check small cases on the CPU, and every case's work."""
    print(json.dumps({"operators": sorted(FACTORIES) == sorted(OPERATORS)}))
    works = {}
    for op in OPERATORS:
        for sizes in (*CHECKED[op], *TIMED[op]):
            one = case(op, sizes)
            for which in one.passes:
                works[f"{op} {which}"] = one.work(which, "bfloat16")
            assert one.contenders()["ours"] is one.ours
    print(json.dumps({"works": works}))
    for op, sizes in SMALL.items():
        print(json.dumps({"op": op, **check(case(op, sizes), "bfloat16", "cpu")}), flush=True)
    try:
        case("rms_norm", {"rows": 1, "hiden": 2})
    except ValueError as error:
        print(json.dumps({"refused": str(error)}))


if __name__ == "__main__":
    main()
