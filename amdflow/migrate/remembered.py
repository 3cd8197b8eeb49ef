"""What was worked out for each file, kept between runs: the same text under the same rules gives the same answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from amdflow.files import sha256_text, write_atomic


class Remembered:
    """Answers (JSON values) by digest, in one file: a stamp, then a line each. Answers nobody asked for are forgotten."""

    def __init__(self, file: Path, stamp: str) -> None:
        self._file, self._stamp = file, stamp
        self._known = self._read()
        self._used: dict[str, str] = {}

    def _read(self) -> dict[str, str]:
        try:
            with self._file.open(encoding="utf-8") as stream:
                if stream.readline().rstrip("\n") != self._stamp:
                    return {}
                return dict(line.rstrip("\n").split("\t", 1) for line in stream)
        except (OSError, ValueError):
            return {}

    def get(self, key: str) -> Any:
        """The answer, or None."""
        kept = self._known.get(key)
        if kept is None:
            return None
        self._used[key] = kept
        return json.loads(kept)

    def put(self, key: str, answer: Any) -> None:
        """Keep an answer."""
        self._used[key] = json.dumps(answer)

    def save(self) -> None:
        """Write what this run used, unless it is what was read."""
        if self._used != self._known:
            lines = (f"{key}\t{answer}\n" for key, answer in self._used.items())
            write_atomic(self._file, "".join((f"{self._stamp}\n", *lines)))


def code_stamp() -> str:
    """Changes whenever amdflow's own code of this package does."""
    root = Path(__file__).resolve().parent
    files = sorted(root.rglob("*.py"))
    stats = [(file.relative_to(root).as_posix(), file.stat()) for file in files]
    return sha256_text("\n".join(f"{name} {found.st_size} {found.st_mtime_ns}" for name, found in stats))
