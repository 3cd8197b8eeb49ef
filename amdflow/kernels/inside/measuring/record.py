"""Rows of results that are on disk as soon as they are known, and a time limit."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

SCHEMA = "amdflow/kernel-bench"


class Record:
    """Rows of results: each is printed as one JSON line and written to ``path`` (when there is one) with all before it."""

    def __init__(self, path: str, limit: float, facts: Mapping[str, Any]) -> None:
        """``limit`` in seconds; ``facts`` describe the machine."""
        self.path, self.started, self.limit = path, time.monotonic(), limit
        self.document: dict[str, Any] = {"schema": SCHEMA, "version": "1.0", **facts, "left_out": 0, "rows": []}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Every row so far."""
        found: list[dict[str, Any]] = self.document["rows"]
        return found

    def add(self, kind: str, labels: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Add what ``measure`` gives; an exception becomes the row's ``error``, so that one failure hides no other.

        Nothing is begun once the time is up; such rows are counted in ``left_out``. Returns the row, empty then.
        """
        if time.monotonic() - self.started > self.limit:
            self.document["left_out"] += 1
            self._write()
            return {}
        row: dict[str, Any] = {"kind": kind, **labels}
        started = time.monotonic()
        try:
            row |= measure()
        except Exception as error:  # a contender that fails must not hide the others
            words = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
            row["error"] = f"{type(error).__name__}: {words[0][:300]}" + (
                f" ... {words[-1][:300]}" if len(words) > 1 else ""
            )
        row["took_s"] = round(time.monotonic() - started, 1)
        self.rows.append(row)
        say({"row": row})
        self._write()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return row

    def _write(self) -> None:
        if self.path:
            path = Path(self.path)
            seconds = round(time.monotonic() - self.started, 1)
            text = json.dumps(finite({**self.document, "seconds": seconds}), indent=1)
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.tmp")
            temporary.write_text(text + "\n", encoding="utf-8")
            os.replace(temporary, path)


def say(line: Mapping[str, Any]) -> None:
    """One JSON line on stdout; what is not finite becomes null."""
    sys.stdout.write(json.dumps(finite(line)) + "\n")
    sys.stdout.flush()


def finite(value: Any) -> Any:
    """The same value with None in place of each number that JSON does not have."""
    if isinstance(value, Mapping):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and value - value != 0 else value
