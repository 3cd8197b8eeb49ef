"""Where an operator is put to work in a model: one module, its surroundings, and a count of the operator's calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

Forward = Callable[..., Any]


class Declined(Exception):
    """A module of a known class that does not do what the operator does; the text says what differs."""


@dataclass
class Replaced:
    """What came of a choice, by operator and by the module's name."""

    modules: dict[str, list[str]] = field(default_factory=dict)
    """Where each operator is at work now."""
    calls: dict[str, dict[str, int]] = field(default_factory=dict)
    """How often each operator was called in each module since (outside of compiled graphs)."""
    traced: dict[str, set[str]] = field(default_factory=dict)
    """Modules in which each operator became part of a compiled graph."""
    declined: dict[str, dict[str, str]] = field(default_factory=dict)
    """Modules of a known class that were left as they are, with the reason."""


@dataclass(frozen=True)
class Site:
    """A module that an operator may stand in."""

    model: torch.nn.Module
    name: str
    module: Any
    calls: dict[str, int]
    note: Callable[[], None]
    """Puts down, once a trace, that the operator is part of a graph."""

    def count(self) -> None:
        """Count a call of the operator; while a graph is traced just note it: a changing count would make that anew each time."""
        if torch.compiler.is_compiling():
            self.note()
        else:
            self.calls[self.name] = self.calls.get(self.name, 0) + 1

    def parent(self, levels: int = 1) -> Any:
        """The module ``levels`` above this one."""
        return self.model.get_submodule(".".join(self.name.split(".")[:-levels]))


Work = TypeVar("Work", bound=Callable[..., Any])


def while_tracing(work: Work) -> Work:
    """Let ``work`` be done when a graph is traced that calls it, and leave nothing of it in the graph.

    What torch.compiler.assume_constant_result does, without the seconds that importing the compiler takes.
    """
    work._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return work


def noting(traced: set[str], name: str) -> Callable[[], None]:
    """What adds ``name`` to ``traced`` while a graph is traced."""
    return while_tracing(lambda: traced.add(name))


def always(build: Callable[[Any], Forward]) -> Callable[[Site], Forward]:
    """The replacement of a whole module by what ``build`` makes of it: every call of the module is one of the operator."""

    def replacement(site: Site) -> Forward:
        forward = build(site.module)

        def counted(*arguments: Any) -> Any:
            site.count()
            return forward(*arguments)

        counted.count = site.count  # type: ignore[attr-defined]
        return counted

    return replacement
