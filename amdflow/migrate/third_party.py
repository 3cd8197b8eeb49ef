"""Whose header is it that was not found, and what to do about it: here how to get one, else what dependencies.yaml says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from amdflow.migrate.dependencies import library_of_header


@dataclass(frozen=True)
class Library:
    """A library by its name, and what to do about it on ROCm."""

    name: str
    advice: str


_PYTORCH = Library(
    "PyTorch",
    "Compile inside an environment with PyTorch for ROCm and name its headers: --extra-arg=-I<torch>/include (see torch.utils.cpp_extension.include_paths()).",
)
_WINDOWS = Library("the Windows SDK", "It belongs to a branch for Windows, which is not compiled on Linux.")
_DRIVE = Library("NVIDIA's SDK for embedded platforms", "It has no counterpart on ROCm: leave this program out.")
_JIT = Library(
    "NVIDIA's run-time compilers", "hiprtc compiles at run time on ROCm; it takes HIP source, not PTX or NVVM IR."
)
_GRAPHICS = Library(
    "a graphics library", "Install its development package and name its folder with --extra-arg=-I<folder>."
)
_MPI = Library("MPI", "Install an MPI and name its headers: --extra-arg=-I<mpi>/include.")
_OWNERS: tuple[tuple[tuple[str, ...], Library], ...] = (
    (("torch/", "aten/", "c10/", "caffe2/"), _PYTORCH),
    (("windows.h", "winsock", "d3d", "dxgi", "directx", "wrl/", "d3dcompiler.h"), _WINDOWS),
    (("nvsci", "nvmedia", "cudla", "drm"), _DRIVE),
    (("nvvm.h", "nvjitlink.h", "nvptxcompiler.h", "llvm/"), _JIT),
    (("vulkan/", "gl/", "glut/", "gles", "egl/", "glfw", "x11/", "freeimage.h"), _GRAPHICS),
    (("mpi.h",), _MPI),
    (("triton/", "tvm/"), Library("a compiler framework", "Install its ROCm build and name its headers.")),
    (("boost/",), Library("Boost", "Install its development package; it does not depend on the GPU.")),
    (("eigen/", "eigen3/"), Library("Eigen", "Install it; it compiles for HIP as it is.")),
    (("opencv2/",), Library("OpenCV", "Install it; its CUDA modules have no ROCm build.")),
    (
        ("helper_", "exception.h"),
        Library("CUDA's samples", "Take their folder Common into the tree, so that it is translated too."),
    ),
)


def owner(header: str) -> Library | None:
    """The library that a header outside the tree belongs to, by its path as included; None for an unknown one."""
    path = re.sub(r"^(?:\.\.?/)+", "", header)
    known = next((library for starts, library in _OWNERS if path.lower().startswith(starts)), None)
    entry = library_of_header(path) if known is None else None
    return Library(entry.name, f"On ROCm {entry.stands} stands for it. {entry.note}".rstrip()) if entry else known
