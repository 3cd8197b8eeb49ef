"""One migration from start to end: the order of the steps, and what each hands to the next."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from amdflow import process
from amdflow.files import sha256_text
from amdflow.migrate import compat, evidence
from amdflow.migrate.api_map import ApiMap, export_map
from amdflow.migrate.build_flags import BuildFlags
from amdflow.migrate.build_scripts.convert import BuildScripts, convert_scripts
from amdflow.migrate.compile_check import CompileCheck, Compiler, Unit, UnitResult, depends_on
from amdflow.migrate.config import MigrateConfig
from amdflow.migrate.figures import Figures
from amdflow.migrate.finish import Finished, finish
from amdflow.migrate.fixes import FixContext
from amdflow.migrate.fixes.compat_headers import defined_names
from amdflow.migrate.fixes.fragments import needs_of_fragments
from amdflow.migrate.fixes.lane_masks import find_mask_names
from amdflow.migrate.fixes.logical_warps import own_warp_functions
from amdflow.migrate.fixes.wave_awareness import wave_aware_files
from amdflow.migrate.hipify import Hipify
from amdflow.migrate.include_graph import Digests, IncludeGraph
from amdflow.migrate.inspect_sources import Inspection, inspect_sources
from amdflow.migrate.lexer import mask
from amdflow.migrate.records import produced
from amdflow.migrate.records.apply import ByHand
from amdflow.migrate.records.record import Record
from amdflow.migrate.remembered import Remembered, code_stamp
from amdflow.migrate.rules.catalogue import Catalogue
from amdflow.migrate.scan import Entry, Kind, Tree
from amdflow.migrate.text import decode, encode, is_binary
from amdflow.migrate.textual import HeaderPlaces, TextMap
from amdflow.migrate.translate import Translation, Translator, concerns_cuda
from amdflow.pipeline.stage import Outcome, Run

_TEXT_LIMIT_BYTES = 16_000_000
_CACHE_DAYS = 30


@dataclass(frozen=True)
class Job:
    """The work order: what to migrate with which tools. ``rocm_include`` is the folder of ROCm's headers."""

    config: MigrateConfig
    tree: Tree
    targets: tuple[str, ...]
    jobs: int
    catalogue: Catalogue
    hipify: Hipify
    compiler: Compiler
    rocm_include: Path
    records: tuple[Record, ...] = ()
    """Manual changes to merge into the output."""


class Migration:
    """Runs the steps; every intermediate result is an attribute that later steps read."""

    def __init__(self, job: Job, tools: Mapping[str, str], run: Run) -> None:
        self.job, self.tools, self.run_context = job, tools, run
        self.started = time.monotonic()
        self.skipped: dict[str, str] = {}
        """Code that is carried over unread, and why."""
        self.by_hand = ByHand(job.records)

    def run(self) -> Outcome:
        """All steps in order."""
        self.run_context.cache.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(1, thread_name_prefix="inspect") as beside:
            inspecting = self._inspect_beside(beside)
            translations = self._translate()
            inspection = inspecting.result()
        finished = {**self._finish(translations), **self._convert_scripts()}
        finished = self.by_hand.merge_code(finished)
        self._write(finished)
        self.by_hand.merge_files(self.run_context.payload, finished)
        self._keep_produced(finished)
        results, check = self._compile(finished)
        _prune(self.run_context.cache)
        figures = Figures(self, translations, finished, results, inspection)
        figures.processes = {
            "hipify": self.translator.processes,
            "hipify_reused": self.translator.reused,
            "compile": check.processes,
            "compile_reused": check.reused,
        }
        return evidence.report(figures)

    @cached_property
    def code(self) -> list[Entry]:
        """Sources and headers that are text of a sane size."""
        return [entry for entry in self.job.tree.entries if entry.name in self.texts]

    @cached_property
    def texts(self) -> dict[str, str]:
        """Original texts by name."""
        found = {}
        for entry in self.job.tree.entries:
            if not entry.is_code:
                continue
            if entry.size > _TEXT_LIMIT_BYTES:
                self.skipped[entry.name] = f"it is larger than {_TEXT_LIMIT_BYTES // 1_000_000} MB"
                continue
            data = entry.path.read_bytes()
            if is_binary(data):
                self.skipped[entry.name] = "it holds NUL bytes (binary or UTF-16)"
            else:
                found[entry.name] = decode(data)
        return found

    def original(self, name: str) -> str:
        """Original text of a source, header or build script."""
        return self.texts[name] if name in self.texts else self.scripts.originals.get(name, "")

    @cached_property
    def scripts(self) -> BuildScripts:
        """Build scripts, converted where rules suffice."""
        return convert_scripts(self.job.tree, self.job.catalogue.build, self.job.targets)

    @cached_property
    def api(self) -> ApiMap:
        """The installed tool's own map."""
        hipify = self.job.hipify
        stamp = sha256_text(f"{hipify.version} {hipify.program} {hipify.program.stat().st_mtime_ns}")[:16]
        return export_map(hipify.program, self.run_context.cache / f"api-map-{stamp}.json")

    @cached_property
    def build(self) -> BuildFlags:
        """Flags from the project's build files."""
        return BuildFlags(self.job.tree)

    @cached_property
    def graph(self) -> IncludeGraph:
        """Includes between the tree's files."""
        return IncludeGraph(self.code, self.texts, self.job.tree.root, lambda path: self.build.of(path).folders)

    @cached_property
    def units(self) -> list[Entry]:
        """Sources that no other file includes and that have to do with CUDA."""
        return [
            entry
            for entry in self.code
            if entry.kind is Kind.SOURCE
            and entry.name not in self.graph.included
            and concerns_cuda(entry, self.texts[entry.name])
        ]

    @cached_property
    def translator(self) -> Translator:
        """The cascade."""
        return Translator(
            self.job.hipify, self.build, self.graph, self.texts, self.run_context, self.job.config.extra_args
        )

    def _inspect_beside(self, pool: ThreadPoolExecutor) -> Future[Inspection]:
        """Rules look at the sources while hipify-clang, in processes of its own, translates them."""
        job = self.job
        stamp = sha256_text(f"{job.catalogue.digest} {code_stamp()} {job.hipify.version}")
        remembered = Remembered(self.run_context.cache / "inspected", stamp)
        return pool.submit(inspect_sources, job.tree, job.catalogue, self.texts, self.api, self.scripts, remembered)

    def _translate(self) -> dict[str, Translation]:
        return self.translator.all(self.code, self.job.jobs)

    def _finish(self, translations: dict[str, Translation]) -> dict[str, Finished]:
        """Finished files; of the translations only how they were made is kept, since large trees have large texts."""
        text_map = TextMap(self.api, self.job.catalogue.supplement, HeaderPlaces(self.job.rocm_include))
        context = self._fix_context()
        units = {entry.name for entry in self.units}
        done = {}
        for name, translation in translations.items():
            process.check_cancelled()
            done[name] = finish(
                translation, self.texts[name], text_map, self.graph.resolved[name], context, unit=name in units
            )
            translations[name] = replace(translation, text="")
        return done

    def _convert_scripts(self) -> dict[str, Finished]:
        return {
            name: Finished(name, done.text, done.lines, done.applied) for name, done in self.scripts.converted.items()
        }

    def _fix_context(self) -> FixContext:
        stand_ins = self.job.catalogue.supplement.stand_ins
        masks = find_mask_names(mask(text) for text in self.texts.values() if "_sync" in text or "__syncwarp" in text)
        telling = (mask(text) for text in self.texts.values() if any(name in text for name in stand_ins))
        native = self.job.config.native_warp
        aware = frozenset() if native else wave_aware_files(self.texts, mask, self.graph.closure)
        context = replace(
            masks,
            mask_names=masks.mask_names if native or aware else frozenset(),
            own_names=defined_names(telling, stand_ins) | own_warp_functions(self.texts.values()),
            stand_ins=stand_ins,
            native_warps=native,
            wave_aware=aware,
        )
        return replace(context, fragment_needs=needs_of_fragments(self.texts, self.graph.resolved, context))

    def _write(self, finished: Mapping[str, Finished]) -> None:
        """The output tree: translated files, all others byte for byte, links as links; modes kept."""
        for entry in self.job.tree.entries:
            process.check_cancelled()
            if entry.name in self.by_hand.removed:
                continue
            target = self.run_context.payload / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            mine = finished.get(entry.name)
            if mine is None or mine.text == self.original(entry.name):
                shutil.copyfile(entry.path, target)
            else:
                target.write_bytes(encode(mine.text))
            shutil.copymode(entry.path, target)
            target.chmod(target.stat().st_mode | 0o600)
        for name in self.compat_headers(finished):
            target = self.run_context.payload / compat.FOLDER / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(compat.header(name), target)
        for name, destination in self.job.tree.links.items():
            link = self.run_context.payload / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(destination)

    def _keep_produced(self, finished: Mapping[str, Finished]) -> None:
        names = {entry.name for entry in self.job.tree.entries}
        names |= {f"{compat.FOLDER}/{name}" for name in self.compat_headers(finished)}
        produced.pack(self.run_context.scratch / produced.NAME, self.run_context.payload, names, self.by_hand.produced)

    @staticmethod
    def compat_headers(finished: Mapping[str, Finished]) -> list[str]:
        """Compatibility headers that the output needs."""
        return sorted(compat.with_dependencies({name for done in finished.values() for name in done.compat}))

    def _compile(self, finished: Mapping[str, Finished]) -> tuple[dict[str, UnitResult], CompileCheck]:
        extra = self.job.config.extra_args
        check = CompileCheck(
            self.job.compiler, self.job.tree.root, self.run_context.payload, self.run_context, self.job.targets, extra
        )
        if not self.job.config.compile or not self.units:
            return {}, check
        digests = Digests(self.graph, {name: done.text for name, done in finished.items()})
        ours = [compat.header(name).read_text(encoding="utf-8") for name in self.compat_headers(finished)]
        units = []
        stamps = self.by_hand.stamps(finished)
        for entry in self.units:
            if entry.name in self.by_hand.removed:
                continue
            flags = self.translator.flags(entry)
            digest = digests.of(
                (entry.name,), *depends_on(self.job.compiler, self.job.targets, flags, extra), *stamps, *ours
            )
            outside = self.graph.outside_folders(entry.name)
            units.append(Unit(entry.name, self.run_context.payload / entry.name, flags, digest, outside))
        return check.all(units, self.job.jobs), check


def _prune(cache: Path) -> None:
    """Forget answers that no run has wanted for a month."""
    horizon = time.time() - _CACHE_DAYS * 86_400
    for folder in (cache / "hipify", cache / "compiled"):
        for kept in os.scandir(folder) if folder.is_dir() else ():
            if kept.stat().st_mtime < horizon:
                os.unlink(kept.path)
