"""Finds build rules in build files, line by line, comments left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from amdflow.migrate.rules.detect import Match
from amdflow.migrate.rules.model import BuildPattern, Rule
from amdflow.migrate.scan import is_cmake_file, is_makefile

_OTHER = re.compile(r"meson\.build|pyproject\.toml|BUILD(?:\.bazel)?|WORKSPACE|MODULE\.bazel|.+\.bzl")
_COMMENT = re.compile(r"(?<![\\\w$({])#.*$")


def kind_of(name: str) -> str:
    """``cmake``, ``make``, ``setup.py``, ``other`` (Meson, Bazel, pyproject.toml), or empty for a file that holds data."""
    file = PurePosixPath(name).name
    if is_cmake_file(file):
        return "cmake"
    if is_makefile(file):
        return "make"
    if file == "setup.py":
        return file
    return "other" if _OTHER.fullmatch(file) else ""


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
