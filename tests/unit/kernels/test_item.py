"""Names and cache keys of builds, and the settings tried when one does not fit."""

from __future__ import annotations

from dataclasses import replace

from amdflow.kernels.item import Item, in_parallel
from amdflow.kernels.suggest import smaller_tiles


def test_a_name_says_what_was_built(item: Item) -> None:
    assert item.name == "gfx942/scale-width8-bf16"
    assert replace(item, sizes={"causal": True, "half": False}).variant == "scale-causal-nohalf-bf16"


def test_the_key_follows_everything_the_result_depends_on(item: Item) -> None:
    tools = {"tilelang": "0.1.15", "rocm": "7.2"}
    key = item.key(tools, ["-O3"])
    assert key == replace(item).key(dict(reversed(tools.items())), ["-O3"])
    others = [
        replace(item, target="gfx90a").key(tools, ["-O3"]),
        replace(item, dtype="float32").key(tools, ["-O3"]),
        replace(item, sizes={"width": 9}).key(tools, ["-O3"]),
        replace(item, tiles={"block_m": 32, "threads": 256}).key(tools, ["-O3"]),
        replace(item, kernel=replace(item.kernel, sha256="0")).key(tools, ["-O3"]),
        item.key({**tools, "rocm": "7.3"}, ["-O3"]),
        item.key(tools, ["-O2"]),
    ]
    assert len({key, *others}) == len(others) + 1


def test_smaller_tiles_halve_the_largest_block_and_keep_the_rest() -> None:
    tried = list(smaller_tiles({"block_m": 128, "block_n": 64, "threads": 256}))
    assert tried[0] == {"block_m": 64, "block_n": 64, "threads": 256}
    assert tried[1] == {"block_m": 64, "block_n": 64, "threads": 128}
    assert tried[2]["block_m"] * tried[2]["block_n"] == 2048
    assert [one["threads"] for one in tried] == [256, 128] * (len(tried) // 2)
    assert list(smaller_tiles({"block_m": 16})) == []


def test_results_of_parallel_work_keep_their_order() -> None:
    assert in_parallel(lambda number: number * 2, range(20), 4) == list(range(0, 40, 2))
