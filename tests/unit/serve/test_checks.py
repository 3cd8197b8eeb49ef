"""Ports, hosts and memory."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.serve import checks
from amdflow.serve.checks import check_memory, is_loopback, pick_port, url_of

TIB = 1 << 40


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of this machine that this process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_taken_port_is_refused_and_its_holder_named(taken: int) -> None:
    with pytest.raises(
        UsageError, match=rf"port {taken} on 127\.0\.0\.1 is taken by .*\(pid {os.getpid()}\)"
    ) as caught:
        pick_port("127.0.0.1", taken)
    assert "--port" in caught.value.hint


def test_a_taken_default_port_gives_the_next_free_one_and_a_remark(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "DEFAULT_PORT", taken)
    port, remark = pick_port("127.0.0.1", None)
    assert port > taken
    assert f"port {taken} is taken" in remark
    assert f"using {port}" in remark


def test_a_free_port_that_was_asked_for_is_taken_without_a_word() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    assert pick_port("127.0.0.1", free) == (free, "")


def test_hosts_that_are_not_ours_are_refused() -> None:
    with pytest.raises(UsageError, match="not an address of this machine"):
        pick_port("192.0.2.1", 30000)
    with pytest.raises(UsageError, match="unknown host"):
        pick_port("no such host", 30000)


def test_loopback_and_urls() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "127.8.0.1", "0.0.0.0", "10.0.0.1")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]
    assert url_of("127.0.0.1", 1) == "http://127.0.0.1:1"
    assert url_of("0.0.0.0", 1) == "http://127.0.0.1:1"
    assert url_of("::1", 1) == "http://[::1]:1"


def test_weights_that_cannot_fit_are_refused_and_tight_ones_remarked_on() -> None:
    assert check_memory(1, gpu_bytes=None) == ""
    with pytest.raises(EnvironmentProblem, match="this machine has"):
        check_memory(900 * TIB, gpu_bytes=None)
    with pytest.raises(EnvironmentProblem, match=r"take 2048\.0 GiB, and the GPU has 1024\.0 GiB"):
        check_memory(2 * TIB, gpu_bytes=TIB)
    assert "may run out of memory" in check_memory(TIB - 1, gpu_bytes=TIB)
