"""``amdflow init`` writes a whole project and leaves alone what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.config import load_project
from amdflow.content import FOLDERS
from amdflow.errors import UsageError
from amdflow.project import create_project


def test_everything_is_written_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "mine.py").write_text("mine")
    (tmp_path / ".gitignore").write_text("theirs")
    created = create_project(tmp_path)
    assert set(created.kept) == {"kernels/", ".gitignore"}
    assert (tmp_path / "kernels" / "mine.py").read_text() == "mine"
    assert list((tmp_path / "kernels").iterdir()) == [tmp_path / "kernels" / "mine.py"]
    assert all((tmp_path / name).is_dir() for name in FOLDERS)
    assert load_project(tmp_path).sections["migrate"]


def test_a_project_and_a_file_are_refused(tmp_path: Path) -> None:
    create_project(tmp_path / "new")
    with pytest.raises(UsageError, match="already is an amdflow project"):
        create_project(tmp_path / "new")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        create_project(tmp_path / "file")
