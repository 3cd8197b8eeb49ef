"""Where a scanned folder lies in its repository: what code hosts want paths to start from."""

from __future__ import annotations

import os
from pathlib import Path


def repository_prefix(folder: Path, workspace: Path) -> str:
    """Path of ``folder`` below the repository that holds it (the nearest folder upwards with ``.git``), else below ``workspace``.

    Empty when it lies in neither, and when it is the repository itself. ``/`` separators.
    """
    root = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), workspace)
    if not folder.is_relative_to(root):
        return ""
    relative = Path(os.path.relpath(folder, root)).as_posix()
    return "" if relative == "." else relative
