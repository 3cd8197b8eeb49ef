"""The contract every stage keeps: plan, execute, verify. The runner owns everything else."""

from __future__ import annotations

import mimetypes
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from amdflow import process
from amdflow.errors import UsageError
from amdflow.files import portable
from amdflow.findings import Finding
from amdflow.pipeline.manifest import CommandRecord, Upstream
from amdflow.terminal import Terminal

ConfigT = TypeVar("ConfigT", bound=BaseModel)
_SECRET_WORDS = frozenset({"key", "token", "secret", "password"})


@dataclass(frozen=True)
class Input:
    """A file the result depends on. ``name`` is stable across machines."""

    name: str
    path: Path
    role: str = "source"


@dataclass(frozen=True)
class Output:
    """A file produced below the run's scratch folder."""

    path: Path
    role: str
    produced_by: str = ""
    name: str = ""
    media_type: str = ""

    def guess_media_type(self) -> str:
        """The given media type, or one by file name."""
        return self.media_type or mimetypes.guess_type(self.path.name)[0] or "application/octet-stream"


@dataclass(frozen=True)
class Plan:
    """What a stage would do, and everything its result depends on.

    ``config`` holds JSON values; ``tools`` maps tool to version; ``steps`` are sentences for ``--dry-run``; ``job`` is
    the stage's own work order and counts for nothing in the cache key.
    """

    config: Mapping[str, Any]
    inputs: Sequence[Input]
    tools: Mapping[str, str]
    steps: Sequence[str]
    targets: Sequence[str] = ()
    job: Any = None
    from_upstream: bool = True
    """False when the request names its own input, so that the stage before has no part in the result."""
    writes: Sequence[str] = ()
    """Names below the payload that will be written, as far as they are known: in ``--output`` they must not be foreign."""
    taken: Any = None
    """The part of what the stage before hands over that the result depends on (JSON values); None: all of it; empty: nothing."""


@dataclass(frozen=True)
class Outcome:
    """What a stage produced. ``over_limit`` says that findings are above the level the user allowed (exit 3)."""

    outputs: Sequence[Output]
    findings: Sequence[Finding] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    handoff: Mapping[str, Any] = field(default_factory=dict)
    not_exercised: Sequence[str] = ()
    over_limit: bool = False


@dataclass(frozen=True)
class Request(Generic[ConfigT]):
    """What a stage is asked to do."""

    config: ConfigT
    root: Path
    """The workspace: relative paths in the config start here."""
    targets: tuple[str, ...]
    upstream: Upstream | None
    """The stage before, where there is one and it ended well."""
    terminal: Terminal
    toolchain: Any = None
    """:class:`amdflow.toolchain.Toolchain`."""

    def path(self, value: str) -> Path:
        """A path from the config, absolute. Raises UsageError for a link that leads to itself."""
        try:
            return (self.root / Path(value).expanduser()).resolve()
        except (RuntimeError, OSError) as error:
            raise UsageError(
                f"{value} cannot be followed: {error}", hint="mend the link, or name another path"
            ) from error


@dataclass
class Run:
    """One attempt at a stage: where it may write, what it has run so far."""

    scratch: Path
    """Becomes the stage's folder when all went well. Kept after a failure when the stage is resumable."""
    payload: Path
    """Folder below ``scratch`` for the main product (the HIP tree, the model)."""
    payload_path: str
    """Where the payload will lie once published, relative to the manifest: what a handoff names."""
    logs: Path
    """Outlives the attempt."""
    cache: Path
    """Survives across runs and keys; may be deleted at any time."""
    root: Path
    home: Path
    """Where the manifest will lie: recorded paths start there."""
    terminal: Terminal
    commands: list[CommandRecord] = field(default_factory=list)

    def call(
        self,
        argv: Sequence[str],
        *,
        log: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        on_line: Callable[[str], None] | None = None,
        check: bool = True,
        grace: float = 10.0,
        sweep_descendants: bool = False,
    ) -> process.Completed:
        """:func:`amdflow.process.run`, recorded in the manifest. ``extra_env`` is added to the environment and recorded."""
        environment = dict(os.environ if env is None else env) | dict(extra_env or {})
        path = self.logs / log
        try:
            done = process.run(
                argv,
                cwd=cwd,
                env=environment,
                log=path,
                timeout=timeout,
                on_line=on_line,
                check=check,
                grace=grace,
                sweep_descendants=sweep_descendants,
            )
        except process.CommandFailed as error:
            self.record(error.completed, cwd=cwd, env=extra_env, log=path)
            raise
        self.record(done, cwd=cwd, env=extra_env, log=path)
        return done

    def record(
        self,
        done: process.Completed,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        """Add a finished child to the manifest's ``commands``."""
        self.commands.append(
            CommandRecord(
                argv=[self._portable(word) for word in _mask(done.argv)],
                cwd=portable(cwd or Path.cwd(), self.root),
                env={key: self._portable(value) for key, value in (env or {}).items() if not _secret(key)},
                exit_code=done.returncode,
                seconds=round(done.seconds, 3),
                log=Path(os.path.relpath(log, self.home)).as_posix() if log else "",
            )
        )

    def _portable(self, word: str) -> str:
        return word.replace(f"{self.root}/", "").replace(str(self.root), ".")


class Stage(ABC, Generic[ConfigT]):
    """One stage of the pipeline. Stateless: everything it knows is in the request, the plan and the run."""

    name: ClassVar[str]
    version: ClassVar[int]
    """Raise it when the same inputs would give other outputs."""
    payload: ClassVar[str]
    """Folder name of the main product, which ``--output`` redirects."""
    summary: ClassVar[str]
    upstream: ClassVar[str | None] = None
    """The stage whose manifest is the input."""
    resumable: ClassVar[bool] = False
    """Whether a new attempt with the same key may go on in the scratch folder of one that failed."""
    keeps_added: ClassVar[bool] = False
    """Whether files that people added to the payload stay there when it is written anew."""
    edit_advice: ClassVar[str] = ""
    """How to keep edits of outputs, as a hint for a person."""
    cached: ClassVar[bool] = True
    config_type: type[ConfigT]

    @abstractmethod
    def plan(self, request: Request[ConfigT]) -> Plan:
        """Check everything that can be checked before work starts. Cheap: no long child process."""

    @abstractmethod
    def execute(self, plan: Plan, run: Run) -> Outcome:
        """Do the work below ``run.scratch``."""

    def is_kept(self, plan: Plan, name: str, path: Path) -> bool:
        """Whether a hand-made edit of the payload's file ``name`` is kept elsewhere, so that the file may be written anew."""
        return False

    def verify(self, plan: Plan, outcome: Outcome, run: Run) -> Sequence[Finding]:
        """Look at what was produced with fresh eyes. Raises AmdflowError when it must not be used."""
        return ()


def _secret(name: str) -> bool:
    return not _SECRET_WORDS.isdisjoint(re.split(r"[-_]", name.lower()))


def _mask(argv: Sequence[str]) -> list[str]:
    masked, hide = [], False
    for word in argv:
        if hide:
            masked.append("***")
            hide = False
        elif word.startswith("--") and _secret(word):
            name, equals, _value = word.partition("=")
            masked.append(f"{name}=***" if equals else word)
            hide = not equals
        else:
            masked.append(word)
    return masked
