"""The cache in which amdflow keeps what it installed.

``<cache>/<name>/installed.json`` names the folder of the complete installation beside it and is written last, atomically:
without it, nothing there counts as installed. Installations are built at their final path, because interpreters, run
paths and virtual environments hold absolute ones, and the record decides which is in use.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from amdflow import __version__
from amdflow.errors import EnvironmentProblem
from amdflow.files import write_json

RECORD = "installed.json"
CACHE_VARIABLE = "AMDFLOW_CACHE"
_SCHEMA = "amdflow/installed"
_MAJOR = 1


@dataclass(frozen=True)
class Artifact:
    """One downloaded file that went into an installation."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Installed:
    """A complete installation, as its record tells."""

    name: str
    version: str
    root: Path
    origin: str
    size: int
    """Bytes on disk."""
    artifacts: tuple[Artifact, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Store:
    """The cache's layout. Nothing is created before it is needed."""

    root: Path

    @classmethod
    def default(cls) -> Store:
        """``AMDFLOW_CACHE``, else the user's cache folder."""
        chosen = os.environ.get(CACHE_VARIABLE)
        if chosen:
            return cls(Path(chosen).expanduser().absolute())
        from platformdirs import user_cache_path

        return cls(user_cache_path("amdflow"))

    @property
    def downloads(self) -> Path:
        """Verified downloads, kept so that an interrupted or repeated install need not fetch them again."""
        return self.root / "downloads"

    def find(self, name: str) -> Installed | None:
        """The complete installation of ``name``, or None. A torn, newer or orphaned record counts as none."""
        try:
            data = json.loads((self.root / name / RECORD).read_text(encoding="utf-8"))
            root = self.root / name / data["folder"]
            if data["schema"] != _SCHEMA or int(str(data["format"]).split(".")[0]) > _MAJOR or not root.is_dir():
                return None
            artifacts = tuple(Artifact(item["name"], item["version"], item["sha256"]) for item in data["artifacts"])
            return Installed(
                name, data["version"], root, data["origin"], int(data["size"]), artifacts, dict(data["facts"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def begun(self, name: str) -> bool:
        """Whether an installation was begun and not finished."""
        installed = self.find(name)
        return any(build != (installed.root if installed else None) for build in self._builds(name))

    @contextmanager
    def lock(self, name: str, waiting: Any = None) -> Iterator[None]:
        """Only one process installs ``name`` at a time; ``waiting`` is called once when another one does."""
        from filelock import FileLock, Timeout

        from amdflow.process import check_cancelled

        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "lock")
        told = False
        while True:
            try:
                lock.acquire(timeout=0.5)
                break
            except Timeout:
                check_cancelled()
                if waiting and not told:
                    waiting()
                    told = True
        try:
            yield
        finally:
            lock.release()

    def new_build(self, name: str) -> Path:
        """A fresh folder to build an installation in, what earlier attempts left removed. Call it under the lock."""
        installed = self.find(name)
        for build in self._builds(name):
            if installed is None or build != installed.root:
                shutil.rmtree(build)
        build = self.root / name / f"build-{time.time_ns():x}"
        build.mkdir(parents=True)
        return build

    def publish(
        self,
        name: str,
        build: Path,
        *,
        version: str,
        origin: str,
        artifacts: tuple[Artifact, ...],
        facts: Mapping[str, str],
    ) -> Installed:
        """Make a complete, checked build the one in use; the one before it is removed."""
        before = self.find(name)
        size = tree_size(build)
        write_json(
            self.root / name / RECORD,
            {
                "schema": _SCHEMA,
                "format": f"{_MAJOR}.0",
                "name": name,
                "version": version,
                "folder": build.name,
                "origin": origin,
                "size": size,
                "amdflow": __version__,
                "installed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "facts": dict(facts),
                "artifacts": [asdict(artifact) for artifact in artifacts],
            },
        )
        if before is not None and before.root != build:
            shutil.rmtree(before.root, ignore_errors=True)
        return Installed(name, version, build, origin, size, artifacts, facts)

    def require_space(self, needed_gb: float, what: str) -> None:
        """Raise EnvironmentProblem unless the cache's disk has ``needed_gb`` GiB free and can be written."""
        self.root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.root).free / (1 << 30)
        if free < needed_gb:
            raise EnvironmentProblem(
                f"{what} needs {needed_gb:g} GiB in {self.root}, where {free:.1f} GiB are free",
                hint=f"free some space, or choose another disk: export {CACHE_VARIABLE}=DIR",
            )

    def _builds(self, name: str) -> list[Path]:
        return sorted((self.root / name).glob("build-*"))


def tree_size(folder: Path) -> int:
    """Bytes of every file below a folder, hard links counted once."""
    seen: set[int] = set()
    total = 0
    for base, _folders, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                status = os.lstat(os.path.join(base, file))
                if status.st_ino not in seen:
                    seen.add(status.st_ino)
                    total += status.st_size
    return total
