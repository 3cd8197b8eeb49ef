"""Runs in the kernels environment: runs built kernels beside their torch references, one JSON line each on stdout.

    python check.py probe          says what GPU torch sees: {"gpu": null} or {"gpu": {"target": "cuda" or a gfx name, "name"}}
    python check.py run JOBS.json  checks every job

A job is {"id", "module", "target", "build", "run", "dtype"}, with {"library", "launch"} when the target is ``cpu``; on a
GPU TileLang compiles the kernel itself. A line is {"id", "worst"}: the largest error of any element, relative to the
element's size plus the root mean square of the whole result; or {"id", "error"}.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

# a script's folder is first on its path
from measuring.numbers import check


def main() -> int:
    """Check every job; a failed one does not stop the others."""
    if sys.argv[1] == "probe":
        _answer({"gpu": _gpu()})
        return 0
    for job in json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")):
        try:
            _answer({"id": job["id"], "worst": check(job)})
        except Exception as error:
            traceback.print_exc()
            _answer({"id": job["id"], "error": f"{type(error).__name__}: {error}".splitlines()[0]})
    return 0


def _gpu() -> dict[str, str] | None:
    if not torch.cuda.is_available():
        return None
    facts = torch.cuda.get_device_properties(0)
    arch = getattr(facts, "gcnArchName", "") if torch.version.hip else ""
    return {"target": arch.partition(":")[0] or "cuda", "name": facts.name}


def _answer(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
