"""What a launch hands over: extents, the block of arguments, checks of the tensors. No card, no torch, no HIP."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amdflow.kernels.artifacts import argument_problem, loader
from amdflow.kernels.code_object import Resources

objects = loader()


@dataclass
class Tensor:
    """As much of torch's tensor as the loader looks at."""

    shape: tuple[int, ...]
    dtype: str = "torch.bfloat16"
    address: int = 0x7F00_0000_1000
    gaps: bool = False

    def is_contiguous(self) -> bool:
        return not self.gaps

    def data_ptr(self) -> int:
        return self.address


def tensor(name: str, *shape: Any, dtype: str = "bfloat16") -> dict[str, Any]:
    return {"name": name, "kind": "tensor", "dtype": dtype, "shape": list(shape)}


def scalar(name: str, dtype: str) -> dict[str, Any]:
    return {"name": name, "kind": "scalar", "dtype": dtype}


def size(symbol: str, times: int = 1) -> dict[str, Any]:
    return {"symbol": symbol, "times": times}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1", 1),
        ("rows", 77),
        ("(rows + 63) // 64", 2),
        ("(q + 15) // 16 + (k + 15) // 16", 3),
        ("min(rows, 8) * max(2, q) - rows % 10", 8 * 20 - 7),
        ("T.min(rows, 8)", 8),
    ],
)
def test_extents_are_worked_out(expression: str, value: int) -> None:
    assert objects.evaluate(expression, {"rows": 77, "q": 20, "k": 5}) == value


@pytest.mark.parametrize(
    "expression",
    [
        "missing + 1",
        "__import__('os')",
        "rows.real",
        "rows if rows else 1",
        "1.5",
        "rows // 0",
        "(",
        "rows ** 9",
        "eps",
    ],
)
def test_anything_else_is_refused(expression: str) -> None:
    with pytest.raises(objects.ObjectError, match="cannot work out"):
        objects.evaluate(expression, {"rows": 77, "eps": 1e-5})


def test_the_block_is_laid_out_as_the_compiler_does_it() -> None:
    parameters = [
        tensor("x", size("rows"), 8),
        scalar("period", "int32"),
        tensor("y", size("rows"), 8),
        scalar("eps", "float32"),
        scalar("count", "int64"),
        scalar("factor", "float64"),
        scalar("on", "bool"),
        scalar("rows", "int32"),
    ]
    values = {"x": Tensor((3, 8)), "y": Tensor((3, 8), address=0x20), "period": -5, "eps": 0.25}
    values |= {"count": 1 << 40, "factor": 0.1, "on": True, "rows": 3}
    assert bytes(objects.pack(parameters, values)) == struct.pack(
        "<Qi4xQf4xqd?3xi", 0x7F00_0000_1000, -5, 0x20, 0.25, 1 << 40, 0.1, True, 3
    )
    assert objects.layout(parameters) == [(0, 8), (8, 4), (16, 8), (24, 4), (32, 8), (40, 8), (48, 1), (52, 4)]


PARAMETERS = [
    tensor("x", size("rows"), size("width8", 8)),
    tensor("offsets", "(rows + 31) // 32", dtype="int32"),
    scalar("rows", "int32"),
]


def test_sizes_are_read_off_the_shapes() -> None:
    found = objects.sizes_of(PARAMETERS, {"x": Tensor((70, 24)), "offsets": Tensor((3,), "torch.int32")})
    assert found == {"rows": 70, "width8": 3}


@pytest.mark.parametrize(
    ("x", "offsets", "complaint"),
    [
        (Tensor((70, 25)), Tensor((3,), "torch.int32"), "x has extent 25 where the kernel has 24"),
        (Tensor((70, 24)), Tensor((4,), "torch.int32"), "offsets has extent 4 where the kernel has 3"),
        (Tensor((70, 24), "torch.float16"), Tensor((3,), "torch.int32"), "x is float16, the kernel takes bfloat16"),
        (Tensor((70, 24), gaps=True), Tensor((3,), "torch.int32"), "without gaps"),
        (Tensor((70, 24, 1)), Tensor((3,), "torch.int32"), "x has 3 dimensions, the kernel takes 2"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(x: Tensor, offsets: Tensor, complaint: str) -> None:
    with pytest.raises(objects.ObjectError, match=complaint):
        objects.sizes_of(PARAMETERS, {"x": x, "offsets": offsets})


@dataclass
class Shelf:
    """A folder with an index of one kernel in two sizes."""

    path: Path
    index: dict[str, Any] = field(default_factory=dict)

    def write(self) -> None:
        (self.path / "index.json").write_text(json.dumps(self.index))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    common = {"op": "rms_norm", "dtype": "bfloat16", "target": "gfx942", "launch": "launch.json"}
    entries = [
        {**common, "sizes": {"hidden": 4096, "residual": residual}, "code_object": f"{residual}.co"}
        for residual in (False, True)
    ]
    (tmp_path / "launch.json").write_text('{"symbol": "rms_norm_kernel"}')
    found = Shelf(tmp_path, {"schema": "amdflow/kernel-objects", "version": "1.3", "kernels": entries})
    found.index["defaults"] = {"rms_norm": {"residual": False}}
    found.write()
    return found


def test_a_kernel_is_found_by_all_its_sizes_those_by_default_included(shelf: Shelf) -> None:
    folder = objects.Folder(shelf.path)
    plain = folder.find("rms_norm", "bfloat16", "gfx942", hidden=4096, residual=None)
    assert (plain.code_object.name, plain.name) == ("False.co", "rms_norm_kernel")
    assert folder.find("rms_norm", "bfloat16", "gfx942", hidden=4096, residual=True).code_object.name == "True.co"
    for op, dtype, target, hidden in (
        ("rope", "bfloat16", "gfx942", 4096),
        ("rms_norm", "float16", "gfx942", 4096),
        ("rms_norm", "bfloat16", "gfx90a", 4096),
        ("rms_norm", "bfloat16", "gfx942", 2048),
    ):
        assert folder.find(op, dtype, target, hidden=hidden) is None


def test_a_newer_index_or_none_is_refused(shelf: Shelf) -> None:
    shelf.index["version"] = "2.0"
    shelf.write()
    with pytest.raises(objects.ObjectError, match=r"of version 2.0, this reads version 1"):
        objects.Folder(shelf.path)
    (shelf.path / "index.json").unlink()
    with pytest.raises(objects.ObjectError, match="no folder of kernel objects"):
        objects.Folder(shelf.path)


LAUNCH = {"parameters": [tensor("x", 8), scalar("rows", "int32")]}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((("global_buffer", 0, 8), ("by_value", 8, 4)), ""),
        ((("global_buffer", 0, 8),), "is described with 2 arguments, its code object takes 1"),
        ((("by_value", 0, 4), ("global_buffer", 8, 8)), "x as global_buffer of 8 bytes at 0, its code object has by_v"),
        ((("global_buffer", 0, 8), ("by_value", 8, 8)), "rows as by_value of 4 bytes at 8, its code object has by_val"),
    ],
)
def test_a_description_that_the_code_object_contradicts(
    takes: Any, arguments: tuple[tuple[str, int, int], ...], complaint: str
) -> None:
    resources: Resources = takes(arguments=arguments)
    found = argument_problem(LAUNCH, resources)
    assert found == "" if not complaint else complaint in found


def test_an_argument_that_cannot_be_handed_over(takes: Any) -> None:
    assert "of type float128" in argument_problem({"parameters": [scalar("a", "float128")]}, takes())
