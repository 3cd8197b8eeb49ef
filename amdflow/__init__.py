"""CUDA to ROCm, end to end: migrate, build kernels, fine-tune, export, serve."""

__version__ = "0.1.0"
