"""``dataset_info.json``: what LLaMA-Factory would make of each entry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amdflow.config import nearest
from amdflow.errors import UsageError

REGISTRY = "dataset_info.json"
_ALPACA = {"prompt": "instruction", "query": "input", "response": "output"}
_SHAREGPT = {"messages": "conversations"}
_TAGS = {
    "role_tag": "from",
    "content_tag": "value",
    "user_tag": "human",
    "assistant_tag": "gpt",
    "observation_tag": "observation",
    "function_tag": "function_call",
    "system_tag": "system",
}
_COLUMNS = (
    "prompt",
    "query",
    "response",
    "history",
    "messages",
    "system",
    "tools",
    "images",
    "videos",
    "audios",
    "chosen",
    "rejected",
    "kto_tag",
)
_REMOTE = ("hf_hub_url", "ms_hub_url", "om_hub_url", "cloud_file_name")


@dataclass(frozen=True)
class Dataset:
    """One entry: its files, its format, and which of its columns mean what."""

    name: str
    entry: Mapping[str, Any]
    files: tuple[Path, ...]
    """Empty for data that a hub holds."""
    formatting: str = "alpaca"
    ranking: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    """Meaning (``response``) -> column (``output``); only those the engine will look up."""
    tags: Mapping[str, str] = field(default_factory=dict)


def names_of(value: Any) -> list[str]:
    """The dataset names in a config value: a list, or text with commas."""
    parts = value.split(",") if isinstance(value, str) else value or []
    return [str(part).strip() for part in parts if str(part).strip()]


def read_registry(folder: str, names: Sequence[str], file_types: Mapping[str, str]) -> list[Dataset]:
    """The named entries of a folder's ``dataset_info.json``.

    Raises UsageError for a missing folder, a broken registry, an unknown name, a missing or unusable file.
    """
    if folder == "ONLINE" or folder.startswith("REMOTE:"):
        return [Dataset(name, {"hub": name}, ()) for name in names]
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(
            f"dataset_dir: no such folder: {folder}", hint="set dataset_dir to the folder that holds dataset_info.json"
        )
    path = root / REGISTRY
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"{folder} has no {REGISTRY}", hint=f'write one: {{"{names[0]}": {{"file_name": "{names[0]}.jsonl"}}}}'
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="check its permissions") from error
    except ValueError as error:
        raise UsageError(f"{path}: not valid JSON: {error}", hint="mend the file there") from error
    if not isinstance(entries, dict):
        raise UsageError(
            f"{path} does not hold a mapping of dataset names", hint=f'write {{"{names[0]}": {{"file_name": ...}}}}'
        )
    return [_read_entry(path, name, entries, file_types) for name in names]


def _read_entry(path: Path, name: str, entries: Mapping[str, Any], file_types: Mapping[str, str]) -> Dataset:
    entry = entries.get(name)
    if not isinstance(entry, dict):
        known = ", ".join(list(entries)[:8])
        raise UsageError(f"{path} has no dataset {name!r}{nearest(name, list(entries))}", hint=f"it has: {known}")
    formatting = entry.get("formatting", "alpaca")
    if formatting not in ("alpaca", "sharegpt", "openai"):
        raise UsageError(
            f"{path}: {name}: formatting cannot be {formatting!r}", hint="one of: alpaca, sharegpt, openai"
        )
    return Dataset(
        name,
        entry,
        _files(path, name, entry, file_types),
        formatting,
        bool(entry.get("ranking")),
        _columns(entry, formatting),
        _tags(entry),
    )


def _columns(entry: Mapping[str, Any], formatting: str) -> dict[str, str]:
    # An entry with "columns" replaces all defaults: a meaning it leaves out is not looked up.
    mapped = (
        {meaning: entry["columns"].get(meaning) for meaning in _COLUMNS}
        if "columns" in entry
        else {**_ALPACA, **_SHAREGPT}
    )
    unused = _SHAREGPT if formatting == "alpaca" else _ALPACA
    return {meaning: column for meaning, column in mapped.items() if column and meaning not in unused}


def _tags(entry: Mapping[str, Any]) -> dict[str, str]:
    return {tag: entry["tags"].get(tag) for tag in _TAGS} if "tags" in entry else dict(_TAGS)


def _files(path: Path, name: str, entry: Mapping[str, Any], file_types: Mapping[str, str]) -> tuple[Path, ...]:
    if any(key in entry for key in _REMOTE):
        return ()
    file_name = entry.get("script_url") or entry.get("file_name")
    if not isinstance(file_name, str):
        raise UsageError(f"{path}: {name} names no data", hint='add "file_name"')
    place = path.parent / file_name
    files = tuple(sorted(place.iterdir())) if place.is_dir() else (place,)
    if not files or not all(file.is_file() for file in files):
        raise UsageError(
            f"{path}: {name}: no such file: {place}", hint="check file_name; it is relative to dataset_dir"
        )
    if "script_url" in entry:
        return files
    types = {file_types.get(file.suffix[1:]) for file in files}
    if None in types or len(types) > 1:
        raise UsageError(
            f"{path}: {name}: {place} is not one of the readable formats", hint=f"readable: {', '.join(file_types)}"
        )
    return files
