"""Calls kernels that were built ahead of time: code objects through HIP's module interface; no TileLang, no compiler.

Needs torch (for tensors and their stream) and HIP's runtime library; nothing else, so this file also works alone, beside
the folder that ``amdflow kernels export`` writes:

    import objects

    kernels = objects.Folder("kernel-objects")
    run = kernels.find("swiglu", "bfloat16", "gfx942")
    run(gate, up, y)  # what the kernel's file lists, in that order; enqueued on torch's current stream
"""

from __future__ import annotations

import ast
import ctypes
import json
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

INDEX = "index.json"
VERSION = 1
"""The major version of the index that this file reads."""
_FORMATS = {"int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d", "bool": "?"}
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 3
"""HIP_LAUNCH_PARAM_*: the arguments come as one block of bytes."""
_SIGNATURES: dict[str, list[Any]] = {
    "hipModuleLoad": [ctypes.c_void_p, ctypes.c_char_p],
    "hipModuleGetFunction": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p],
    "hipModuleLaunchKernel": [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3],
}


class ObjectError(RuntimeError):
    """A code object that cannot be used as asked; the message says what does not fit."""


class Folder:
    """A folder of code objects with its index."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            index = json.loads((self.path / INDEX).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ObjectError(f"{self.path} is no folder of kernel objects: {error}") from error
        version = str(index.get("version", ""))
        if index.get("schema") != "amdflow/kernel-objects" or version.partition(".")[0] != str(VERSION):
            raise ObjectError(f"{self.path / INDEX} is of version {version or 'none'}, this reads version {VERSION}")
        self.defaults: dict[str, dict[str, Any]] = index["defaults"]
        self.kernels: list[dict[str, Any]] = index["kernels"]

    def find(self, op: str, dtype: str, target: str, **sizes: Any) -> Kernel | None:
        """The kernel built for exactly these sizes; those not named have the value that the kernel's file gives them."""
        wanted = self.defaults.get(op, {}) | {name: value for name, value in sizes.items() if value is not None}
        for entry in self.kernels:
            if (entry["op"], entry["dtype"], entry["target"], entry["sizes"]) == (op, dtype, target, wanted):
                return Kernel(self.path / entry["code_object"], self._launch(entry))
        return None

    def _launch(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        launch: dict[str, Any] = json.loads((self.path / entry["launch"]).read_text(encoding="utf-8"))
        return launch


class Kernel:
    """One kernel, loaded onto a device when it is first called there."""

    def __init__(self, code_object: Path, launch: Mapping[str, Any]) -> None:
        self.code_object, self.description = code_object, launch
        self._functions: dict[int, ctypes.c_void_p] = {}

    def __call__(self, *values: Any) -> None:
        """Enqueue it on torch's current stream; ``values`` (tensors and numbers) in the order of its file.

        Raises ObjectError for a tensor of another shape, value type or device than it takes, or one with gaps.
        """
        import torch

        names = self.description["arguments"]
        if len(values) != len(names):
            raise ObjectError(f"{self.name} takes {len(names)} arguments ({', '.join(names)}), not {len(values)}")
        devices = {value.device for value in values if isinstance(value, torch.Tensor)}
        if len(devices) != 1:
            raise ObjectError(f"{self.name}: tensors on one device, not on {len(devices)}: {devices}")
        with torch.cuda.device(devices.pop()):
            device, stream = torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream
            self.launch(dict(zip(names, values, strict=True)), device=device, stream=stream)

    @property
    def name(self) -> str:
        """The kernel's symbol."""
        symbol: str = self.description["symbol"]
        return symbol

    def launch(self, values: Mapping[str, Any], *, device: int, stream: int) -> None:
        """Launch it on the current device, whose number is ``device``. Nothing happens where the grid is empty."""
        scalars = {**values, **sizes_of(self.description["parameters"], values)}
        grid = [evaluate(extent, scalars) for extent in self.description["grid"]]
        if not all(grid):
            return
        block = pack(self.description["parameters"], {**values, **scalars})
        size = ctypes.c_size_t(len(block))
        words = [_BUFFER_POINTER, ctypes.cast(block, ctypes.c_void_p).value, _BUFFER_SIZE, ctypes.addressof(size), _END]
        extra = (ctypes.c_void_p * len(words))(*words)
        shape = (*grid, *self.description["threads"], self.description["dynamic_lds"])
        _call("hipModuleLaunchKernel", self._function(device), *shape, stream, None, extra)

    def _function(self, device: int) -> ctypes.c_void_p:
        if device not in self._functions:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            _call("hipModuleLoad", ctypes.byref(module), str(self.code_object).encode())
            _call("hipModuleGetFunction", ctypes.byref(function), module, self.name.encode())
            self._functions[device] = function
        return self._functions[device]


def sizes_of(parameters: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, int]:
    """The sizes known at launch, read off the tensors' shapes.

    Raises ObjectError for a tensor of another shape or value type than the kernel was built for, or one with gaps.
    """
    found: dict[str, int] = {}
    tensors = [parameter for parameter in parameters if parameter["kind"] == "tensor"]
    for parameter in tensors:
        _check_type(parameter, values[parameter["name"]])
        for extent, declared in zip(values[parameter["name"]].shape, parameter["shape"], strict=True):
            if isinstance(declared, dict):
                found.setdefault(declared["symbol"], extent // declared["times"])
    for parameter in tensors:
        for extent, declared in zip(values[parameter["name"]].shape, parameter["shape"], strict=True):
            expected = found[declared["symbol"]] * declared["times"] if isinstance(declared, dict) else declared
            if isinstance(expected, str):
                expected = evaluate(expected, {**values, **found})
            if extent != expected:
                raise ObjectError(f"{parameter['name']} has extent {extent} where the kernel has {expected}")
    return found


def _check_type(parameter: Mapping[str, Any], tensor: Any) -> None:
    name, kind = parameter["name"], str(tensor.dtype).removeprefix("torch.")
    if kind != parameter["dtype"] or not tensor.is_contiguous():
        raise ObjectError(f"{name} is {kind}, the kernel takes {parameter['dtype']} without gaps")
    if len(tensor.shape) != len(parameter["shape"]):
        raise ObjectError(f"{name} has {len(tensor.shape)} dimensions, the kernel takes {len(parameter['shape'])}")


def pack(parameters: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> ctypes.Array[ctypes.c_char]:
    """The block of arguments: each at a multiple of its own size, as the compiler lays them out."""
    block = bytearray()
    for parameter in parameters:
        tensor = parameter["kind"] == "tensor"
        form = "P" if tensor else _FORMATS[parameter["dtype"]]
        value = values[parameter["name"]]
        block += bytes(-len(block) % struct.calcsize(form))
        block += struct.pack(form, value.data_ptr() if tensor else value)
    return ctypes.create_string_buffer(bytes(block), len(block))


def layout(parameters: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """(offset, size) in bytes of each argument in the block that :func:`pack` makes."""
    places, end = [], 0
    for parameter in parameters:
        size = struct.calcsize("P" if parameter["kind"] == "tensor" else _FORMATS[parameter["dtype"]])
        end += -end % size
        places.append((end, size))
        end += size
    return places


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "T.min": min, "T.max": max}


def evaluate(expression: str, sizes: Mapping[str, Any]) -> int:
    """The value of an extent: whole numbers, sizes, ``+ - * // %``, min and max. Raises ObjectError for anything else."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and isinstance(sizes.get(node.id), int):
            return int(sizes[node.id])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Call) and not node.keywords and ast.unparse(node.func) in _FUNCTIONS:
            return _FUNCTIONS[ast.unparse(node.func)](*map(value, node.args))
        raise ObjectError(f"cannot work out the extent {expression!r} from {', '.join(sizes)}")

    try:
        return value(_parsed(expression))
    except (SyntaxError, ZeroDivisionError) as error:
        raise ObjectError(f"cannot work out the extent {expression!r}: {error}") from error


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _call(name: str, *arguments: Any) -> None:
    library = _library()
    status = getattr(library, name)(*arguments)
    if status:
        text = library.hipGetErrorString(status) or b"unknown error"
        raise ObjectError(f"{name} failed: {text.decode()} ({status})")


@cache
def _library() -> ctypes.CDLL:
    """HIP's runtime: the one that this process has loaded with torch, else the one that the system finds.

    Two of them in one process would not know each other's streams.
    """
    maps = Path("/proc/self/maps")
    lines = maps.read_text(encoding="utf-8", errors="replace").splitlines() if maps.is_file() else []
    loaded = next((line.split(maxsplit=5)[5] for line in lines if "/libamdhip64.so" in line), "libamdhip64.so")
    try:
        library = ctypes.CDLL(loaded)
    except OSError as error:
        raise ObjectError(f"HIP's runtime library is not to be found: {error}") from error
    for name, arguments in _SIGNATURES.items():
        getattr(library, name).argtypes = arguments
    library.hipGetErrorString.restype = ctypes.c_char_p
    library.hipGetErrorString.argtypes = [ctypes.c_int]
    return library
