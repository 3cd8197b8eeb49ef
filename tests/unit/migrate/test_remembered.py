"""Answers kept between runs."""

from __future__ import annotations

from pathlib import Path

from amdflow.migrate.remembered import Remembered


def test_an_answer_comes_back_until_the_stamp_changes(tmp_path: Path) -> None:
    first = Remembered(tmp_path / "kept", "1")
    assert first.get("a") is None
    first.put("a", {"text": "tab\there\nline \u00e9"})
    first.save()
    assert Remembered(tmp_path / "kept", "1").get("a") == {"text": "tab\there\nline \u00e9"}
    assert Remembered(tmp_path / "kept", "2").get("a") is None


def test_what_nobody_asked_for_is_forgotten(tmp_path: Path) -> None:
    first = Remembered(tmp_path / "kept", "1")
    first.put("a", 1)
    first.put("b", 2)
    first.save()
    second = Remembered(tmp_path / "kept", "1")
    second.get("b")
    second.save()
    third = Remembered(tmp_path / "kept", "1")
    assert (third.get("a"), third.get("b")) == (None, 2)


def test_a_broken_file_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("1\nno tab here\n")
    assert Remembered(tmp_path / "kept", "1").get("no tab here") is None
