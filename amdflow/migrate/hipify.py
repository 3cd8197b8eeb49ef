"""One hipify-clang process on one file: what it wrote, what it said, why it failed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amdflow import process
from amdflow.migrate.build_flags import DEFAULT_STANDARD, Flags
from amdflow.migrate.text import decode

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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Attempt:
        """The reverse of :meth:`to_json`."""
        return cls(data["text"], tuple(Message(**message) for message in data["messages"]), data["failure"])


@dataclass(frozen=True)
class Hipify:
    """The installed tool. ``options`` tell it where CUDA headers and its own resources are."""

    program: Path
    options: tuple[str, ...]
    version: str

    def command(
        self, source: Path, output: Path, flags: Flags, extra: Sequence[str], *, default_preprocessor: bool
    ) -> list[str]:
        """The argv for one file."""
        clang = [f"-std={flags.standard or DEFAULT_STANDARD}", "-ferror-limit=1", "-Wno-everything"]
        clang += [f"-D{macro}" for macro in flags.macros]
        clang += [word for name in flags.forced for word in ("-include", name)]
        folders = [f"-I{folder}" for folder in dict.fromkeys((source.parent, *flags.folders))]
        mode = ["--default-preprocessor"] if default_preprocessor else []
        return [str(self.program), str(source), "-o", str(output), *self.options, *mode, *folders, "--", *clang, *extra]

    def convert(
        self, source: Path, scratch: Path, flags: Flags, extra: Sequence[str], *, default_preprocessor: bool
    ) -> tuple[Attempt, process.Completed]:
        """Run it. ``scratch`` is a folder of this file's own for the output and the tool's temporary copies."""
        scratch.mkdir(parents=True, exist_ok=True)
        output = scratch / "converted"
        output.unlink(missing_ok=True)
        argv = self.command(source, output, flags, extra, default_preprocessor=default_preprocessor)
        environment = {**os.environ, "TMPDIR": str(scratch)}  # its --temp-dir leaves some copies in /tmp all the same
        done = process.run(argv, cwd=source.parent, env=environment, timeout=_TIME_LIMIT_SECONDS, check=False)
        text = decode(output.read_bytes()) if output.is_file() and done.returncode == 0 else None
        if text is None:
            return Attempt(None, (), _why(done), settled=not done.timed_out), done
        return Attempt(text, _messages(done.output, source.name), ""), done


def _messages(output: str, name: str) -> tuple[Message, ...]:
    """Warnings about the file itself, each once: host and device passes both give them."""
    found: dict[Message, None] = {}
    for line in output.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match and match["kind"] == "warning" and _TEMPORARY.sub("", Path(match["path"]).name) == name:
            found[Message(int(match["line"]), int(match["column"]), match["text"])] = None
    return tuple(found)


def _why(done: process.Completed) -> str:
    if done.timed_out:
        return f"hipify-clang took longer than {_TIME_LIMIT_SECONDS:.0f} s"
    for line in done.output.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match and match["kind"] != "warning":
            place = _TEMPORARY.sub("", Path(match["path"]).name)
            return f"{place}:{match['line']}: {match['text']}"
    if done.returncode == 0:
        return "hipify-clang ended well but wrote nothing"
    return f"hipify-clang {process.describe_status(done.returncode)}"
