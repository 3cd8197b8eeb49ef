"""Generated pages are as the code would write them now; every link between pages leads somewhere."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from amdflow import process
from tests.conftest import REPOSITORY


def test_reference_pages_are_up_to_date(tmp_path: Path) -> None:
    process.run(
        [sys.executable, str(REPOSITORY / "docs/generate.py"), str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    written = sorted(tmp_path.iterdir())
    assert written
    for page in written:
        assert (REPOSITORY / "docs/reference" / page.name).read_text() == page.read_text(), (
            f"run: python docs/generate.py ({page.name} is out of date)"
        )


@pytest.mark.parametrize(
    "page",
    sorted(REPOSITORY.glob("*.md")) + sorted((REPOSITORY / "docs").rglob("*.md")),
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
