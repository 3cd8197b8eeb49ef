"""The content folders that come with amdflow: rules and samples, kernels, fine-tuning configs, launch profiles.

In a checkout they stand at the top of the repository; in a wheel they are packed below ``amdflow/shipped``.
"""

from __future__ import annotations

from pathlib import Path

FOLDERS = ("migration", "kernels", "finetuning", "serving")
_PACKAGE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """The shipped folder (or file) called ``name``, absolute."""
    packed = _PACKAGE / "shipped"
    return (packed if packed.is_dir() else _PACKAGE.parent) / name
