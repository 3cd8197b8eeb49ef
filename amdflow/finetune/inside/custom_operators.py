"""Puts TileLang operators into the model that LLaMA-Factory has built, and proves that every chosen layer used them.

The order comes with the job: ``folder`` (holds the package ``tilelang_ops``), ``choice`` (operator -> ``all`` or a
regular expression of module names), ``where_possible`` (an operator that finds no module is left out, not refused) and
``before`` (calls that earlier attempts at the same training counted).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

PATIENCE = 10
"""Steps after which a layer that was never called will not be: the training ends then, not after hours."""
_NAMED = 3


class OperatorProblem(Exception):
    """A choice that finds nothing, or a chosen layer that does not use its operator."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class Operators:
    """The custom operators of one training process."""

    def __init__(self, order: Mapping[str, Any] | None) -> None:
        self.order = order or {"choice": {}, "where_possible": False}
        self.before: Mapping[str, Mapping[str, int]] = self.order.get("before", {})
        self.found: list[Any] = []
        self.left_out: dict[str, str] = {}
        """Operators that stand in no module of this model, with the reason."""

    def switch_on(self, model: Any) -> None:
        """Replace what was chosen, in place. Raises OperatorProblem naming an operator that finds no module."""
        choice = self.order["choice"]
        if not choice:
            return
        sys.path.insert(0, self.order["folder"])
        library = importlib.import_module("tilelang_ops")
        if not self.order["where_possible"]:
            try:
                self.found.append(library.replace_modules(model, choice))
            except ValueError as error:
                raise OperatorProblem(
                    str(error), "choose other modules, or leave the operator off; names look like " + _examples(model)
                ) from error
            return
        for op in library.REGISTRY:
            if op in choice:
                try:
                    self.found.append(library.replace_modules(model, {op: choice[op]}))
                except ValueError as error:
                    self.left_out[op] = str(error)
        if not self.found:
            raise OperatorProblem(
                "none of the operators finds a module in this model", "leave the key kernels out of the config"
            )

    def sentence(self) -> str:
        """Where the operators are, for a person."""
        places = [
            f"{op} in {len(names)} module{'s' * (len(names) > 1)}"
            for found in self.found
            for op, names in found.modules.items()
        ]
        return f"custom operators: {', '.join(places)}"

    def idle(self) -> str:
        """The layers that no step has called so far, in words; empty when there are none."""
        idle = [f"{op} in {name}" for op, name in self._idle()]
        more = f" and {len(idle) - _NAMED} more" if len(idle) > _NAMED else ""
        return ", ".join(idle[:_NAMED]) + more

    def check(self) -> None:
        """Raise OperatorProblem naming the chosen layers that no step has called so far."""
        idle = self.idle()
        if idle and not self.order["where_possible"]:
            raise OperatorProblem(
                f"chosen layers were never called: {idle}",
                "choose, by a regular expression, the modules that this training uses",
            )

    def report(self) -> list[dict[str, Any]]:
        """For each operator: its modules, how often each was called, and whether that was in a compiled graph."""
        rows = []
        for found in self.found:
            for op, names in found.modules.items():
                calls = {name: self._calls(found, op, name) for name in names}
                rows.append(
                    {
                        "op": op,
                        "modules": calls,
                        "calls": sum(calls.values()),
                        "compiled": sorted(found.traced.get(op, ())),
                        "declined": found.declined.get(op, {}),
                    }
                )
        return rows

    def origins(self) -> dict[str, str]:
        """Each kernel that was called, with its sizes -> loaded from a code object, or compiled here."""
        found: dict[str, str] = importlib.import_module("tilelang_ops.launch").origins() if self.found else {}
        return found

    def _calls(self, found: Any, op: str, name: str) -> int:
        return int(found.calls[op].get(name, 0)) + self.before.get(op, {}).get(name, 0)

    def _idle(self) -> list[tuple[str, str]]:
        return [
            (op, name)
            for found in self.found
            for op, names in found.modules.items()
            for name in names
            if not self._calls(found, op, name) and name not in found.traced.get(op, ()) and not _kept_aside(name)
        ]


def make_switch(operators: Operators, tell: Callable[..., None]) -> Any:
    """The callback that switches operators on in the trainer's model, before anything wraps that, and checks their use."""
    from transformers import TrainerCallback

    class Switch(TrainerCallback):  # type: ignore[misc]
        first = 0

        def on_init_end(self, _args: Any, _state: Any, _control: Any, model: Any = None, **_: Any) -> None:
            operators.switch_on(model)
            if operators.found:
                tell("note", text=operators.sentence())
                tell("usage", operators=operators.report())

        def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            self.first = state.global_step

        def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == self.first + PATIENCE:
                operators.check()
            if (
                operators.found and control.should_save
            ):  # said before it is saved: a training that is to stop ends there
                tell("usage", operators=operators.report())

        def on_train_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            if state.global_step > self.first:
                operators.check()
                if operators.idle():
                    tell("warning", text=f"this training never called {operators.idle()}")

    return Switch()


def _kept_aside(name: str) -> bool:
    """PEFT trains a copy of a module in ``modules_to_save`` and keeps the original, which nothing calls, beside it."""
    return ".original_module" in name


def _examples(model: Any) -> str:
    names = [name for name, _module in model.named_modules() if name.endswith(("mlp", "norm", "layernorm"))]
    return ", ".join(names[:2]) or type(model).__name__
