"""Looking at a running server from outside."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from amdflow.errors import AmdflowError
from amdflow.serve.endpoint import Endpoint
from amdflow.serve.engines import ENGINES
from amdflow.serve.launch import api_key


def inspect_endpoint(endpoint: Endpoint) -> str:
    """``ready``, ``unhealthy`` (it runs, its health check does not pass), ``stopped`` (on request) or ``gone`` (it ended, its record is stale)."""
    import httpx

    if endpoint.stopped:
        return "stopped"
    if not endpoint.alive():
        return "gone"
    engine = ENGINES.get(endpoint.engine)
    headers = {"Authorization": f"Bearer {api_key()}"} if api_key() else {}
    try:
        with httpx.Client(trust_env=False, timeout=10.0, headers=headers) as client:
            good = client.get(f"{endpoint.url}{engine.health if engine else '/health'}").status_code == 200
    except httpx.HTTPError:
        good = False
    return "ready" if good else "unhealthy"


def read_log(path: Path, *, lines: int, more: Callable[[], bool]) -> Iterator[str]:
    """The last ``lines`` lines, then new ones for as long as ``more`` says so. Raises AmdflowError when there is no log."""
    if not path.is_file():
        raise AmdflowError(
            f"the log {path} is gone", hint="logs of the last few runs are kept; amdflow serve starts a new one"
        )
    with path.open("r", encoding="utf-8", errors="replace") as stream:
        yield from (line.rstrip("\n") for line in deque(stream, maxlen=lines))
        going = True
        while going:
            going = more()
            yield from (line.rstrip("\n") for line in stream)
            if going:
                time.sleep(0.3)
