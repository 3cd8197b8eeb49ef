"""Known trouble: what an engine's log says when it fails, in words, and what has helped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import field_validator

from amdflow.config import Model, read_yaml_mapping, validate
from amdflow.content import shipped

_ERROR = re.compile(
    r"\b[A-Za-z_.]*(?:Error|Exception)\b\s*:|\berror:|\bHSA_STATUS_ERROR|\bHIP error|\bFatal|SIGSEGV|\bassert",
    re.IGNORECASE,
)
_STAMP = re.compile(r"^\[[^\]]*\]\s*|^(?:INFO|ERROR|WARNING|CRITICAL)\s*:?\s+(?:[\d:/ -]+)?")
_SHOWN = 4


class Trouble(Model):
    """One entry of ``known-trouble.yaml``."""

    pattern: str
    """Regular expression, matched against log lines, case ignored."""
    symptom: str
    remedy: str
    engines: tuple[str, ...] = ()
    """Engines it is for; none: all."""
    source: str = ""
    """Where it was reported."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"is not a regular expression ({error})") from error
        return value


class _Catalogue(Model):
    trouble: tuple[Trouble, ...]


@dataclass(frozen=True)
class Diagnosis:
    """What a log tells: the engine's own error lines, and the known trouble they match."""

    lines: tuple[str, ...]
    known: tuple[Trouble, ...]


def load_trouble(root: Path) -> tuple[Trouble, ...]:
    """The user's ``serving/known-trouble.yaml`` first, then the shipped one."""
    found: list[Trouble] = []
    seen: set[Path] = set()
    for folder in (root / "serving", shipped("serving")):
        file = (folder / "known-trouble.yaml").resolve()
        if file.is_file() and file not in seen:
            seen.add(file)
            found += validate(_Catalogue, read_yaml_mapping(file), where=str(file)).trouble
    return tuple(found)


def diagnose(log: Iterable[str], engine: str, catalogue: Iterable[Trouble]) -> Diagnosis:
    """Read a log: its last error lines (its last lines, when none looks like an error), and known trouble in it."""
    lines = [line.rstrip() for line in log if line.strip()]
    relevant = [entry for entry in catalogue if not entry.engines or engine in entry.engines]
    known = tuple(entry for entry in relevant if any(re.search(entry.pattern, line, re.IGNORECASE) for line in lines))
    errors = [_STAMP.sub("", line).strip() for line in lines if _ERROR.search(line)]
    shown = list(dict.fromkeys(errors))[-_SHOWN:] or [line.strip() for line in lines[-_SHOWN:]]
    return Diagnosis(tuple(line[:300] for line in shown), known)
