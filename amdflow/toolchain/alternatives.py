"""What to say where amdflow cannot install a tool by itself."""

from __future__ import annotations

ROCM_BY_HAND = (
    "install ROCm with hipify-clang another way: AMD's packages (rocm-hip-sdk, hipify-clang), the rocm-sdk wheels "
    "(`pip install rocm[libraries,devel]`), or run amdflow in a ROCm container; then set ROCM_PATH"
)
SGLANG_ON_ROCM = (
    "use an image lmsysorg/sglang:<version>-rocm<version>-mi30x (or -mi35x), or build SGLang from source with its "
    "pyproject_other.toml and the extra all_hip; then set `toolchain: {serve: PYTHON}` in amdflow.yaml to that environment's interpreter"
)
