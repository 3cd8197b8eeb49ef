"""Machines read from copied ``/sys`` and ``/proc`` trees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amdflow.gpu.machine import accelerator, amd_devices, describe_machine, driver_version, gfx_name, gpus, has_nvidia

MI300X = 90402


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def add_node(root: Path, number: int, version: int, render: int = 0) -> None:
    node = f"sys/class/kfd/kfd/topology/nodes/{number}"
    properties = f"cpu_cores_count 0\nsimd_count 1216\ngfx_target_version {version}\ndrm_render_minor {render}\n"
    write(root, {f"{node}/properties": properties, f"{node}/name": "ip discovery\n"})


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (90402, "gfx942"),
        (90010, "gfx90a"),
        (90500, "gfx950"),
        (90006, "gfx906"),
        (110000, "gfx1100"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
        (100300, "gfx1030"),
    ],
)
def test_target_names(number: int, name: str) -> None:
    assert gfx_name(number) == name


def test_a_server_with_two_gpus(tmp_path: Path) -> None:
    add_node(tmp_path, 0, 0)  # the CPU
    add_node(tmp_path, 10, MI300X, 129)
    add_node(tmp_path, 2, MI300X, 128)
    for render in (128, 129):
        device = f"sys/class/drm/renderD{render}/device"
        write(
            tmp_path,
            {
                f"{device}/mem_info_vram_total": f"{192 << 30}\n",
                f"{device}/product_name": "AMD Instinct MI300X\n",
                f"{device}/vbios_version": "113-M3000100-102\n",
            },
        )
    write(
        tmp_path,
        {
            "etc/os-release": 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n',
            "proc/meminfo": "MemTotal:       2113536000 kB\nMemFree: 1 kB\n",
            "proc/cpuinfo": "processor : 0\nmodel name : AMD EPYC 9654\n",
            "proc/sys/kernel/hostname": "node7\n",
            "proc/sys/kernel/osrelease": "6.12.0-amd64\n",
            "sys/module/amdgpu/version": "6.14.14\n",
            "opt/rocm/.info/version": "7.0.2-56\n",
        },
    )
    first, second = gpus(tmp_path)
    assert (first.node, second.node) == (2, 10)
    assert (first.gfx, first.name, first.memory_gb, first.vbios) == (
        "gfx942",
        "AMD Instinct MI300X",
        192.0,
        "113-M3000100-102",
    )
    facts = describe_machine(tmp_path)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["host"] == "node7"
    assert facts["os"] == "Debian GNU/Linux 13 (trixie)"
    assert facts["cpu"] == "AMD EPYC 9654"
    assert facts["memory_gb"] == pytest.approx(2015.6, abs=0.1)
    assert (facts["rocm"], facts["driver"], len(facts["gpus"])) == ("7.0.2-56", "6.14.14", 2)
    assert accelerator(tmp_path) == "rocm"


def test_memory_from_the_topology_when_the_card_does_not_say(tmp_path: Path) -> None:
    add_node(tmp_path, 1, 110000, 128)
    bank = "sys/class/kfd/kfd/topology/nodes/1/mem_banks"
    write(
        tmp_path,
        {
            f"{bank}/0/properties": f"heap_type 1\nsize_in_bytes {24 << 30}\n",
            f"{bank}/1/properties": "heap_type 4\nsize_in_bytes 65536\n",
        },
    )
    (gpu,) = gpus(tmp_path)
    assert (gpu.memory_gb, gpu.name, gpu.vbios) == (24.0, "ip discovery", "")


def test_a_machine_without_a_gpu(tmp_path: Path) -> None:
    assert gpus(tmp_path) == []
    assert amd_devices(tmp_path) == []
    assert driver_version(tmp_path) == ""
    assert accelerator(tmp_path) == "cpu"
    assert describe_machine(tmp_path)["gpus"] == []


def test_a_card_without_its_driver(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "sys/bus/pci/devices/0000:03:00.0/vendor": "0x1002\n",
            "sys/bus/pci/devices/0000:03:00.0/class": "0x030000\n",
            "sys/bus/pci/devices/0000:03:00.1/vendor": "0x1002\n",
            "sys/bus/pci/devices/0000:03:00.1/class": "0x040300\n",  # its sound output
            "sys/bus/pci/devices/0000:04:00.0/vendor": "0x10de\n",
            "sys/bus/pci/devices/0000:04:00.0/class": "0x030000\n",
        },
    )
    assert amd_devices(tmp_path) == ["0000:03:00.0"]


def test_the_kernels_own_driver_is_named_after_the_kernel(tmp_path: Path) -> None:
    write(tmp_path, {"sys/module/amdgpu/parameters/x": "", "proc/sys/kernel/osrelease": "6.12.0-amd64\n"})
    assert driver_version(tmp_path) == "in-kernel 6.12.0-amd64"


def test_nvidia(tmp_path: Path) -> None:
    assert not has_nvidia(tmp_path)
    write(tmp_path, {"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: H200\n"})
    assert has_nvidia(tmp_path)
    assert accelerator(tmp_path) == "cuda"


def test_this_machine_can_be_described() -> None:
    facts = describe_machine()
    assert facts["cores"] >= 1
    assert facts["memory_gb"] > 0
    assert facts["kernel"]
