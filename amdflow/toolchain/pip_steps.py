"""pip at work on an engine's environment: first fetch into a folder that is kept, then install from it alone."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlparse

from amdflow import process
from amdflow.errors import EnvironmentProblem
from amdflow.files import sha256_file
from amdflow.terminal import Bar
from amdflow.toolchain import wheels
from amdflow.toolchain.find_engine import normalize
from amdflow.toolchain.store import Artifact

TORCH_INDEX_VARIABLE = "AMDFLOW_TORCH_INDEX"
_BATCH = 10
"""Packages fetched by one pip, which keeps nothing of a batch that is interrupted."""
_QUIET = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--only-binary=:all:")


@dataclass(frozen=True)
class Step:
    """Packages that are installed together."""

    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    index: str = ""
    """An index to use instead of the configured ones."""
    alone: bool = False
    """Take exactly these, not what they ask for: the set is complete and its members would refuse each other."""


class Pip:
    """The pip of one environment, and the folder of wheels it installs from."""

    def __init__(self, python: Path, folder: Path, log: Path) -> None:
        self.command = [str(python), "-m", "pip"]
        self.folder, self.log = folder, log
        folder.mkdir(parents=True, exist_ok=True)

    def download(self, step: Step, bar: Bar) -> None:
        """Fetch what is not in the folder yet; wheels there are held against the index's hashes. Raises EnvironmentProblem."""
        batches = [step]
        if step.alone:
            starts = range(0, len(step.requirements), _BATCH)
            batches = [replace(step, requirements=step.requirements[start : start + _BATCH]) for start in starts]
        with ThreadPoolExecutor(2) as pool:
            for _done in pool.map(lambda batch: self._download(batch, bar), batches):
                process.check_cancelled()

    def install(self, step: Step) -> list[Artifact]:
        """Install from the folder and nowhere else; returns what was installed. Raises EnvironmentProblem."""
        with _options(step) as options, tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch, "report.json")
            # byte-compiling everything takes a minute, and most modules are never imported
            self._run(
                [
                    "install",
                    "--no-compile",
                    "--no-index",
                    "--find-links",
                    str(self.folder),
                    "--report",
                    str(report),
                    *options,
                ]
            )
            return self._artifacts(json.loads(report.read_text(encoding="utf-8")))

    def _download(self, step: Step, bar: Bar) -> None:
        index = ["--index-url", step.index] if step.index else []
        with _options(step) as options:
            self._run(
                ["download", "-d", str(self.folder), *index, *options],
                Follower(bar, step.requirements),
                index=step.index,
            )

    def _run(self, words: Sequence[str], follow: Callable[[str], None] | None = None, *, index: str = "") -> None:
        environment = wheels.pip_environment(self.folder.parent)
        command = [*self.command, words[0], *_QUIET, *words[1:]]
        done = process.run(command, env=environment, log=self.log, check=False, on_line=follow)
        if done.returncode:
            other = f"; {TORCH_INDEX_VARIABLE} chooses another index of torch wheels" if index else ""
            raise EnvironmentProblem(
                f"pip {words[0]} failed: {wheels.pip_reason(done.output)}",
                hint=f"check the network and run the same command again: it goes on with what is downloaded{other}; log: {self.log}",
            )

    def _artifacts(self, report: dict[str, list[dict[str, dict[str, str]]]]) -> list[Artifact]:
        found = []
        for entry in report["install"]:
            wheel = Path(unquote(urlparse(entry["download_info"]["url"]).path))
            found.append(
                Artifact(normalize(entry["metadata"]["name"]), entry["metadata"]["version"], sha256_file(wheel))
            )
        return found


class Follower:
    """Reads pip's lines and moves a bar on, once for each wanted package."""

    def __init__(self, bar: Bar, requirements: Sequence[str]) -> None:
        self.bar = bar
        self.wanted = {_named(requirement) for requirement in requirements}

    def __call__(self, line: str) -> None:
        """Take one line."""
        found = re.match(r"(?:Collecting|Processing) (\S+)", line)
        name = _named(found[1].rpartition("/")[2]) if found else ""
        if name in self.wanted:
            self.wanted.discard(name)
            self.bar.update(1, note=name)


@contextmanager
def _options(step: Step) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps"] if step.alone else []
        for flag, lines in (("-c", step.constraints), ("-r", step.requirements)):
            if lines:
                path = Path(folder, f"list{flag}.txt")
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                options += [flag, str(path)]
        yield options


def _named(text: str) -> str:
    """The distribution in a requirement or a wheel's file name."""
    stem = text.partition("-")[0] if text.endswith(".whl") else re.split(r"[\[=<>!~;(@ ]", text)[0]
    return normalize(stem)
