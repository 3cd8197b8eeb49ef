"""Single wheels, fetched with pip against a committed hash, and opened without installing them."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from amdflow import process
from amdflow.errors import EnvironmentProblem
from amdflow.files import sha256_file

PINS = Path(__file__).parent / "pins"
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;#]+)(?:\s+--hash=sha256:(?P<sha256>[0-9a-f]{64}))?")


@dataclass(frozen=True)
class Pin:
    """One line of a pinned set."""

    name: str
    version: str
    sha256: str = ""

    @property
    def requirement(self) -> str:
        """As pip reads it, with its hash."""
        return f"{self.name}=={self.version}" + (f" --hash=sha256:{self.sha256}" if self.sha256 else "")


def read_pins(name: str) -> list[Pin]:
    """A committed set, ``pins/<name>.txt``."""
    return [
        Pin(found["name"], found["version"], found["sha256"] or "")
        for line in (PINS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        if (found := _PIN.match(line))
    ]


def require_venv() -> None:
    """Raise EnvironmentProblem when this Python cannot make virtual environments (Debian keeps that in another package)."""
    missing = [module for module in ("venv", "ensurepip") if importlib.util.find_spec(module) is None]
    if missing:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise EnvironmentProblem(
            f"{sys.executable} cannot make virtual environments: its module {missing[0]} is missing",
            hint=f"apt-get install python{version}-venv",
        )


def pip_command(tools: Path) -> list[str]:
    """A pip to run: this interpreter's, else that of a small environment made in ``tools`` (an amdflow installed by uv or pipx has none)."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    python = tools / "bin/python"
    if not (tools / "complete").is_file():
        require_venv()
        process.run([sys.executable, "-m", "venv", "--clear", str(tools)])
        (tools / "complete").touch()
    return [str(python), "-m", "pip"]


def fetch(pin: Pin, folder: Path, pip: list[str], log: Path) -> Path:
    """The wheel of ``pin`` in ``folder``, verified; one from an earlier attempt is kept. Raises EnvironmentProblem when it cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in _candidates(pin, folder):
        if sha256_file(path) == pin.sha256:
            return path
        path.unlink()
    requirements = folder / f"{pin.name}.txt"
    requirements.write_text(pin.requirement + "\n", encoding="utf-8")
    done = process.run(
        [
            *pip,
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--no-cache-dir",
            "--progress-bar",
            "off",
            "--disable-pip-version-check",
            "-d",
            str(folder),
            "-r",
            str(requirements),
        ],
        env=pip_environment(folder),
        log=log,
        check=False,
    )
    requirements.unlink()
    wheel = next(_candidates(pin, folder), None)  # pip has held it against the hash
    if done.returncode or wheel is None:
        raise EnvironmentProblem(
            f"{pin.name} {pin.version} could not be downloaded: {pip_reason(done.output)}",
            hint=f"check the network and run the same command again; log: {log}",
        )
    return wheel


def pip_environment(downloads: Path) -> dict[str, str]:
    """The user's environment with what would change where pip installs taken out; index and certificate settings stay.

    Wheels of nearly a gigabyte pass through the temporary folder, so it lies beside the downloads and not in a small /tmp.
    """
    temporary = downloads / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return {
        "TMPDIR": str(temporary),
        **{
            name: value
            for name, value in os.environ.items()
            if name
            not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV")
        },
    }


def pip_reason(output: str) -> str:
    """Pip's own words for a failure."""
    lines = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR:")]
    return "; ".join(lines[:3]) or (output.strip().splitlines() or ["pip said nothing"])[-1]


def unpack(wheel: Path, target: Path, place: Callable[[PurePosixPath], PurePosixPath | None]) -> int:
    """Write the members of a wheel for which ``place`` gives a path below ``target``. Returns how many."""
    count = 0
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = place(PurePosixPath(member.filename)) if not member.is_dir() else None
            if path is None:
                continue
            if path.is_absolute() or ".." in path.parts:
                raise EnvironmentProblem(
                    f"{wheel.name} holds an unsafe path: {member.filename}",
                    hint="delete it and run the same command again",
                )
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(archive.read(member))
            count += 1
    return count


def _candidates(pin: Pin, folder: Path) -> Iterator[Path]:
    return folder.glob(f"{re.sub(r'[-_.]+', '_', pin.name)}-{pin.version}-*.whl")
