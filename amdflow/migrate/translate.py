"""The cascade: hipify-clang in the context of a unit, alone, with the ordinary preprocessor, the tool's map as text.

No file is ever lost.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from amdflow.files import sha256_text, write_atomic
from amdflow.migrate import context, lexer, literals
from amdflow.migrate.build_flags import BuildFlags, Flags
from amdflow.migrate.context import Context, Contexts
from amdflow.migrate.hipify import Attempt, Hipify, Message, Question
from amdflow.migrate.include_graph import Digests, IncludeGraph
from amdflow.migrate.nvcc_prelude import PRELUDE
from amdflow.migrate.precompiled import Precompiled
from amdflow.migrate.scan import Entry
from amdflow.migrate.text import encode, line_ending, with_line_ending
from amdflow.migrate.workers import in_parallel
from amdflow.pipeline.stage import Run

VERSION = "5"
"""Raise it when the same tool output would be used otherwise."""
HIPIFY_LIMIT_BYTES = 4_000_000
_CUDA = re.compile(
    r"(?-i:\bcu[A-Z]|\bCU_)|cuda|__global__|__device__|__shared__|__constant__|__host__|__launch_bounds__|cublas|curand|cufft|cusparse|cusolver|cudnn|cutlass"
    r"|cutensor|nccl|nvtx|nvml|nvrtc|nvcuda|<<<|\bthrust(?:::|/)|\bcub(?:::|/)|__(?:shfl|ballot|syncwarp|activemask)|__nv_",
    re.IGNORECASE,
)
_CUDA_ENDINGS = (".cu", ".cuh")
_BRANCH = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b", re.MULTILINE)
_GUARD = re.compile(
    r"#[ \t]*(?:ifndef[ \t]+|if[ \t]+!defined[ \t]*\(?[ \t]*)(\w+)\)?[^\n]*\n\s*#[ \t]*define[ \t]+\1\b"
)


class Method(StrEnum):
    """How a file came to its translation."""

    HIPIFY = "hipify-clang"
    CONTEXT = "hipify-clang, in the context of a unit"
    HIPIFY_PLAIN = "hipify-clang, ordinary preprocessor"
    TEXT = "text map"
    UNCHANGED = "no CUDA in it"
    CARRIED = "carried over"
    SCRIPT = "build script rules"


@dataclass(frozen=True)
class Translation:
    """What became of one file.

    ``text`` is the tool's or the map's output before fixes; ``reason`` says why the tool was not used or failed, and
    ``notes`` how it was used.
    """

    name: str
    method: Method
    text: str
    messages: tuple[Message, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Try:
    """One step of the cascade."""

    method: Method
    flags: Flags
    context: Context | None = None
    plain: bool = False


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
        self._tool, self._build, self._graph, self._texts, self._run = tool, build, graph, texts, run
        self._extra = tuple(extra)
        self._digests = Digests(graph, texts)
        self._contexts = Contexts(graph, texts)
        self._cache = run.cache / "hipify"
        self._precompiled = Precompiled(tool, run.cache / "precompiled", run.scratch / "hipify")
        self.processes = 0
        self.reused = 0

    def all(self, entries: Sequence[Entry], jobs: int) -> dict[str, Translation]:
        """Translations by name; the largest files go first."""
        self._cache.mkdir(parents=True, exist_ok=True)
        order = sorted(entries, key=lambda entry: -entry.size)
        with self._run.terminal.progress("translate", len(order), "files") as bar:
            done = in_parallel(self._translate, order, jobs, bar, "hipify", lambda entry: entry.name)
        shutil.rmtree(self._run.scratch / "hipify", ignore_errors=True)
        return {translation.name: translation for translation in done}

    def flags(self, entry: Entry) -> Flags:
        """What the compiler needs to know for this file."""
        return self._build.of(entry.path).merged(Flags(self._graph.closure_folders(entry.name)))

    def _translate(self, entry: Entry) -> Translation:
        text = self._texts[entry.name]
        if not concerns_cuda(entry, text):
            return Translation(entry.name, Method.UNCHANGED, text)
        if entry.size > HIPIFY_LIMIT_BYTES:
            reason = f"larger than {HIPIFY_LIMIT_BYTES // 1_000_000} MB, so hipify-clang was not asked"
            return Translation(entry.name, Method.TEXT, text, reason=reason)
        reasons: dict[str, None] = {}
        worth, line = True, 0
        for step in self._steps(entry):
            if step.plain and not (worth and branches_before(text, line)):
                continue
            attempt = self._ask(entry, step)
            if attempt.text is not None:
                return self._taken(entry, step, attempt.text, attempt.messages)
            reasons[attempt.failure] = None
            worth, line = attempt.line > 0 or "file not found" not in attempt.failure, attempt.line
        return Translation(entry.name, Method.TEXT, text, reason="; then: ".join(reasons))

    def _steps(self, entry: Entry) -> Iterator[_Try]:
        """Each way to ask; one with the ordinary preprocessor follows the same with all branches."""
        flags = self.flags(entry)
        found = self._contexts.of(entry.name)
        if found is not None:
            unit = self._graph.entries[found.unit]
            there = self.flags(unit).merged(flags)
            there = replace(there, folders=(*there.folders, *context.folders(found, self._graph.root)))
            yield _Try(Method.CONTEXT, there, found)
            yield _Try(Method.CONTEXT, there, found, plain=True)
        yield _Try(Method.HIPIFY, flags)
        yield _Try(Method.HIPIFY_PLAIN, flags, plain=True)

    def _taken(self, entry: Entry, step: _Try, text: str, messages: tuple[Message, ...]) -> Translation:
        original = self._texts[entry.name]
        notes = [f"translated as {step.context.unit} includes it"] if step.context else []
        if literals.protect(original) != original:
            notes.append("kept the text of string literals in which hipify-clang renames API names")
        text = with_line_ending(text, line_ending(original))
        return Translation(entry.name, step.method, text, messages, notes=tuple(notes))

    def _ask(self, entry: Entry, step: _Try) -> Attempt:
        """The tool's answer, from the cache when the file, all it includes, the flags and the tool are the same."""
        named = Question(Path(entry.name), entry.path.parent, step.flags, self._extra, None, step.plain)
        before = (step.context.before,) if step.context else ()
        words = self._tool.command(named, Path("-"))[1:]
        reads = step.context.reads if step.context else ()
        key = self._digests.of((entry.name, *reads), VERSION, self._tool.version, *before, *words)
        kept = self._cache / f"{key}.json"
        try:
            attempt = Attempt.from_json(json.loads(kept.read_text(encoding="utf-8", errors="surrogateescape")))
        except (OSError, ValueError, KeyError, TypeError):
            attempt = self._call(entry, step)
            if attempt.settled:
                write_atomic(kept, json.dumps(attempt.to_json()))
        else:
            kept.touch()
            self.reused += 1
        return attempt

    def _call(self, entry: Entry, step: _Try) -> Attempt:
        scratch = self._run.scratch / "hipify" / sha256_text(entry.name)[:16]
        scratch.mkdir(parents=True, exist_ok=True)
        self.processes += 1
        try:
            question = self._question(entry, step, scratch)
            attempt, done = self._tool.convert(question, scratch / "out")
            if question.precompiled and attempt.failure.startswith("hipify-clang "):  # it crashed
                attempt, done = self._tool.convert(replace(question, precompiled=()), scratch / "out")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if self.processes == 1 or attempt.text is None:
            log = self._run.logs / "hipify.log"
            with log.open("a", encoding="utf-8", errors="replace") as stream:
                stream.write(f"== {entry.name}\n{done.output}\n")
            self._run.record(done, cwd=entry.path.parent, log=log)
        return self._mended(entry, step, attempt)

    def _question(self, entry: Entry, step: _Try, scratch: Path) -> Question:
        """The file itself where it can be read as it is, else a copy of it, with what its includer says before it."""
        original = self._texts[entry.name]
        text = literals.protect(original)
        text = step.context.closed(text) if step.context else text
        source, before = entry.path, scratch / "before.h"
        if text != original:
            source = scratch / entry.path.name
            source.write_bytes(encode(text))
        before.write_bytes(encode(PRELUDE + (step.context.before if step.context else "")))
        options = self._precompiled.options(step.flags, self._extra)
        return Question(source, entry.path.parent, step.flags, self._extra, before, step.plain, options)

    def _mended(self, entry: Entry, step: _Try, attempt: Attempt) -> Attempt:
        """The answer without what was added to the question, its string literals as they were."""
        if attempt.text is None:
            return attempt
        original = self._texts[entry.name]
        text = step.context.opened(attempt.text, original) if step.context else attempt.text
        mended = literals.restore(original, text)
        if mended is None:
            return Attempt(None, (), "hipify-clang added or removed string literals")
        return replace(attempt, text=mended)


def branches_before(text: str, line: int) -> bool:
    """Whether there is a branch, besides an include guard, before this line (0: in all of the text).

    Without one, the ordinary preprocessor reads the same and fails the same.
    """
    end = len(text)
    if line:
        end = sum(len(part) for part in text.splitlines(keepends=True)[:line])
    head = text[:end]
    guards = len(_GUARD.findall(head))
    return len(_BRANCH.findall(head)) > guards
