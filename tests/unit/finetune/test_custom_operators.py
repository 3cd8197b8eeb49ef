"""What the training process makes of a choice: proof of use by layer, across attempts and compiled graphs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from amdflow.finetune import training

FILE = Path(training.__file__).parent / "inside" / "custom_operators.py"


@pytest.fixture
def inside() -> ModuleType:
    """The module as the training process imports it: by its file's name."""
    spec = importlib.util.spec_from_file_location("custom_operators", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def at_work(inside: ModuleType, calls: dict[str, int], traced: tuple[str, ...] = (), **order: Any) -> Any:
    """Operators whose library counted these calls; a layer that nothing calls cannot be made with a real model."""
    found = SimpleNamespace(
        modules={"swiglu": list(calls)},
        calls={"swiglu": calls},
        traced={"swiglu": set(traced)},
        declined={"swiglu": {}},
    )
    operators = inside.Operators({"choice": {"swiglu": "all"}, "where_possible": False, **order})
    operators.found.append(found)
    return operators


def test_layers_that_were_never_called_are_named(inside: ModuleType) -> None:
    operators = at_work(inside, {f"layers.{n}.mlp": 0 for n in range(5)} | {"layers.9.mlp": 4})
    with pytest.raises(inside.OperatorProblem) as caught:
        operators.check()
    assert caught.value.message == (
        "chosen layers were never called: swiglu in layers.0.mlp, swiglu in layers.1.mlp, swiglu in layers.2.mlp and 2 more"
    )


def test_a_layer_in_a_compiled_graph_or_called_before_the_last_interruption_was_used(inside: ModuleType) -> None:
    calls = {"a": 0, "b": 0, "c": 1}
    operators = at_work(inside, calls, traced=("a",), before={"swiglu": {"b": 7, "c": 2}})
    operators.check()
    (row,) = operators.report()
    assert row["modules"] == {"a": 0, "b": 7, "c": 3}
    assert (row["calls"], row["compiled"]) == (10, ["a"])


def test_all_that_is_possible_may_hold_layers_that_this_training_does_not_use(inside: ModuleType) -> None:
    operators = at_work(inside, {"a": 0, "b": 1}, where_possible=True)
    operators.check()
    assert operators.idle() == "swiglu in a"


def test_the_original_of_a_module_that_peft_trains_a_copy_of_is_not_waited_for(inside: ModuleType) -> None:
    at_work(inside, {"norm.modules_to_save.default": 2, "norm.original_module": 0}).check()


def test_without_a_choice_nothing_is_imported(inside: ModuleType) -> None:
    for order in (None, {"choice": {}, "folder": "/nowhere", "where_possible": False}):
        operators = inside.Operators(order)
        operators.switch_on(object())
        operators.check()
        assert operators.report() == []
    assert "/nowhere" not in sys.path
