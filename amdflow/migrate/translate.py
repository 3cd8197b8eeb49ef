"""The cascade: hipify-clang, hipify-clang with the ordinary preprocessor, the tool's map as text. No file is ever lost."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from amdflow.files import sha256_text, write_atomic
from amdflow.migrate import lexer
from amdflow.migrate.build_flags import BuildFlags, Flags
from amdflow.migrate.hipify import Attempt, Hipify, Message
from amdflow.migrate.include_graph import Digests, IncludeGraph
from amdflow.migrate.scan import Entry
from amdflow.migrate.text import line_ending, with_line_ending
from amdflow.pipeline.stage import Run

VERSION = "1"
"""Raise it when the same tool output would be used otherwise."""
HIPIFY_LIMIT_BYTES = 4_000_000
_CUDA = re.compile(
    r"(?-i:\bcu[A-Z]|\bCU_)|cuda|__global__|__device__|__shared__|__constant__|__host__|__launch_bounds__|cublas|curand|cufft|cusparse|cusolver|cudnn|cutlass"
    r"|cutensor|nccl|nvtx|nvml|nvrtc|nvcuda|<<<|\bthrust(?:::|/)|\bcub(?:::|/)|__(?:shfl|ballot|syncwarp|activemask)|__nv_",
    re.IGNORECASE,
)
_CUDA_ENDINGS = (".cu", ".cuh")


class Method(StrEnum):
    """How a file came to its translation."""

    HIPIFY = "hipify-clang"
    HIPIFY_PLAIN = "hipify-clang, ordinary preprocessor"
    TEXT = "text map"
    UNCHANGED = "no CUDA in it"
    CARRIED = "carried over"
    SCRIPT = "build script rules"


@dataclass(frozen=True)
class Translation:
    """What became of one file. ``text`` is the tool's or the map's output before fixes; ``reason`` says why the tool was not used or failed."""

    name: str
    method: Method
    text: str
    messages: tuple[Message, ...] = ()
    reason: str = ""


def concerns_cuda(entry: Entry, text: str) -> bool:
    """Whether there is anything to translate (outside comments and strings)."""
    if entry.name.endswith(_CUDA_ENDINGS):
        return True
    if not _CUDA.search(text):
        return False
    return bool(_CUDA.search(lexer.mask(text))) or any(_CUDA.search(include.path) for include in lexer.includes(text))


class Translator:
    """Runs the cascade over a tree, in parallel, remembering what the tool answered."""

    def __init__(
        self,
        tool: Hipify,
        build: BuildFlags,
        graph: IncludeGraph,
        texts: Mapping[str, str],
        run: Run,
        extra: Sequence[str],
    ) -> None:
        self._tool, self._build, self._graph, self._texts, self._run, self._extra = (
            tool,
            build,
            graph,
            texts,
            run,
            tuple(extra),
        )
        self._digests = Digests(graph, texts)
        self._cache = run.cache / "hipify"
        self.processes = 0
        self.reused = 0

    def all(self, entries: Sequence[Entry], jobs: int, advance: Callable[[str], None]) -> dict[str, Translation]:
        """Translations by name. ``advance`` is called with each file's name when it is done; the largest files go first."""
        self._cache.mkdir(parents=True, exist_ok=True)
        order = sorted(entries, key=lambda entry: -entry.size)

        def one(entry: Entry) -> Translation:
            done = self._translate(entry)
            advance(entry.name)
            return done

        with ThreadPoolExecutor(jobs, thread_name_prefix="hipify") as pool:
            return {done.name: done for done in pool.map(one, order)}

    def flags(self, entry: Entry) -> Flags:
        """What the compiler needs to know for this file."""
        return self._build.of(entry.path).merged(Flags(self._graph.closure_folders(entry.name)))

    def _translate(self, entry: Entry) -> Translation:
        text = self._texts[entry.name]
        if not concerns_cuda(entry, text):
            return Translation(entry.name, Method.UNCHANGED, text)
        if entry.size > HIPIFY_LIMIT_BYTES:
            return Translation(
                entry.name,
                Method.TEXT,
                text,
                reason=f"larger than {HIPIFY_LIMIT_BYTES // 1_000_000} MB, so hipify-clang was not asked",
            )
        flags = self.flags(entry)
        reasons = []
        for method in (Method.HIPIFY, Method.HIPIFY_PLAIN):
            attempt = self._ask(entry, flags, plain=method is Method.HIPIFY_PLAIN)
            if attempt.text is not None:
                return Translation(
                    entry.name, method, with_line_ending(attempt.text, line_ending(text)), attempt.messages
                )
            reasons.append(attempt.failure)
            if "file not found" in attempt.failure:
                break  # the other preprocessor mode would miss the same file
        return Translation(entry.name, Method.TEXT, text, reason="; then: ".join(dict.fromkeys(reasons)))

    def _ask(self, entry: Entry, flags: Flags, *, plain: bool) -> Attempt:
        """The tool's answer, from the cache when the file, all it includes, the flags and the tool are the same."""
        words = self._tool.command(Path(entry.name), Path("-"), flags, self._extra, default_preprocessor=plain)
        key = self._digests.of(entry.name, VERSION, self._tool.version, *words[1:])
        kept = self._cache / f"{key}.json"
        try:
            attempt = Attempt.from_json(json.loads(kept.read_text(encoding="utf-8", errors="surrogateescape")))
        except (OSError, ValueError, KeyError, TypeError):
            attempt = self._call(entry, flags, plain=plain)
            if attempt.settled:
                write_atomic(kept, json.dumps(attempt.to_json()))
        else:
            kept.touch()
            self.reused += 1
        return attempt

    def _call(self, entry: Entry, flags: Flags, *, plain: bool) -> Attempt:
        scratch = self._run.scratch / "hipify" / sha256_text(entry.name)[:16]
        self.processes += 1
        try:
            attempt, done = self._tool.convert(entry.path, scratch, flags, self._extra, default_preprocessor=plain)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if self.processes == 1 or attempt.text is None:
            log = self._run.logs / "hipify.log"
            with log.open("a", encoding="utf-8", errors="replace") as stream:
                stream.write(f"== {entry.name}\n{done.output}\n")
            self._run.record(done, cwd=entry.path.parent, log=log)
        return attempt
