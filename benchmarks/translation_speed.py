"""How long translation takes: ``amdflow migrate --no-compile`` on a tree, beside hipify-clang alone, one process a file.

    python benchmarks/translation_speed.py CORPUS [--jobs 2] [--json result.json]

CORPUS is a folder of CUDA projects, taken as one tree. Both sides get the include paths, macros and standard that the
projects' build files name, and nothing is remembered from an earlier run. amdflow does more in its time: headers in
context, a second try for files that do not parse, the textual pass, fixes, rules, reports.

Wall seconds are what a person waits; processor seconds do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from amdflow import process
from amdflow.migrate.build_flags import BuildFlags
from amdflow.migrate.hipify import Hipify, Question
from amdflow.migrate.scan import Entry, scan
from amdflow.migrate.text import decode
from amdflow.migrate.translate import concerns_cuda
from amdflow.toolchain import Toolchain


@dataclass(frozen=True)
class Cost:
    """Seconds, of the clock and of the processors (children included)."""

    wall: float
    processor: float


def measured(work: Callable[[], None]) -> Cost:
    """What a piece of work costs."""
    wall, processor = time.monotonic(), _processor_seconds()
    work()
    return Cost(round(time.monotonic() - wall, 1), round(_processor_seconds() - processor, 1))


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def hipify_alone(corpus: Path, jobs: int) -> None:
    """One hipify-clang process for each file that concerns CUDA."""
    toolchain = Toolchain()
    rocm, cuda = toolchain.rocm(), toolchain.cuda_headers()
    tool = Hipify(rocm.needed_hipify().program, tuple(rocm.hipify_flags(cuda)), rocm.version)
    tree = scan(corpus)
    build = BuildFlags(tree)
    files = [entry for entry in tree.entries if entry.is_code]
    files = [entry for entry in files if concerns_cuda(entry, decode(entry.path.read_bytes()))]

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:

        def one(numbered: tuple[int, Entry]) -> bool:
            number, entry = numbered
            question = Question(entry.path, entry.path.parent, build.of(entry.path))
            return tool.convert(question, Path(folder) / str(number))[0].text is not None

        done = list(pool.map(one, enumerate(files)))
    print(f"  hipify-clang alone wrote {sum(done)} of {len(files)} files", file=sys.stderr)


def amdflow(corpus: Path, jobs: int) -> None:
    """The whole command, in a workspace of its own, so that nothing is remembered."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "amdflow", "migrate", str(corpus), "--no-compile", "--jobs", str(jobs), "--quiet"]
        here = Path(__file__).resolve().parent.parent
        process.run(argv, cwd=Path(folder), env={**os.environ, "PYTHONPATH": str(here)})
        manifest = json.loads((Path(folder) / "out" / "migrate" / "manifest.json").read_text(encoding="utf-8"))
    print(f"  amdflow: {manifest['metrics']['files_by_method']}, {manifest['metrics']['processes']}", file=sys.stderr)


def main() -> None:
    """Measure both, the tool alone first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    corpus = options.corpus.resolve()
    alone = measured(lambda: hipify_alone(corpus, options.jobs))
    whole = measured(lambda: amdflow(corpus, options.jobs))
    print(f"{'':22}{'wall s':>10}{'processor s':>14}")
    for name, cost in (("hipify-clang alone", alone), ("amdflow migrate", whole)):
        print(f"{name:22}{cost.wall:>10.1f}{cost.processor:>14.1f}")
    ratios = (whole.wall / alone.wall, whole.processor / alone.processor)
    print(f"{'ratio':22}{ratios[0]:>10.2f}{ratios[1]:>14.2f}")
    if options.json:
        figures = {"alone": vars(alone), "amdflow": vars(whole), "ratio": {"wall": ratios[0], "processor": ratios[1]}}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
