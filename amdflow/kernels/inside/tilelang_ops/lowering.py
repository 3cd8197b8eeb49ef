"""TileLang sources to HIP C++ for an AMD target, or to C for the CPU; what a launch of the result needs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any


def load_module(path: str) -> ModuleType:
    """Import a kernel's file by its path."""
    spec = importlib.util.spec_from_file_location(f"kernel_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CpuDialect:
    """TileLang's language with the parts that need a GPU replaced, so that the same source runs as plain C.

    On-chip memory becomes local arrays, parallel loops become loops, and the functions its C code lacks become libm's.
    bfloat16 stays in tensors (rounded as on the card); on-chip it is float32, since C has no such type.
    """

    def __init__(self, language: Any) -> None:
        self._language = language

    def __getattr__(self, name: str) -> Any:
        return getattr(self._language, name)

    def alloc_shared(self, shape: Any, dtype: str, *_: Any, **__: Any) -> Any:
        """Allocate a local array."""
        return self._language.alloc_local(shape, "float32" if dtype == "bfloat16" else dtype)

    alloc_fragment = alloc_shared

    def Parallel(self, *extents: Any, **_: Any) -> Any:  # noqa: N802 - TileLang's own name
        """Loop over the extents."""
        return self._language.grid(*extents)

    def exp(self, value: Any) -> Any:
        """Call libm."""
        return self._language.call_extern("float32", "expf", value)

    def exp2(self, value: Any) -> Any:
        """Call libm."""
        return self._language.call_extern("float32", "exp2f", value)

    def log2(self, value: Any) -> Any:
        """Call libm."""
        return self._language.call_extern("float32", "log2f", value)

    def rsqrt(self, value: Any) -> Any:
        """Call libm."""
        return 1.0 / self._language.call_extern("float32", "sqrtf", value)


def language_for(target: str) -> Any:
    """The dialect a kernel is built with: ``cpu``, ``cuda``, or a gfx name."""
    if target.startswith("gfx"):
        import tilelang.rocm.language as language
    else:
        import tilelang.language as language
    return CpuDialect(language) if target == "cpu" else language


def compile_for_gpu(module: ModuleType, function: Any) -> Any:
    """TileLang's own compiler and launcher for ``function`` of a kernel's ``module``, for the GPU at hand."""
    import tilelang

    options = {"tl.enable_fast_math": True} if module.KERNEL.get("fast_math") else None
    return tilelang.compile(function, target="auto", pass_configs=options)


def hip_target(arch: str) -> Any:
    """TileLang's target for a gfx name, the same as it finds by itself where there is such a GPU."""
    from tilelang.backend.target import determine_target

    return determine_target({"kind": "hip", "mcpu": arch}, return_object=True)


def lower_hip(function: Any, arch: str) -> tuple[str, Any]:
    """HIP C++ of ``function`` for a gfx name, and the module of its device functions."""
    import tilelang

    target = hip_target(arch)
    with target:
        artifact = tilelang.lower(function, target=target)
    return artifact.kernel_source, artifact.device_mod


def lower_cpu(function: Any) -> tuple[str, Any]:
    """C of ``function`` (built with the CPU's dialect), and the module of its functions."""
    import tilelang
    from tilelang import tvm
    from tilelang.backend.module import create_backend_context
    from tilelang.engine.lower import device_codegen_without_compile, lower_to_host_device_ir

    assert tilelang is not None
    context = create_backend_context("c", None, "auto")
    with context.target, tvm.transform.PassContext(config={"tirx.disable_vectorize": True}):
        _, device, *_ = lower_to_host_device_ir(function, context)
        device = tvm.tirx.transform.BF16StorageLegalize()(device)  # C has no bfloat16: its bits travel as uint16
        return device_codegen_without_compile(device, context).inspect_source(), device


def describe(function: Any, device: Any) -> dict[str, Any]:
    """What a launch needs: symbol, parameters in order, grid (expressions over the scalars), threads, dynamic LDS in bytes.

    ``arguments`` names what the kernel's file lists, in its order; the device function has an order of its own.
    """
    tensors = {}
    for parameter in function.params:
        if parameter in function.buffer_map:
            buffer = function.buffer_map[parameter]
            tensors[str(buffer.name)] = {
                "kind": "tensor",
                "dtype": str(buffer.dtype),
                "shape": [_extent(extent) for extent in buffer.shape],
            }
    parameters = []
    for parameter in device.params:
        name = str(parameter.name)
        parameters.append({"name": name, **(tensors.get(name) or {"kind": "scalar", "dtype": str(parameter.dtype)})})
    attributes = dict(device.attrs.items())
    extents = {str(key): str(value) for key, value in dict(attributes.get("thread_extent", {})).items()}
    return {
        "symbol": str(attributes["global_symbol"]),
        "parameters": parameters,
        "arguments": [str(function.buffer_map.get(given, given).name) for given in function.params],
        "grid": [extents.get(f"blockIdx.{axis}", "1") for axis in "xyz"],
        "threads": [int(extents.get(f"threadIdx.{axis}", "1")) for axis in "xyz"],
        "dynamic_lds": int(attributes.get("dyn_shared_memory_buf", 0)),
    }


def _extent(extent: Any) -> int | str | dict[str, Any]:
    """A tensor's extent: a number, or {"symbol", "times"} for a size that is known at launch."""
    from tilelang import tvm

    if isinstance(extent, tvm.tirx.IntImm):
        return int(extent)
    if isinstance(extent, tvm.tirx.Var):
        return {"symbol": str(extent.name), "times": 1}
    if isinstance(extent, tvm.tirx.Mul):
        pair = (extent.a, extent.b) if isinstance(extent.a, tvm.tirx.Var) else (extent.b, extent.a)
        if isinstance(pair[0], tvm.tirx.Var) and isinstance(pair[1], tvm.tirx.IntImm):
            return {"symbol": str(pair[0].name), "times": int(pair[1])}
    return str(extent)
