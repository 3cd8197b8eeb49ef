"""One rule, as its YAML file spells it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from amdflow.config import Model, nearest
from amdflow.findings import Effort, Severity
from amdflow.gpu.targets import TARGETS
from amdflow.migrate.rules.versions import parse_range


def _regular_expression(value: str) -> str:
    try:
        re.compile(value, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"not a valid regular expression ({error})") from error
    return value


def _target_or_family(value: str) -> str:
    families = {entry.family for entry in TARGETS.values()}
    valid = (*TARGETS, *sorted(families | {"CDNA", "RDNA"}))
    if value not in valid:
        raise ValueError(f"no such gfx target or family{nearest(value, valid)}")
    return value


def _rocm_range(value: str) -> str:
    if value:
        parse_range(value)
    return value


def _check_name(value: str) -> str:
    from amdflow.migrate.rules.checks import CHECKS

    if value not in CHECKS:
        raise ValueError(f"no such check{nearest(value, tuple(CHECKS))}; there are {', '.join(sorted(CHECKS))}")
    return value


CheckName = Annotated[str, AfterValidator(_check_name)]
Pattern = Annotated[str, AfterValidator(_regular_expression)]
TargetOrFamily = Annotated[str, AfterValidator(_target_or_family)]
RocmRange = Annotated[str, AfterValidator(_rocm_range)]


Category = Literal[
    "tool", "warp", "ptx", "kernel", "arch", "api", "library", "build", "kernels", "finetune", "export", "serve"
]
"""What a rule is about; the last four are the stages after the migration."""


class CodePattern(Model):
    """A pattern in code: comments, strings and include paths are blanked out before it is searched."""

    kind: Literal["code"]
    pattern: Pattern
    unless: Pattern = ""
    """Skip lines on which this is found too."""


class IncludePattern(Model):
    """A pattern in the path of an include directive."""

    kind: Literal["include"]
    pattern: Pattern


class ConditionPattern(Model):
    """A pattern in an ``#if``, ``#ifdef``, ``#ifndef`` or ``#elif`` line."""

    kind: Literal["condition"]
    pattern: Pattern
    unless: Pattern = ""
    """Skip conditions that this is found in too."""
    differs: bool = False
    """Only conditions that can come out otherwise without CUDA's macros than with those of CUDA 12 and a current GPU."""


class StringPattern(Model):
    """A pattern in a string literal that is not part of inline assembly."""

    kind: Literal["string"]
    pattern: Pattern


class CallPattern(Model):
    """A call: the whole name, some arguments by index, how many arguments."""

    kind: Literal["call"]
    name: Pattern
    arguments: dict[int, Pattern] = Field(default_factory=dict)
    holds: Pattern = ""
    """Found somewhere in the call, strings included."""
    fewer_than: int = 1000
    """Match calls with fewer arguments than this only."""


class BinaryPattern(Model):
    """An operation: patterns for both sides (searched), and its operators."""

    kind: Literal["binary"]
    left: Pattern = ""
    operators: tuple[str, ...]
    right: Pattern = ""


class ConstantPattern(Model):
    """A named constant: macro, const or constexpr variable, enumerator."""

    kind: Literal["constant"]
    name: Pattern
    value: Pattern
    """The whole value."""


class AsmPattern(Model):
    """Inline assembly in device code, by its text. A ``fallback`` rule takes what no other one takes."""

    kind: Literal["asm"]
    pattern: Pattern = ""
    fallback: bool = False


class BuildPattern(Model):
    """A pattern in a build file (CMake, make, setup.py), its comments blanked out."""

    kind: Literal["build"]
    pattern: Pattern
    files: Literal["any", "cmake", "make", "setup.py", "other"] = "any"
    """``other``: Meson, Bazel, pyproject.toml."""


class Check(Model):
    """A check written in Python, for what patterns cannot say."""

    kind: Literal["check"]
    name: CheckName


class FromStage(Model):
    """Not searched for: a stage reports it when it happens."""

    kind: Literal["stage"]


Detect = Annotated[
    CodePattern
    | IncludePattern
    | ConditionPattern
    | StringPattern
    | CallPattern
    | BinaryPattern
    | ConstantPattern
    | AsmPattern
    | BuildPattern
    | Check
    | FromStage,
    Field(discriminator="kind"),
]


class Example(Model):
    """Code before and after the fix."""

    before: str
    after: str


class Positive(Model):
    """Code in which the rule must be found, at these lines (from 1), and nowhere else."""

    code: str
    lines: tuple[int, ...]


class Samples(Model):
    """What the rule's own test runs on."""

    positive: tuple[Positive, ...] = ()
    negative: tuple[str, ...] = ()


class Rule(Model):
    """One numbered diagnostic."""

    id: str = Field(pattern=r"^AMF[0-9]{4}$|^[A-Z]{2,8}[0-9]{3,5}$")
    title: str
    category: Category
    severity: Severity
    effort: Effort
    message: str
    """Said at each place; ``{match}`` stands for the code found."""
    explanation: str
    fix: str
    example: Example | None = None
    reference: str = ""
    detect: Detect
    per: Literal["line", "file"] = "line"
    """Report each line, or one finding a file that counts them."""
    region: str = ""
    """Kind of kernel region worth rewriting, handed to the kernels stage."""
    fixed_by: str = ""
    """Id of the automatic fix that settles it at its line."""
    kept_by: str = ""
    """Id of the automatic fix that settles it throughout a file."""
    replaces: tuple[str, ...] = ()
    """Ids of rules that say less about the same line: they are not reported there."""
    wavefront: Literal[64, 32] | None = None
    """It matters only on targets with waves of this many lanes."""
    targets: tuple[TargetOrFamily, ...] = ()
    """It matters only on these: target names (gfx942) and families (CDNA3; CDNA and RDNA mean every generation)."""
    rocm: RocmRange = ""
    """It matters only with these versions of ROCm: ``>=7.0``, ``<7.13``, or several joined by commas."""
    samples: Samples = Samples()


class StandInEntry(Model):
    """What a CUDA name becomes, and the compatibility header (in ``amdflow/migrate/compat``) that has it."""

    use: str
    header: str


class LibraryEntry(Model):
    """What build scripts link for a CUDA library; with nothing given, nothing is needed."""

    link: str = ""
    target: str = ""
    package: str = ""


class RuleFile(Model):
    """A file in ``migration/rules``."""

    rules: tuple[Rule, ...] = ()
    names: dict[str, str] = Field(default_factory=dict)
    """CUDA names that hipify-clang's map lacks and that a plain rename settles."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers likewise; an empty text drops the directive."""
    namespaces: dict[str, str] = Field(default_factory=dict)
    """Namespaces likewise."""
    stand_ins: dict[str, StandInEntry] = Field(default_factory=dict)
    """Names that a compatibility header has."""
    libraries: dict[str, LibraryEntry] = Field(default_factory=dict)
    """CUDA's libraries in build scripts, without ``-l`` and ``CUDA::``."""
    nvcc_options: dict[str, str] = Field(default_factory=dict)
    """nvcc's options without their dashes (``name`` or ``name=value``), and what they become; empty drops one."""
    nvcc_values: dict[str, str] = Field(default_factory=dict)
    """The same for options with any value, which ``{value}`` stands for."""
