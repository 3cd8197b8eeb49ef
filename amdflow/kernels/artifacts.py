"""What a process without TileLang loads: code objects, their launch descriptions and an index of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from amdflow.files import canonical_json
from amdflow.kernels.build import LAUNCH, OBJECT, Built
from amdflow.kernels.code_object import Resources
from amdflow.kernels.item import SCRIPTS, Item, alone

LOADER = SCRIPTS / "tilelang_ops" / "objects.py"
INDEX = "index.json"
SCHEMA = "amdflow/kernel-objects"


def loader() -> ModuleType:
    """The module that launches code objects."""
    return alone(LOADER)


def argument_problem(launch: Mapping[str, Any], resources: Resources) -> str:
    """What differs between the block of arguments that a launch would hand over and the one the code object reads; or nothing."""
    try:
        places = loader().layout(launch["parameters"])
    except KeyError as error:
        return f"takes an argument of type {error.args[0]}, which a launch cannot hand over"
    kinds = ["global_buffer" if one["kind"] == "tensor" else "by_value" for one in launch["parameters"]]
    described = [(kind, *place) for kind, place in zip(kinds, places, strict=True)]
    compiled = list(resources.arguments)
    if len(described) != len(compiled):
        return f"is described with {len(described)} arguments, its code object takes {len(compiled)}"
    for parameter, ours, theirs in zip(launch["parameters"], described, compiled, strict=True):
        if ours != theirs:
            return f"is described with {parameter['name']} as {_words(ours)}, its code object has {_words(theirs)}"
    return ""


def _words(argument: tuple[str, int, int]) -> str:
    kind, offset, size = argument
    return f"{kind} of {size} bytes at {offset}"


def build_index(built: Sequence[Built], tools: Mapping[str, str]) -> dict[str, Any]:
    """The index of a folder that holds ``built`` as ``<target>/<variant>/``."""
    kernels = {one.item.kernel.op: one.item.kernel for one in built}
    entries = [
        {
            "op": one.item.kernel.op,
            "dtype": one.item.dtype,
            "target": one.item.target,
            "sizes": full_sizes(one.item),
            "code_object": f"{one.item.name}/{OBJECT}",
            "launch": f"{one.item.name}/{LAUNCH}",
        }
        for one in built
    ]
    return {
        "schema": SCHEMA,
        "version": f"{loader().VERSION}.0",
        "tools": dict(tools),
        "defaults": {op: kernel.size_defaults for op, kernel in sorted(kernels.items())},
        "kernels": sorted(entries, key=canonical_json),
    }


def full_sizes(item: Item) -> dict[str, Any]:
    """The sizes an item is built with, those included that its kernel's file fixes by default."""
    return {**item.kernel.size_defaults, **item.sizes}
