"""Runs in the kernels environment: fills TileLang's cache of compiled kernels for AMD targets, with no GPU at hand.

    TILELANG_CACHE_DIR=FOLDER ROCM_PATH=... python prefill.py JOBS.json

A job is {"id", "module", "target", "build"}, as for lower.py. TileLang compiles with ROCM_PATH/bin/hipcc and keeps the
result under a key of the kernel's program, the target and its own version, which is the key that a process on a machine
with that GPU looks for. A line on stdout is {"id", "ok", "seconds"} and, when it failed, "error".
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

# a script's folder is first on its path
from tilelang_ops.lowering import compile_for_gpu, hip_target, language_for, load_module


def main() -> int:
    """Compile every job; a failed one does not stop the others."""
    for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        started = time.monotonic()
        line: dict[str, Any] = {"id": job["id"], "ok": True}
        try:
            module = load_module(job["module"])
            function = module.build(language_for(job["target"]), **job["build"])
            with hip_target(job["target"]):
                compile_for_gpu(module, function)
        except Exception as error:
            traceback.print_exc()
            line |= {"ok": False, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
        sys.stdout.write(json.dumps(line | {"seconds": round(time.monotonic() - started, 3)}) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
