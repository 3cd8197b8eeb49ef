"""``amdflow kernels tune`` with the real TileLang and HIP compiler: ranked, resumed, written, and safe from what hangs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.content import shipped
from amdflow.kernels.item import SCRIPTS
from tests.conftest import CommandLine

TUNE = 'TUNE = {"block": [2048, 3000], "threads": [128, 256]}'
ASKED = ("kernels", "tune", "--kernel", "tiny", "--arch", "gfx1100", "--format", "json")


@pytest.fixture(scope="module")
def amdflow(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A workspace with a kernel of four settings, two of which TileLang refuses."""
    folder = tmp_path_factory.mktemp("tune")
    (folder / "kernels" / "tiles").mkdir(parents=True)
    text = (shipped("kernels") / "scale_in_place.py").read_text().replace('"op": "scale_in_place"', '"op": "tiny"')
    before, _name, rest = text.partition("TUNE = {")
    (folder / "kernels" / "tiny.py").write_text(before + TUNE + rest.partition("\n}")[2])
    (folder / "kernels" / "tiles" / "gfx1100.yaml").write_text("# ours\ntiny: {threads: 256}\n")
    return CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "config-home")})


def test_without_the_card_settings_are_ranked_and_nothing_is_written(amdflow: CommandLine) -> None:
    said = amdflow(*ASKED, "--time-limit", "3")
    assert said.code == 0, said.err
    (task,) = said.json["tasks"]
    assert task["how"] == "ranked by a model, not measured"
    assert task["measured"] is False
    assert task["written"] is None
    assert task["today"] == {"block": 4096, "threads": 256}
    assert len(task["outcomes"]) == task["possible"] == 6
    ranked = [one for one in task["outcomes"] if one["score"] is not None]
    assert all(one["facts"]["waves"] >= 1 and one["facts"]["bound"] == "memory" for one in ranked)
    assert [one["score"] for one in ranked] == sorted(one["score"] for one in ranked)
    assert len(ranked) >= 4


def test_what_is_known_is_not_built_again_and_the_best_is_written_after_a_check(amdflow: CommandLine) -> None:
    tiles = amdflow.folder / "kernels" / "tiles" / "gfx1100.yaml"
    tiles.write_text("# ours\ntiny: {threads: 64}  # slow\n")
    said = amdflow(*ASKED, "--time-limit", "3", "--write")
    assert said.code == 0, said.err
    (task,) = said.json["tasks"]
    assert "6 known" in said.err
    if task["written"] is None:
        assert task["note"] == "nothing tried is better than the settings in use"
    else:
        assert task["note"] == "numbers checked on the CPU"
        lines = tiles.read_text().splitlines()
        assert lines[:2] == ["# ours", "tiny: {threads: 64}  # slow"]
        assert lines[2].startswith("tiny dtype=bfloat16: {block: ")
        assert "ranked by a model, not measured" in lines[2]


def test_a_candidate_that_hangs_ends_its_process_in_time(tmp_path: Path) -> None:
    module = tmp_path / "hangs.py"
    module.write_text("import time\n\n\ndef build(tl, *, dtype):\n    time.sleep(600)\n")
    orders = tmp_path / "orders.json"
    job = {"id": "0", "module": str(module), "target": "cuda", "dtype": "float16", "build": {"dtype": "float16"}}
    orders.write_text(json.dumps({"limit": 1, "jobs": [job]}))
    engine = open_context(start=tmp_path).toolchain.engine("kernels")
    argv = [str(engine.python), str(SCRIPTS / "tune.py"), "compile", str(orders)]
    done = process.run(argv, env={**os.environ, **engine.environment()}, check=False, timeout=120)
    assert done.returncode == 1
    assert not done.timed_out
    assert done.stdout.splitlines()[-1] == '{"start": "0"}'
    assert "Timeout (" in done.stderr
