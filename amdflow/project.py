"""``amdflow init``: a new workspace with the four content folders, a config and a CI workflow."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from amdflow.config import PROJECT_FILE
from amdflow.content import FOLDERS, shipped
from amdflow.errors import UsageError
from amdflow.files import write_atomic

_IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")
_GITIGNORE = "/out/\n/models/\n__pycache__/\n"
_TEMPLATES = Path(__file__).resolve().parent / "templates"


@dataclass(frozen=True)
class Created:
    """What ``init`` wrote, and what was there already and was left alone (names relative to the folder)."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def create_project(folder: Path) -> Created:
    """Write a project into ``folder`` (made if need be); what exists stays as it is.

    Raises UsageError when ``folder`` is a file or already a project.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="name a folder that is empty or does not exist yet")
    if (folder / PROJECT_FILE).exists():
        raise UsageError(
            f"{folder} already is an amdflow project ({PROJECT_FILE} is there)", hint="name another folder"
        )
    texts = {
        ".gitignore": _GITIGNORE,
        ".github/workflows/amdflow.yml": (_TEMPLATES / "workflow.yml").read_text(encoding="utf-8"),
    }
    written, kept = [], []
    for name in FOLDERS:
        if (folder / name).exists():
            kept.append(f"{name}/")
        else:
            shutil.copytree(shipped(name), folder / name, ignore=_IGNORED)
            written.append(f"{name}/")
    for name, text in texts.items():
        if (folder / name).exists():
            kept.append(name)
        else:
            write_atomic(folder / name, text)
            written.append(name)
    # the project file comes last: a folder that has it is a whole project
    write_atomic(folder / PROJECT_FILE, shipped(PROJECT_FILE).read_text(encoding="utf-8"))
    return Created((*written, PROJECT_FILE), tuple(kept))
