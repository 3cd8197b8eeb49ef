"""The events that ``inside/train.py`` appends to a file: followed while it runs, read back when it has ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_POLL_SECONDS = 0.2


def parse_events(lines: Iterable[str]) -> list[Event]:
    """The events in whole lines; anything else is passed over."""
    events = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            events.append(event)
    return events


def read_events(path: Path) -> list[Event]:
    """All events of a file, oldest first; none when there is no file."""
    return parse_events(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else []


@contextmanager
def followed(path: Path, tell: Callable[[Event], None]) -> Iterator[None]:
    """While the block runs, call ``tell`` with each new event from a thread; the rest is told before leaving."""
    position = path.stat().st_size if path.exists() else 0
    done = threading.Event()

    def follow() -> None:
        nonlocal position
        last = False
        while not last:
            last = done.wait(_POLL_SECONDS)
            if path.exists():
                with path.open("rb") as stream:
                    stream.seek(position)
                    chunk = stream.read()
                whole = chunk[: chunk.rfind(b"\n") + 1]
                position += len(whole)
                for event in parse_events(whole.decode("utf-8", "replace").splitlines()):
                    tell(event)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)


@dataclass(frozen=True)
class History:
    """What a training did, over all attempts that belong to it."""

    loss: list[tuple[int, float]]
    """(step, loss), every step once."""
    evaluations: list[tuple[int, float]]
    tokens: int
    tokens_per_second: float
    train_seconds: float
    """Between the first and the last step of each attempt, summed."""
    resumed_from: int
    """The step the last attempt started from; 0 when it started anew."""
    step_seconds: tuple[float, ...] = ()
    """Time of each step of the last attempt, from the end of the one before."""


def summarize(events: Iterable[Event]) -> History:
    """Put the attempts together: steps that a resumed training did again count once, as they were the last time."""
    loss: dict[int, float] = {}
    evaluations: dict[int, float] = {}
    seconds, tokens, started, resumed = 0.0, 0, None, 0
    before = 0
    times: list[float] = []
    for event in events:
        step = int(event.get("step", 0))
        if event["event"] == "start":
            resumed, before, started = step, tokens if step else 0, event["time"]
            loss = {number: value for number, value in loss.items() if number <= step}
            seconds = seconds if step else 0.0
            last, times = started, []
        elif event["event"] == "step" and started is not None:
            loss[step] = float(event["loss"])
            tokens = before + int(event.get("tokens", 0))
            times.append(event["time"] - last)
            seconds += times[-1]
            last = event["time"]
        elif event["event"] == "log" and isinstance(event.get("eval_loss"), float):
            evaluations[step] = event["eval_loss"]
    return History(
        sorted(loss.items()),
        sorted(evaluations.items()),
        tokens,
        tokens / seconds if seconds else 0.0,
        seconds,
        resumed,
        tuple(times),
    )


def last_usage(events: Iterable[Event]) -> dict[str, dict[str, int]]:
    """Calls of custom operators up to the last checkpoint: operator -> module -> calls."""
    usage: dict[str, dict[str, int]] = {}
    for event in events:
        if event["event"] == "usage":
            usage = {row["op"]: row["modules"] for row in event["operators"]}
    return usage


def thin(points: list[tuple[int, float]], limit: int = 200) -> list[tuple[int, float]]:
    """At most ``limit`` of the points, evenly spread, the first and the last among them."""
    if len(points) <= limit:
        return points
    return [points[round(index * (len(points) - 1) / (limit - 1))] for index in range(limit)]
