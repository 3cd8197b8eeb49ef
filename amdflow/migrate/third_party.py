"""Whose header is it that was not found, and what stands for it on ROCm."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A library by its name, and what to do about it on ROCm."""

    name: str
    advice: str


_PYTORCH = Library(
    "PyTorch",
    "Compile inside an environment with PyTorch for ROCm and name its headers: --extra-arg=-I<torch>/include (see torch.utils.cpp_extension.include_paths()).",
)
_CUTLASS = Library(
    "CUTLASS",
    "CUTLASS has no ROCm build. Composable Kernel and hipBLASLt cover its matrix products; CuTe code is written anew.",
)
_WINDOWS = Library("the Windows SDK", "It belongs to a branch for Windows, which is not compiled on Linux.")
_NPP = Library(
    "NPP", "ROCm has no NPP. RPP and MIVisionX cover most of its image functions, rocPRIM its sums and minima."
)
_DRIVE = Library("NVIDIA's SDK for embedded platforms", "It has no counterpart on ROCm: leave this program out.")
_JIT = Library(
    "NVIDIA's run-time compilers", "hiprtc compiles at run time on ROCm; it takes HIP source, not PTX or NVVM IR."
)
_GRAPHICS = Library(
    "a graphics library", "Install its development package and name its folder with --extra-arg=-I<folder>."
)
_MPI = Library("MPI", "Install an MPI and name its headers: --extra-arg=-I<mpi>/include.")
_OWNERS: tuple[tuple[tuple[str, ...], Library], ...] = (
    (("torch/", "ATen/", "c10/", "caffe2/"), _PYTORCH),
    (("cutlass/", "cute/"), _CUTLASS),
    (("windows.h", "winsock", "d3d", "dxgi", "directx", "wrl/", "d3dcompiler.h"), _WINDOWS),
    (("npp",), _NPP),
    (("nvsci", "nvmedia", "cudla", "drm"), _DRIVE),
    (("nvvm.h", "nvjitlink.h", "nvptxcompiler.h", "llvm/"), _JIT),
    (("vulkan/", "gl/", "glut/", "gles", "egl/", "glfw", "x11/", "freeimage.h"), _GRAPHICS),
    (("mpi.h",), _MPI),
    (("nvjpeg",), Library("nvJPEG", "rocJPEG decodes JPEG on ROCm; its calls differ.")),
    (("nvcuvid", "cuviddec", "nvencodeapi"), Library("NVIDIA's video codec SDK", "rocDecode decodes video on ROCm.")),
    (("nvshmem",), Library("NVSHMEM", "rocSHMEM covers most of it; its names begin with rocshmem_.")),
    (("cudnn_frontend", "cudnn"), Library("cuDNN", "MIOpen stands for it; its interface is another one.")),
    (("nccl",), Library("NCCL", "RCCL stands for it, with the same calls: install rccl.")),
    (("optix",), Library("OptiX", "HIP RT traces rays on AMD GPUs; programs are written anew.")),
    (("tensorrt", "nvinfer"), Library("TensorRT", "MIGraphX and ONNX Runtime run models on ROCm.")),
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
    path = header.lower().removeprefix("./")
    while path.startswith("../"):
        path = path[3:]
    return next((library for starts, library in _OWNERS if path.startswith(tuple(map(str.lower, starts)))), None)
