"""What this machine is and which GPUs it has, read from ``/sys`` and ``/proc``: no child process, no GPU library.

``root`` stands before every path, so that a copied tree of another machine can be read (and tested) the same way.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"
_AMD_VENDOR = "0x1002"
_DISPLAY_CLASSES = ("0x03", "0x12")
"""PCI classes of display controllers and processing accelerators."""
_VRAM_HEAPS = (1, 2)
"""KFD heap types: frame buffer visible to the host, and not."""
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Gpu:
    """One AMD GPU that the kernel driver offers for computing."""

    gfx: str
    """Target name, as gfx942."""
    name: str
    vbios: str
    memory_gb: float
    """GiB of its own memory; 0 when the driver does not say."""
    node: int
    """Number of its KFD topology node."""
    render: int = 0
    """Minor number of its /dev/dri/renderD device; 0 when unknown."""


def gpus(root: Path = Path("/")) -> list[Gpu]:
    """The AMD GPUs of this machine, by node number. Empty without the amdgpu driver."""
    return [gpu for node in _nodes(root) if (gpu := _read_node(node, root))]


def amd_devices(root: Path = Path("/")) -> list[str]:
    """PCI addresses of AMD graphics or accelerator devices, whether or not a driver serves them."""
    folder = root / "sys/bus/pci/devices"
    devices = sorted(folder.iterdir()) if folder.is_dir() else []
    return [
        device.name
        for device in devices
        if _text(device / "vendor") == _AMD_VENDOR and _text(device / "class").startswith(_DISPLAY_CLASSES)
    ]


def has_nvidia(root: Path = Path("/")) -> bool:
    """Whether a loaded NVIDIA driver serves at least one GPU."""
    folder = root / "proc/driver/nvidia/gpus"
    return folder.is_dir() and any(folder.iterdir())


def accelerator(root: Path = Path("/")) -> str:
    """What engines should compute on here: ``rocm``, ``cuda`` or ``cpu``."""
    if gpus(root):
        return "rocm"
    return "cuda" if has_nvidia(root) else "cpu"


def gfx_name(target_version: int) -> str:
    """Target name for the driver's number: 90402 -> gfx942, 110501 -> gfx1151, 90010 -> gfx90a (stepping in hexadecimal)."""
    major, rest = divmod(target_version, 10_000)
    minor, stepping = divmod(rest, 100)
    return f"gfx{major}{minor:x}{stepping:x}"


def driver_version(root: Path = Path("/")) -> str:
    """Version of the amdgpu driver; one that came with the kernel is named after it; empty when it is not loaded."""
    module = root / "sys/module/amdgpu"
    if not module.is_dir():
        return ""
    return _text(module / "version") or f"in-kernel {_kernel(root)}"


def describe_machine(root: Path = Path("/")) -> dict[str, Any]:
    """JSON facts for a manifest: host, os, kernel, cpu, cores, memory_gb, rocm, driver, gpus. Unknown texts are empty."""
    release = dict(_key_values(root / "etc/os-release", "="))
    memory = dict(_key_values(root / "proc/meminfo", ":")).get("MemTotal", "0").split()[0]
    cpu = dict(_key_values(root / "proc/cpuinfo", ":")).get("model name", platform.machine())
    return {
        "host": _text(root / "proc/sys/kernel/hostname") or platform.node(),
        "os": release.get("PRETTY_NAME", platform.system()),
        "kernel": _kernel(root),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(memory) * 1024 / _GIB, 1),
        "rocm": _text(root / "opt/rocm/.info/version"),
        "driver": driver_version(root),
        "gpus": [asdict(gpu) for gpu in gpus(root)],
    }


def _nodes(root: Path) -> list[Path]:
    folder = root / _TOPOLOGY
    found = [node for node in folder.iterdir() if node.name.isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda node: int(node.name))


def _read_node(node: Path, root: Path) -> Gpu | None:
    properties = dict(_key_values(node / "properties", " "))
    version = _number(properties.get("gfx_target_version", ""))
    if not version:  # a CPU is a node too
        return None
    render = _number(properties.get("drm_render_minor", ""))
    device = root / f"sys/class/drm/renderD{render}/device"
    memory = _number(_text(device / "mem_info_vram_total")) or sum(_vram_banks(node))
    gfx = gfx_name(version)
    name = _text(device / "product_name") or _text(node / "name") or gfx
    return Gpu(gfx, name, _text(device / "vbios_version"), round(memory / _GIB, 1), int(node.name), render)


def _vram_banks(node: Path) -> Iterator[int]:
    for bank in node.glob("mem_banks/*/properties"):
        properties = dict(_key_values(bank, " "))
        if _number(properties.get("heap_type", "")) in _VRAM_HEAPS:
            yield _number(properties.get("size_in_bytes", ""))


def _kernel(root: Path) -> str:
    return _text(root / "proc/sys/kernel/osrelease") or platform.release()


def _key_values(path: Path, separator: str) -> Iterator[tuple[str, str]]:
    for line in _text(path).splitlines():
        key, found, value = line.partition(separator)
        if found:
            yield key.strip(), value.strip().strip('"')


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _text(path: Path) -> str:
    """A small file's text; empty when it is absent or may not be read (some nodes are closed to users outside the render group)."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
