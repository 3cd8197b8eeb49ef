"""Where output may go, which severities are over the limit, what the terminal says."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.config import validate
from amdflow.errors import UsageError
from amdflow.findings import Severity
from amdflow.migrate.config import MigrateConfig
from amdflow.migrate.summary import check_output, standing


@pytest.mark.parametrize(
    ("output", "words"), [("src", "is the source folder itself"), ("src/hip", "lies inside"), (".", "holds the source")]
)
def test_output_and_source_must_not_overlap(tmp_path: Path, output: str, words: str) -> None:
    (tmp_path / "src").mkdir()
    with pytest.raises(UsageError, match=words):
        check_output(tmp_path / "src", tmp_path / output)


def test_a_folder_beside_the_source_is_fine(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    check_output(tmp_path / "src", tmp_path / "src-hip")
    check_output(None, tmp_path)
    check_output(tmp_path / "src", None)


@pytest.mark.parametrize(
    ("limit", "over"),
    [
        ("none", []),
        ("silent", ["silent"]),
        ("compile", ["silent", "compile"]),
        ("note", ["silent", "compile", "link", "slow", "note"]),
    ],
)
def test_fail_on_means_this_bad_or_worse(limit: str, over: list[str]) -> None:
    config = MigrateConfig.model_validate({"fail_on": limit})
    assert [severity.value for severity in Severity if config.is_over_limit(severity)] == over


@pytest.mark.parametrize("wrong", [{"jobs": -1}, {"fail_on": "all"}, {"sauce": "x"}, {"compile": "maybe"}])
def test_wrong_values_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        validate(MigrateConfig, wrong, where="amdflow.yaml: migrate")


def test_what_was_not_compiled_is_not_said_to_compile() -> None:
    assert "nothing was compiled" in standing(0, {"gfx942": 0}, {})
    assert "nothing was compiled" in standing(3, {}, {"silent": 1})
    assert standing(3, {"gfx942": 3}, {}).startswith("Every unit compiles")
    assert "1 compile checks failed" in standing(3, {"gfx942": 2}, {})
