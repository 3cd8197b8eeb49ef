"""What stands around a scaffold's code: the comment at its top, README.md, Makefile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from amdflow.findings import Finding
from amdflow.migrate.scaffold.flagged import Flagged
from amdflow.migrate.scaffold.program import CODE_NAME, SUPPORT_NAME
from amdflow.report.markdown import code, escape


def head(flagged: Flagged) -> str:
    """The comment at the top of the program."""
    rows = [
        f"// Test program for {flagged.name}() of {flagged.file}:{flagged.first}. Its code, and what that needs, is in {CODE_NAME}.",
        "// Fill in 1 and write 2; then `make run` compares. README.md says what was found and how to fix it.",
        *(
            f"//   {finding.id} line {finding.line}: {' '.join((finding.title or finding.message).split())}"
            for finding in flagged.findings
        ),
    ]
    return "\n".join(rows) + "\n"


def readme(flagged: Flagged, program: str, targets: Sequence[str], flags: Sequence[str]) -> str:
    """README.md of a scaffold."""
    compile_line = f"hipcc {' '.join(f'--offload-arch={target}' for target in targets[:1])} {' '.join(flags)} {program} -o {Path(program).stem}"
    target = targets[0] if targets else "gfx942"
    steps = [
        f"1. `{CODE_NAME}` holds the migrated function between `>>>>` and `<<<<`, and before it what it needs of the tree. Work there.",
        f"2. `{program}`: fill in the inputs, and write `reference()`, what the function computed on CUDA, in plain C++.",
        "   Until it is written the program ends with status 77 and says so.",
        "3. Compile and run on the GPU that you port to:",
        f"\n       make run TARGET={target}\n\n   or by hand:\n\n       {compile_line}\n",
        "4. Carry the function back into the migrated tree. `amdflow scaffold` never overwrites a file that was edited, except with `--force`.",
    ]
    parts = [
        f"# {escape(flagged.name)}, from {code(flagged.file)} lines {flagged.first} to {flagged.last}",
        "Line numbers are those of the original file.",
        "## What was found in it",
        "\n".join(_finding(finding) for finding in flagged.findings) or "Nothing: the function was asked for by name.",
        "## How to work on it",
        "\n".join(steps),
    ]
    return "\n\n".join(parts) + "\n"


def _finding(finding: Finding) -> str:
    fix = f"\n  Fix ({finding.effort}): {escape(finding.fix)}" if finding.fix else ""
    return f"- line {finding.line}: **{finding.severity}** {finding.id} {escape(finding.message)}{fix}\n  More: `amdflow explain {finding.id}`"


def makefile(program: str, targets: Sequence[str], flags: Sequence[str]) -> str:
    """Makefile of a scaffold; HIPCC, TARGET and FLAGS can be set on the command line."""
    name = Path(program).stem
    return (
        f"# make, make run, make TARGET=gfx1100\nHIPCC ?= hipcc\nTARGET ?= {targets[0] if targets else 'gfx942'}\n"
        f"FLAGS ?= {' '.join(word.replace('$', '$$') for word in flags)}\n\n"
        f"{name}: {program} {CODE_NAME} {SUPPORT_NAME}\n\t$(HIPCC) --offload-arch=$(TARGET) -O2 $(FLAGS) {program} -o $@\n\n"
        f"run: {name}\n\t./{name}\n\n.PHONY: run\n"
    )


def relative_flags(
    folder: Path, folders: Sequence[Path], macros: Sequence[str], forced: Sequence[str], standard: str
) -> list[str]:
    """Compiler flags with include folders relative to the scaffold's own."""
    words = [f"-std={standard}"]
    words += [f"-I{os.path.relpath(path, folder)}" for path in folders]
    words += [f"-D{macro}" for macro in macros]
    return [*words, *(word for name in forced for word in ("-include", name))]
