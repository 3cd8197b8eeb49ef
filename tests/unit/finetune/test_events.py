"""Events of a training: followed as they come, put together over several attempts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from amdflow.finetune.events import followed, last_usage, parse_events, summarize, thin


def event(kind: str, time: float, **fields: Any) -> dict[str, Any]:
    return {"event": kind, "time": time, **fields}


def step(number: int, time: float, loss: float, tokens: int) -> dict[str, Any]:
    return event("step", time, step=number, loss=loss, tokens=tokens)


def test_one_attempt_gives_loss_tokens_and_rate() -> None:
    history = summarize([event("start", 10.0, step=0), step(1, 12.0, 3.0, 100), step(2, 14.0, 2.0, 200)])
    assert history.loss == [(1, 3.0), (2, 2.0)]
    assert history.tokens == 200
    assert history.tokens_per_second == 50.0
    assert history.train_seconds == 4.0
    assert history.resumed_from == 0


def test_a_resumed_attempt_replaces_the_steps_it_does_again() -> None:
    first = [event("start", 0.0, step=0), step(1, 1.0, 3.0, 10), step(2, 2.0, 2.5, 20), step(3, 3.0, 9.9, 30)]
    second = [event("start", 100.0, step=2), step(3, 101.0, 2.2, 10), step(4, 102.0, 2.0, 20)]
    history = summarize(first + second)
    assert history.loss == [(1, 3.0), (2, 2.5), (3, 2.2), (4, 2.0)]
    assert history.resumed_from == 2
    assert history.train_seconds == 5.0


def test_an_attempt_from_the_start_forgets_the_one_before() -> None:
    history = summarize(
        [event("start", 0.0, step=0), step(1, 1.0, 9.0, 10), event("start", 50.0, step=0), step(1, 51.0, 3.0, 10)]
    )
    assert history.loss == [(1, 3.0)]
    assert history.tokens == 10


def test_evaluations_are_kept_apart() -> None:
    history = summarize([event("start", 0.0, step=0), step(1, 1.0, 3.0, 1), event("log", 1.5, step=1, eval_loss=2.5)])
    assert history.evaluations == [(1, 2.5)]


def test_nothing_gives_nothing() -> None:
    history = summarize([])
    assert (history.loss, history.tokens_per_second) == ([], 0.0)


def test_torn_lines_are_passed_over() -> None:
    assert parse_events(['{"event": "step"}', '{"event": "st', "[1]", "{}"]) == [{"event": "step"}]


def test_new_events_are_told_and_old_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(event("start", 0.0)) + "\n")
    told: list[dict[str, Any]] = []
    with followed(path, told.append), path.open("a") as stream:
        stream.write(json.dumps(event("step", 1.0, step=1)) + "\n" + '{"event": "half')
        stream.flush()
    assert [item["event"] for item in told] == ["step"]


def test_a_file_that_appears_later_is_followed(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    with followed(tmp_path / "events.jsonl", told.append):
        (tmp_path / "events.jsonl").write_text('{"event": "start"}\n')
    assert told == [{"event": "start"}]


def test_long_histories_are_thinned_and_keep_their_ends() -> None:
    points = [(number, float(number)) for number in range(1, 1001)]
    few = thin(points, 50)
    assert len(few) == 50
    assert few[0] == (1, 1.0)
    assert few[-1] == (1000, 1000.0)
    assert thin(points[:10], 50) == points[:10]


def test_times_are_those_of_the_last_attempt() -> None:
    before = [event("start", 0.0, step=0), event("step", 9.0, step=1, loss=1.0)]
    again = [event("start", 20.0, step=1), event("step", 22.0, step=2, loss=1.0), event("step", 22.5, step=3, loss=1.0)]
    assert summarize([*before, *again]).step_seconds == (2.0, 0.5)


def test_calls_of_operators_are_taken_from_the_last_checkpoint() -> None:
    said = [event("usage", 1.0, operators=[{"op": "swiglu", "modules": {"mlp": calls}}]) for calls in (3, 6)]
    assert last_usage(said) == {"swiglu": {"mlp": 6}}
    assert last_usage([event("step", 1.0)]) == {}
