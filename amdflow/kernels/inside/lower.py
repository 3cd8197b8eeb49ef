"""Runs in the kernels environment: lowers TileLang kernels to HIP C++ (or C for the CPU), one JSON line each on stdout.

    python lower.py JOBS.json

JOBS.json is a list of {"id", "module", "target", "build", "folder"}: ``module`` is the kernel's file, ``target`` a gfx
name or ``cpu``, ``build`` the keyword arguments of its ``build``, ``folder`` where ``source.hip`` (``source.cpp``) and
``launch.json`` go. With "typical" (sizes given at launch) and "sizes" (the fixed ones) the description also holds what
the kernel's ``work`` says of them. A line is {"id", "ok", "seconds"} and, when it failed, "error"; the first
line is {"include"}, the folder of the headers that the sources include.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

# a script's folder is first on its path
from tilelang_ops.lowering import describe, language_for, load_module, lower_cpu, lower_hip

_LIMIT_SECONDS = 300
"""A kernel that takes longer ends the process, as a crash of TileLang does."""
_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


def main() -> int:
    """Lower every job; a failed one does not stop the others."""
    jobs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    import tilelang

    _answer({"include": str(Path(tilelang.__file__).parent / "src")})
    for job in jobs:
        started = time.monotonic()
        line: dict[str, Any] = {"id": job["id"], "ok": True}
        faulthandler.dump_traceback_later(_LIMIT_SECONDS, exit=True)
        try:
            lower(job)
        except Exception as error:
            traceback.print_exc()
            words = [text for text in f"{type(error).__name__}: {error}".splitlines() if text.strip()]
            line |= {"ok": False, "error": "\n".join(words[:1] + words[1:][-5:])}
        faulthandler.cancel_dump_traceback_later()
        line["seconds"] = round(time.monotonic() - started, 3)
        _answer(line)
    return 0


def _answer(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def lower(job: dict[str, Any]) -> None:
    """Write one kernel's source and launch description."""
    module = load_module(job["module"])
    function = module.build(language_for(job["target"]), **job["build"])
    cpu = job["target"] == "cpu"
    source, device = lower_cpu(function) if cpu else lower_hip(function, job["target"])
    functions = list(device.functions.values())
    if len(functions) != 1:
        raise ValueError(
            f"one device function expected, not {len(functions)}: {[str(found.attrs['global_symbol']) for found in functions]}"
        )
    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ("source.cpp" if cpu else "source.hip")).write_text(source, encoding="utf-8")
    launch = describe(function, functions[0]) | work_of(module, job)
    (folder / "launch.json").write_text(json.dumps(launch, indent=2) + "\n", encoding="utf-8")


def work_of(module: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Operations and bytes at the kernel's typical sizes; nothing for a kernel that does not say."""
    if not job.get("typical") or not hasattr(module, "work"):
        return {}
    flop, moved = module.work(dtype_bytes=_BYTES[job["build"]["dtype"]], **(job["typical"] | job["sizes"]))
    return {"work": {"typical": job["typical"], "flop": flop, "bytes": moved}}


if __name__ == "__main__":
    sys.exit(main())
