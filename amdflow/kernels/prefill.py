"""``kernels export --jit-cache``: fills TileLang's own cache, for processes that have TileLang but should not wait for it."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amdflow import process
from amdflow.errors import AmdflowError
from amdflow.files import write_json
from amdflow.kernels.baseline import name_of
from amdflow.kernels.compile import stand_in_headers
from amdflow.kernels.item import SCRIPTS
from amdflow.kernels.sources import Folders, find_kernels
from amdflow.terminal import Terminal
from amdflow.toolchain import Engine, Rocm

CACHE_VARIABLE = "TILELANG_CACHE_DIR"


def prefill(
    rows: Sequence[Mapping[str, Any]], folders: Folders, cache: Path, *, engine: Engine, rocm: Rocm, terminal: Terminal
) -> int:
    """Compile what ``rows`` of the build's table name into TileLang's cache at ``cache``; returns how many.

    Raises AmdflowError that names the first kernel which TileLang could not compile.
    """
    paths = {kernel.op: str(kernel.path) for kernel in find_kernels(folders)}
    jobs = [
        {
            "id": name_of(row),
            "module": paths[row["kernel"]],
            "target": row["target"],
            "build": {"dtype": row["dtype"], **row["sizes"], **row["tiles"]},
        }
        for row in rows
    ]
    failed: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch, terminal.progress("filling", total=len(jobs), unit="kernels") as bar:

        def on_line(line: str) -> None:
            if line.startswith('{"id"'):
                answer = json.loads(line)
                failed.extend([] if answer["ok"] else [answer])
                bar.update(1, note=answer["id"])

        orders = Path(scratch) / "jobs.json"
        write_json(orders, jobs)
        environment = engine.environment() | {
            "ROCM_PATH": str(_compiler_folder(Path(scratch) / "rocm", rocm)),
            CACHE_VARIABLE: str(cache),
        }
        argv = [str(engine.python), str(SCRIPTS / "prefill.py"), str(orders)]
        process.run(argv, env={**os.environ, **environment}, on_line=on_line)
    if failed:
        raise AmdflowError(
            f"TileLang could not compile {len(failed)} of {len(jobs)} kernels: {failed[0]['id']}: {failed[0]['error']}",
            hint="amdflow kernels build says whether it is the kernel",
        )
    return len(jobs)


def _compiler_folder(folder: Path, rocm: Rocm) -> Path:
    """A folder with ``bin/hipcc`` that calls ROCm's clang as ``kernels build`` does; TileLang asks for no more."""
    headers = stand_in_headers(folder / "include")
    options = [*rocm.compile_flags(), "--cuda-device-only", "--no-gpu-bundle-output", f"-I{headers}"]
    script = folder / "bin" / "hipcc"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        "# --genco is hipcc's word for what the options below say\n"
        'for word do shift; [ "$word" = --genco ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.join([str(rocm.clang), *options])} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return folder
