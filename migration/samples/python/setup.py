"""Builds fusedops_torch, the PyTorch binding. In the folder above: pip install --no-build-isolation ./python."""

from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

setup(
    name="fusedops_torch",
    version="0.1.0",
    ext_modules=[
        CUDAExtension(
            name="fusedops_torch",
            sources=["binding.cpp", "torch_ops.cu", *(f"../src/{name}.cu" for name in ("rmsnorm", "softmax", "swiglu"))],
            include_dirs=[str(ROOT / "include")],
            extra_compile_args={
                "cxx": ["-O3", "-std=c++17"],
                "nvcc": ["-O3", "-std=c++17", "--expt-relaxed-constexpr", "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"],
            },
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
