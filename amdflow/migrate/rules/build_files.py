"""Finds build rules in build files, line by line, comments left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from amdflow.migrate.rules.detect import Match
from amdflow.migrate.rules.model import BuildPattern, Rule

_OTHER_NAMES = frozenset({"meson.build", "pyproject.toml", "BUILD", "BUILD.bazel", "WORKSPACE", "MODULE.bazel"})
_COMMENT = re.compile(r"(?<![\\\w$({])#.*$")


def kind_of(name: str) -> str:
    """``cmake``, ``make``, ``setup.py``, ``other`` (Meson, Bazel, pyproject.toml), or empty for a file that holds data."""
    path = PurePosixPath(name)
    if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
        return "cmake"
    if path.name == "setup.py":
        return "setup.py"
    if path.name in _OTHER_NAMES or path.suffix == ".bzl":
        return "other"
    return "make" if path.suffix == ".mk" or path.name.lower().endswith("makefile") else ""


def detect_in_build_file(name: str, text: str, rules: Iterable[Rule]) -> list[Match]:
    """Matches in line order, each rule once a line."""
    kind = kind_of(name)
    chosen = [
        (rule, re.compile(rule.detect.pattern))
        for rule in rules
        if isinstance(rule.detect, BuildPattern) and rule.detect.files in ("any", kind)
    ]
    found = []
    for number, line in enumerate(text.split("\n"), 1) if kind else ():
        code = _COMMENT.sub("", line)
        for rule, pattern in chosen:
            match = pattern.search(code)
            if match:
                found.append(Match(rule, number, match.start() + 1, match.group().strip()))
    return found
