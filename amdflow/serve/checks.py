"""What must be right before an engine starts: the address is free, the model fits."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.serve.config import DEFAULT_PORT

_TRIED = 100
_GIB = 1 << 30
_ENGINE_BYTES = 2 * _GIB
_LOOPBACK = ("localhost", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    return host in _LOOPBACK or host.startswith("127.")


def url_of(host: str, port: int) -> str:
    """The address a client on this machine uses."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - translated, not bound
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def pick_port(host: str, wanted: int | None) -> tuple[int, str]:
    """A free port, and a remark when it is not the one people expect.

    Raises UsageError when the wanted one is taken (naming who has it, where that can be seen) or ``host`` is not this machine's.
    """
    if wanted is not None:
        if not _free(host, wanted):
            raise UsageError(
                f"port {wanted} on {host} is taken{_holder(wanted)}",
                hint="stop that (amdflow endpoint stop, when it is a server of amdflow's), or choose another --port",
            )
        return wanted, ""
    for port in range(DEFAULT_PORT, DEFAULT_PORT + _TRIED):
        if _free(host, port):
            return (
                port,
                "" if port == DEFAULT_PORT else f"port {DEFAULT_PORT} is taken{_holder(DEFAULT_PORT)}; using {port}",
            )
    raise UsageError(
        f"ports {DEFAULT_PORT} to {DEFAULT_PORT + _TRIED - 1} on {host} are all taken",
        hint="choose another with --port",
    )


def check_memory(weights: int, *, gpu_bytes: int | None) -> str:
    """A remark when ``weights`` (bytes) leave little room on the device. ``gpu_bytes`` is the GPU's memory, None on the CPU.

    Raises EnvironmentProblem when they cannot fit at all.
    """
    available, total = (gpu_bytes, gpu_bytes) if gpu_bytes is not None else _memory()
    where = "the GPU" if gpu_bytes is not None else "this machine"
    if weights > total:
        raise EnvironmentProblem(
            f"the weights take {weights / _GIB:.1f} GiB, and {where} has {total / _GIB:.1f} GiB of memory",
            hint="serve a smaller or quantized model, or spread it: --engine-arg tensor-parallel-size=N",
        )
    if weights + _ENGINE_BYTES > available:
        return f"the weights take {weights / _GIB:.1f} GiB and {where} has {available / _GIB:.1f} GiB free: the server may run out of memory"
    return ""


def _free(host: str, port: int) -> bool:
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise UsageError(
            f"unknown host {host!r}: {error.strerror}",
            hint="--host 127.0.0.1 (this machine only) or an address of this machine",
        ) from error
    with socket.socket(family, kind, protocol) as probe:
        # as servers do: a port in TIME_WAIT is free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            what = {
                errno.EADDRNOTAVAIL: f"{host} is not an address of this machine",
                errno.EACCES: f"port {port} is reserved for root",
            }.get(error.errno or 0, error.strerror)
            raise UsageError(
                f"cannot listen on {host}:{port}: {what}", hint="choose another --host or --port"
            ) from error
    return True


def _holder(port: int) -> str:
    import psutil

    try:
        for connection in psutil.net_connections(kind="tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr
                and connection.laddr.port == port
                and connection.pid
            ):
                return f" by {' '.join(psutil.Process(connection.pid).cmdline())[:80] or 'a process'} (pid {connection.pid})"
    except (psutil.Error, OSError):
        return ""
    return ""


def _memory() -> tuple[int, int]:
    """Available and total bytes, a container's limit respected."""
    import psutil

    machine = psutil.virtual_memory()
    limit = _cgroup_limit()
    return min(machine.available, limit), min(machine.total, limit)


def _cgroup_limit() -> int:
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            return int(Path(name).read_text())
        except (OSError, ValueError):
            continue
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
