"""The same work on many files at once, with a bar that always says what is running."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

from amdflow.terminal import Bar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_SPEAK_EVERY_SECONDS = 2.0
_NAMED = 2


def in_parallel(
    work: Callable[[ItemT], ResultT],
    items: Sequence[ItemT],
    jobs: int,
    bar: Bar,
    name: str,
    label: Callable[[ItemT], str],
) -> list[ResultT]:
    """Results in the order of ``items``. The bar names the items that have been at work longest.

    The first error ends it: what has not begun yet does not begin.
    """
    running: dict[str, None] = {}
    lock = threading.Lock()

    def one(item: ItemT) -> ResultT:
        shown = label(item)
        with lock:
            running[shown] = None
        try:
            return work(item)
        finally:
            with lock:
                running.pop(shown, None)

    with ThreadPoolExecutor(jobs, thread_name_prefix=name) as pool:
        futures = [pool.submit(one, item) for item in items]
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, _SPEAK_EVERY_SECONDS, FIRST_COMPLETED)
                for future in done:
                    future.result()
                with lock:
                    oldest = list(running)[:_NAMED]
                bar.update(len(done), note=", ".join(oldest))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [future.result() for future in futures]
