"""Where the files that a config names are: looked for as LLaMA-Factory does, then where amdflow's users would put them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Keys whose value is a path, or may be one; those of the second kind may also be a hub id or a mapping.
_PATHS = (
    "media_dir",
    "tokenized_path",
    "new_special_tokens_config",
    "resume_from_checkpoint",
    "cache_dir",
    "liger_kernel_config",
    "accelerator_config",
)
_MAYBE_PATHS = ("model_name_or_path", "dataset_dir", "deepspeed", "fsdp_config", "ref_model", "reward_model")
_MAYBE_LISTS = ("adapter_name_or_path", "ref_model_adapters", "reward_model_adapters")
# Ours, or set by us for every run.
REPLACED = ("output_dir", "overwrite_output_dir", "logging_dir")


@dataclass
class Places:
    """Looks relative paths up in the current folder (as LLaMA-Factory does), the workspace, and the config's own folder."""

    workspace: Path
    config: Path
    notes: list[str] = field(default_factory=list)
    """Which folder a path was found in, where that was not the current one."""

    def find(self, value: str) -> Path | None:
        """An existing file or folder, absolute; None when no folder has it."""
        relative = Path(value).expanduser()
        if relative.is_absolute():
            return relative if relative.exists() else None
        here = Path.cwd()
        for folder, name in (
            (here, ""),
            (self.workspace, "the workspace"),
            (self.config.parent, f"the folder of {self.config.name}"),
        ):
            if (folder / relative).exists():
                if name and folder.resolve() != here.resolve():
                    self.notes.append(f"{value} is taken relative to {name} ({folder})")
                return Path(os.path.normpath(folder / relative))
        return None

    def resolve(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The config with every path that exists made absolute; hub ids and mappings stay as they are."""
        resolved = {key: value for key, value in values.items() if key not in REPLACED}
        for key in (*_PATHS, *_MAYBE_PATHS):
            if isinstance(resolved.get(key), str):
                found = self.find(resolved[key])
                resolved[key] = str(found) if found else resolved[key]
        for key in _MAYBE_LISTS:
            if isinstance(resolved.get(key), str):
                resolved[key] = ",".join(
                    str(self.find(part.strip()) or part.strip()) for part in resolved[key].split(",")
                )
        return resolved


def looks_like_path(value: str) -> bool:
    """Can this only be meant as a path? A hub id is ``name`` or ``owner/name``."""
    return value.startswith(("/", "./", "../", "~")) or value.count("/") > 1 or value.endswith("/")
