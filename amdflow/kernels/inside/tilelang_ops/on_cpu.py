"""Kernels on the CPU: lowered to C++ and compiled once a user, kernel and version, then found again by any process."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from . import lowering
from .library import call_library
from .lowering import describe, lower_cpu

_OPTIONS = ("-O2", "-std=c++17", "-fPIC", "-fno-strict-aliasing", "-w")


def launcher_for_cpu(function: Any) -> Callable[..., None]:
    """What calls ``function``, built with the CPU's dialect, with its parameters in order."""
    folder = _folder() / _digest(function.script(), _makers())
    if not (folder / "launch.json").is_file():
        _make(function, folder)
    launch = json.loads((folder / "launch.json").read_text(encoding="utf-8"))
    call = getattr(ctypes.CDLL(str(folder / "kernel.so")), launch["symbol"])
    names, parameters = launch["names"], launch["parameters"]
    return lambda *values: call_library(call, parameters, dict(zip(names, values, strict=True)))


def _folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "amdflow" / "cpu-kernels"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _makers() -> str:
    """What, beside the kernel, decides how it comes out."""
    import tilelang

    return _digest(tilelang.__version__, *_OPTIONS, Path(lowering.__file__).read_text(encoding="utf-8"))


def _make(function: Any, folder: Path) -> None:
    """Fill ``folder``; of processes that do so at once the first one's files stay."""
    import tilelang
    from tilelang.contrib.cc import create_shared

    source, device = lower_cpu(function)
    (part,) = device.functions.values()
    launch = {
        "symbol": str(part.attrs["global_symbol"]),
        "names": [str(function.buffer_map.get(parameter, parameter).name) for parameter in function.params],
        "parameters": describe(function, part)["parameters"],
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        (made / "kernel.cpp").write_text(source, encoding="utf-8")
        (made / "launch.json").write_text(json.dumps(launch), encoding="utf-8")
        include = Path(tilelang.__file__).parent / "src"
        create_shared(str(made / "kernel.so"), [str(made / "kernel.cpp")], [*_OPTIONS, f"-I{include}"])
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "launch.json").is_file():
                raise
