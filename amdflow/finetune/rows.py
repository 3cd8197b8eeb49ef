"""Rows of a data file with the line each begins on, read as a stream where the format allows it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amdflow.errors import UsageError

Row = tuple[int, dict[str, Any]]


def read_rows(path: Path, loader: str) -> Iterator[Row]:
    """(line, row) for JSON, JSON lines and CSV; ``loader`` is LLaMA-Factory's name of the format.

    Raises UsageError naming file and line for anything that cannot be read. Other formats (Parquet, Arrow, text) give
    no rows: they are left to the engine.
    """
    if loader not in ("json", "csv"):
        return
    try:
        yield from _read_csv(path) if loader == "csv" else _read_json(path)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text",
            hint=f"convert it: iconv -f GB18030 -t UTF-8 {path.name} (or whatever encoding it has)",
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="check the path and its permissions") from error


def _read_json(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as stream:
        start = stream.read(4096).lstrip()
        stream.seek(0)
        yield from _read_array(path, stream.read()) if start.startswith("[") else _read_lines(path, stream)


def _read_lines(path: Path, lines: Iterator[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UsageError(
                f"{path}:{number}: not valid JSON: {error}",
                hint="each line must be one whole JSON object; mend or delete this one",
            ) from error
        yield _checked(path, number, row)


def _read_array(path: Path, text: str) -> Iterator[Row]:
    decoder = json.JSONDecoder()
    position, line, counted = text.index("[") + 1, 1, 0
    try:
        while True:
            position = _skip(text, position, " \t\r\n,")
            if text[position : position + 1] == "]":
                return
            line, counted = line + text.count("\n", counted, position), position
            row, position = decoder.raw_decode(text, position)
            yield _checked(path, line, row)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: not valid JSON: {error.msg}", hint="mend the file there") from error


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def _read_csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        try:
            for row in reader:
                yield reader.line_num, {str(key): value or None for key, value in row.items() if key is not None}
        except csv.Error as error:
            raise UsageError(f"{path}:{reader.line_num}: not valid CSV: {error}", hint="mend the file there") from error


def _checked(path: Path, line: int, row: Any) -> Row:
    if not isinstance(row, dict):
        raise UsageError(
            f"{path}:{line}: a row must be an object with columns, not {type(row).__name__}",
            hint='write {"instruction": ..., "output": ...}',
        )
    return line, row
