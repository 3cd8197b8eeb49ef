"""Small repairs of an exported folder, so that engines built on an older transformers read the same model.

transformers 5 writes a tokenizer class and a place for RoPE's settings that version 4 does not know. The first stops
it; the second is worse: it computes with a default, and the model talks nonsense.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from amdflow.files import write_json

_OLD_CLASS = "PreTrainedTokenizerFast"


def make_portable(folder: Path) -> list[str]:
    """Repair what needs it; returns sentences about what was changed."""
    changes = []
    tokenizer = folder / "tokenizer_config.json"
    settings = _read(tokenizer)
    if settings.get("tokenizer_class") == "TokenizersBackend":
        write_json(tokenizer, settings | {"tokenizer_class": _OLD_CLASS})
        changes.append(f"tokenizer_config.json names {_OLD_CLASS}, which both transformers 4 and 5 know")
    config = _read(folder / "config.json")
    rope = config.get("rope_parameters")
    if isinstance(rope, dict) and "rope_theta" in rope and "rope_theta" not in config:
        old: dict[str, Any] = {"rope_theta": rope["rope_theta"]}
        if rope.get("rope_type", "default") != "default":
            old["rope_scaling"] = {key: value for key, value in rope.items() if key != "rope_theta"}
        write_json(folder / "config.json", config | old)
        changes.append("config.json gives RoPE's settings in the places of transformers 4 too")
    return changes


def open_up(folder: Path) -> None:
    """SafeTensors files are written for their owner only; give them the mode of the files beside them."""
    mode = (folder / "config.json").stat().st_mode
    for path in folder.glob("*.safetensors"):
        path.chmod(mode)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
