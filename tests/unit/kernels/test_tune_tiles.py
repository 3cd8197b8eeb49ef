"""A winner goes into the user's tile file; the rest of the file is theirs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import yaml

from amdflow.errors import UsageError
from amdflow.kernels.item import SCRIPTS
from amdflow.kernels.sources import Folders, Kernel
from amdflow.kernels.tiles import tiles_for
from amdflow.kernels.tune_space import Task
from amdflow.kernels.tune_tiles import entry_key, write_entry

MINE = """\
# Ours. Do not touch: {measured}
scale: {block_m: 4, threads: 128}  # the general one

scale dtype=bfloat16 width=8: {block_m: 2, threads: 64}  # found by hand
other: {block: 512}
"""
KEY = "scale width=8 dtype=bfloat16"


def test_the_key_names_the_sizes_and_the_type_it_holds_for(kernel: Kernel) -> None:
    task = Task(kernel, "gfx942", "bfloat16", {"width": 8, "causal": True}, {"rows": 2}, {})
    assert entry_key(task) == "scale width=8 causal=true dtype=bfloat16"


def test_a_file_and_its_folder_are_made(tmp_path: Path) -> None:
    path = tmp_path / "kernels" / "tiles" / "gfx942.yaml"
    write_entry(path, KEY, {"block_m": 2, "wide": True}, "measured on a card")
    assert path.read_text() == "scale width=8 dtype=bfloat16: {block_m: 2, wide: true}  # measured on a card\n"


def test_an_entry_is_replaced_where_it_stands_and_all_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "gfx942.yaml"
    path.write_text(MINE)
    write_entry(path, KEY, {"block_m": 8}, "measured")
    lines, before = path.read_text().splitlines(), MINE.splitlines()
    assert lines[3] == "scale dtype=bfloat16 width=8: {block_m: 8, threads: 64}  # measured"
    assert lines[:3] + lines[4:] == before[:3] + before[4:]


def test_a_new_entry_comes_last(tmp_path: Path) -> None:
    path = tmp_path / "gfx942.yaml"
    path.write_text(MINE)
    write_entry(path, "scale width=9 dtype=bfloat16", {"block_m": 8}, "")
    assert path.read_text() == MINE + "scale width=9 dtype=bfloat16: {block_m: 8}\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{KEY}:\n  block_m: 2\n",
        f"{KEY}: {{block_m: 2,\n  threads: 64}}\n",
        f"'{KEY}': {{block_m: 2}}\n",
        "scale dtype=bfloat16   width=8:\n  block_m: 2\n",
    ],
)
def test_an_entry_that_is_not_on_one_line_is_left_alone_and_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gfx942.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match="does not stand on one line") as refused:
        write_entry(path, KEY, {"block_m": 8}, "")
    assert path.read_text() == text
    assert "{block_m: 8}" in refused.value.hint


def test_both_readers_find_what_was_written(
    folder: Path, folders: Folders, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "tiles" / "gfx942.yaml"
    path.write_text("scale: {block_m: 4}  # general\n")
    write_entry(path, KEY, {"block_m": 8, "threads": 256}, "measured on a card, 2026-11-30: 0.1 ms, before 0.2")
    assert yaml.safe_load(path.read_text())[KEY] == {"block_m": 8, "threads": 256}
    build = {"width": 8, "dtype": "bfloat16"}
    assert tiles_for(folders, kernel, "gfx942", build) == {"block_m": 8, "threads": 256}
    spec = importlib.util.spec_from_file_location("inside_tiles", SCRIPTS / "tilelang_ops" / "tiles.py")
    assert spec is not None
    assert spec.loader is not None
    inside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(inside)
    monkeypatch.setattr(inside, "folders", lambda: (folder,))
    assert inside.tiles_of("gfx942", "scale", build) == {"block_m": 8, "threads": 256}
