"""What the layers and the ruff rules cannot say: size, one door for processes, nothing of a machine in the text."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

SOURCES = sorted((REPOSITORY / "amdflow").rglob("*.py"))
TEXTS = [
    path
    for path in REPOSITORY.rglob("*")
    if path.suffix in {".py", ".md", ".yaml", ".yml", ".toml", ".txt", ".j2", ".js", ".h", ".hpp", ".cu", ".cpp"}
    and not {".venv", ".git", "out", "models"} & set(path.parts)
]
PARTS = ("amdflow", "benchmarks", "docs", "finetuning", "kernels", "migration", "serving", "tests")
MACHINE_PATHS = re.compile(r"(?<![\w.>)}/-])/(?:work|root|home)/\w")
REGISTRIES = re.compile(r"pypi\.org|pythonhosted\.org|debian\.org|npmjs\.(org|com)|huggingface\.co/")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_functions_stay_small(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            assert node.end_lineno - node.lineno <= 80, f"{path.name}: {node.name}"


def test_no_registry_is_named() -> None:
    named = [
        f"{path.relative_to(REPOSITORY)}: {match.group()}"
        for path in TEXTS
        if (match := REGISTRIES.search(path.read_text(errors="replace"))) and path != Path(__file__)
    ]
    assert not named


def test_no_folder_of_a_machine_is_named() -> None:
    named = [
        f"{path.relative_to(REPOSITORY)}: {match.group()}"
        for path in TEXTS
        if path.relative_to(REPOSITORY).parts[0] in PARTS
        and (match := MACHINE_PATHS.search(path.read_text(errors="replace")))
        and path != Path(__file__)
    ]
    assert not named


def test_what_runs_inside_an_engine_imports_nothing_of_amdflow() -> None:
    for path in SOURCES:
        if "inside" in path.parts:
            assert not re.search(r"^\s*(from|import) amdflow", path.read_text(), re.MULTILINE), path
