"""One hipify-clang process on one file: what it wrote, what it said, why it failed."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amdflow import process
from amdflow.migrate.build_flags import DEFAULT_STANDARD, Flags
from amdflow.migrate.text import decode

RELOCATABLE = "-fgpu-rdc"
"""nvcc takes kernel launches in device code with it; nothing else of what is parsed depends on it."""
_TIME_LIMIT_SECONDS = 300.0
_DIAGNOSTIC = re.compile(
    r"^(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): (?P<kind>warning|error|fatal error): (?P<text>.*)$"
)
_TEMPORARY = re.compile(r"-[0-9a-f]{6}\.hip$")


@dataclass(frozen=True, slots=True)
class Message:
    """One thing the tool said of the file itself. Lines and columns count from 1."""

    line: int
    column: int
    text: str


@dataclass(frozen=True)
class Attempt:
    """One try. ``text`` is None when nothing usable was written; ``failure`` then says why in words."""

    text: str | None
    messages: tuple[Message, ...]
    failure: str
    settled: bool = True
    """False when a time limit or a signal from outside ended it: another run may do better."""
    line: int = 0
    """Line of the file at which parsing failed; 0 when it failed elsewhere."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Attempt:
        """The reverse of :meth:`to_json`."""
        messages = tuple(Message(**message) for message in data["messages"])
        return cls(data["text"], messages, data["failure"], line=data["line"])


@dataclass(frozen=True)
class Question:
    """What the tool is asked: a file, or a copy of it, as seen from ``folder``.

    ``before`` is a file that holds what a unit says before it includes this one.
    """

    source: Path
    folder: Path
    flags: Flags
    extra: tuple[str, ...] = ()
    before: Path | None = None
    default_preprocessor: bool = False
    precompiled: tuple[str, ...] = ()
    """Options that spare the tool reading CUDA's own headers; they change nothing of its answer."""


@dataclass(frozen=True)
class Hipify:
    """The installed tool. ``options`` tell it where CUDA headers and its own resources are."""

    program: Path
    options: tuple[str, ...]
    version: str
    clang: Path | None = None
    """The compiler of the same LLVM, where there is one."""

    def command(self, question: Question, output: Path) -> list[str]:
        """The argv for one file."""
        flags = question.flags
        clang = [f"-std={flags.standard or DEFAULT_STANDARD}", "-ferror-limit=1", "-Wno-everything", RELOCATABLE]
        clang += question.precompiled
        clang += [f"-D{macro}" for macro in flags.macros]
        clang += [word for name in flags.forced for word in ("-include", name)]
        clang += ["-include", str(question.before)] if question.before else []
        folders = [f"-I{folder}" for folder in dict.fromkeys((question.folder, *flags.folders))]
        mode = ["--default-preprocessor"] if question.default_preprocessor else []
        words = [str(self.program), str(question.source), "-o", str(output), *self.options, *mode, *folders]
        return [*words, "--", *clang, *question.extra]

    def convert(self, question: Question, scratch: Path) -> tuple[Attempt, process.Completed]:
        """Run it. ``scratch`` is a folder of this file's own for the output and the tool's temporary copies."""
        scratch.mkdir(parents=True, exist_ok=True)
        output = scratch / "converted"
        output.unlink(missing_ok=True)
        environment = {**os.environ, "TMPDIR": str(scratch)}  # its --temp-dir leaves some copies in /tmp all the same
        done = process.run(
            self.command(question, output),
            cwd=question.folder,
            env=environment,
            timeout=_TIME_LIMIT_SECONDS,
            check=False,
        )
        text = decode(output.read_bytes()) if output.is_file() and done.returncode == 0 else None
        if text is None:
            failure, line = _why(done, question.source.name)
            return Attempt(None, (), failure, settled=not done.timed_out, line=line), done
        return Attempt(text, _messages(done.output, question.source.name), ""), done


def _messages(output: str, name: str) -> tuple[Message, ...]:
    """Warnings about the file itself, each once: host and device passes both give them."""
    found: dict[Message, None] = {}
    for line in output.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match and match["kind"] == "warning" and _TEMPORARY.sub("", Path(match["path"]).name) == name:
            found[Message(int(match["line"]), int(match["column"]), match["text"])] = None
    return tuple(found)


def _why(done: process.Completed, name: str) -> tuple[str, int]:
    """The reason in words, and the line of the file itself where there is one."""
    if done.timed_out:
        return f"hipify-clang took longer than {_TIME_LIMIT_SECONDS:.0f} s", 0
    for line in done.output.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match and match["kind"] != "warning":
            place = _TEMPORARY.sub("", Path(match["path"]).name)
            number = int(match["line"]) if place == name and _TEMPORARY.search(match["path"]) else 0
            return f"{place}:{match['line']}: {match['text']}", number
    if done.returncode == 0:
        return "hipify-clang ended well but wrote nothing", 0
    return f"hipify-clang {process.describe_status(done.returncode)}", 0
