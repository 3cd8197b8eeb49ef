"""CUDA's own headers, read once: hipify-clang spends half its time on them, for every file anew.

A precompiled header made by the compiler of the same LLVM spares it that. It is used only after the tool has given the
same answer with and without it.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from amdflow import process
from amdflow.files import sha256_text
from amdflow.migrate.build_flags import DEFAULT_STANDARD, Flags
from amdflow.migrate.hipify import RELOCATABLE, Hipify, Question

_WORTH_IT_AFTER = 4
"""Files of one standard; making it costs about three of them."""
_TIME_LIMIT_SECONDS = 120.0
_HARMLESS = ("-I", "-D", "-isystem", "-W")
_PROBE = """\
#include <cuda_runtime.h>
#include <cstdio>
template <typename T> __global__ void scale(T* data, T by) { data[threadIdx.x] *= by; }
int main() {
  float* data = nullptr;
  cudaError_t status = cudaMalloc(&data, 256);
  cudaFuncSetCacheConfig(scale<float>, cudaFuncCachePreferL1);
  scale<<<1, 64>>>(data, 2.0f);
  std::puts(cudaGetErrorString(status));
  return cudaFree(data) == cudaSuccess ? 0 : 1;
}
"""


class Precompiled:
    """Makes them when they are worth it, one for each C++ standard, and keeps them in ``cache``."""

    def __init__(self, tool: Hipify, cache: Path, scratch: Path) -> None:
        self._tool, self._cache, self._scratch = tool, cache, scratch
        self._lock = threading.Lock()
        self._wanted: Counter[str] = Counter()
        self._options: dict[str, tuple[str, ...]] = {}

    def options(self, flags: Flags, extra: Sequence[str]) -> tuple[str, ...]:
        """Options for hipify-clang; none where they could change its answer or are not worth their making yet."""
        standard = flags.standard or DEFAULT_STANDARD
        harmless = all(word.startswith(_HARMLESS) and len(word) > 2 for word in extra)
        if self._tool.clang is None or not harmless or any(_touches_headers(macro) for macro in flags.macros):
            return ()
        header = self._cache / f"{self._key(standard)}.pch"
        with self._lock:
            if standard not in self._options and header.is_file():
                self._options[standard] = self._found(header)
            self._wanted[standard] += 1
            if standard in self._options or self._wanted[standard] < _WORTH_IT_AFTER:
                return self._options.get(standard, ())
            self._options[standard] = ()  # other threads go on without it meanwhile
        made = self._make(header, standard)
        self._options[standard] = made
        return made

    def _found(self, header: Path) -> tuple[str, ...]:
        os.utime(header)
        return _use(header) if header.stat().st_size else ()

    def _make(self, header: Path, standard: str) -> tuple[str, ...]:
        """The options, once proven; an empty file stands for one that does not work."""
        folder = self._scratch / f"precompiled-{header.stem}"
        folder.mkdir(parents=True, exist_ok=True)
        header.parent.mkdir(parents=True, exist_ok=True)
        draft, empty = folder / "header.pch", folder / "empty.cu"
        empty.write_text("", encoding="utf-8")
        done = process.run(self._command(empty, draft, standard), cwd=folder, timeout=_TIME_LIMIT_SECONDS, check=False)
        if done.returncode or not draft.is_file() or not self._proven(draft, folder, standard):
            draft.write_bytes(b"")
        os.replace(draft, header)
        shutil.rmtree(folder)
        return self._found(header)

    def _command(self, empty: Path, output: Path, standard: str) -> list[str]:
        words = [str(self._tool.clang), "-x", "cuda", "--cuda-host-only", "-nocudalib", RELOCATABLE, f"-std={standard}"]
        for option in self._tool.options:
            name, _equals, value = option.partition("=")
            if name == "--extra-arg":
                words.append(value)
            elif name == "--clang-resource-directory":
                words += ["-resource-dir", value]
            else:
                words.append(option)
        words += ["-Wno-everything", "-fsyntax-only", "-Xclang", "-emit-pch", "-Xclang", "-o", "-Xclang", str(output)]
        return [*words, str(empty)]

    def _proven(self, header: Path, folder: Path, standard: str) -> bool:
        probe = folder / "probe.cu"
        probe.write_text(_PROBE, encoding="utf-8")
        answers = []
        for number, options in enumerate(((), _use(header))):
            question = Question(probe, folder, Flags(standard=standard), precompiled=options)
            answers.append(self._tool.convert(question, folder / str(number))[0])
        return answers[0].text is not None and answers[0] == answers[1]

    def _key(self, standard: str) -> str:
        tool = self._tool
        stamps = [str(path.stat().st_mtime_ns) for path in (tool.program, tool.clang) if path is not None]
        return sha256_text("\0".join((tool.version, *tool.options, *stamps, standard)))[:24]


def _use(header: Path) -> tuple[str, ...]:
    # The distribution builds clang and hipify-clang apart: their build numbers differ, which clang would refuse.
    return ("-Xclang", "-include-pch", "-Xclang", str(header), "-Xclang", "-fno-validate-pch")


def _touches_headers(macro: str) -> bool:
    """Whether it may change what a system or CUDA header says."""
    return macro.startswith(("_", "CUDA", "CUB", "THRUST", "CCCL", "NV_"))
