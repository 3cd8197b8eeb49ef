"""All build scripts of a tree: read, converted where rules suffice, with what is known of one told to the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from amdflow import process
from amdflow.migrate import keep
from amdflow.migrate.build_scripts.cmake import convert_cmake
from amdflow.migrate.build_scripts.cmake_tree import CMakeTree
from amdflow.migrate.build_scripts.edits import Converted
from amdflow.migrate.build_scripts.make import convert_makefile
from amdflow.migrate.build_scripts.setup_py import convert_setup
from amdflow.migrate.build_scripts.tables import BuildTables
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.rules.build_files import kind_of
from amdflow.migrate.scan import Kind, Tree
from amdflow.migrate.text import decode, is_binary

_LIMIT_BYTES = 2_000_000


@dataclass
class BuildScripts:
    """Build scripts by name: their original text, and what each became where it changed."""

    originals: dict[str, str] = field(default_factory=dict)
    converted: dict[str, Converted] = field(default_factory=dict)

    def current(self, name: str) -> Converted:
        """The script as it will be written."""
        text = self.originals[name]
        return self.converted.get(name) or Converted(text, (), LineMap(text, text))


def convert_scripts(tree: Tree, tables: BuildTables, targets: Sequence[str]) -> BuildScripts:
    """Read and convert. ``targets`` are gfx names; scripts larger than 2 MB and binary ones are left out."""
    scripts = BuildScripts()
    for entry in tree.entries:
        if entry.kind is Kind.BUILD and entry.size < _LIMIT_BYTES and kind_of(entry.name):
            data = entry.path.read_bytes()
            if not is_binary(data):
                scripts.originals[entry.name] = decode(data)
    cmake_files = {name: text for name, text in scripts.originals.items() if kind_of(name) == "cmake"}
    sources = [entry.name for entry in tree.entries if entry.name.endswith(".cu")]
    converters: dict[str, Callable[[str, str, BuildTables, Sequence[str]], Converted | None]] = {
        "make": convert_makefile,
        "cmake": partial(convert_cmake, tree=CMakeTree(cmake_files, sources, tables)),
        "setup.py": convert_setup,
    }
    for name, text in scripts.originals.items():
        process.check_cancelled()
        converter = converters.get(kind_of(name))
        kept = keep.find(text, build_file=True)
        done = converter(name, kept.blanked, tables, targets) if converter else None
        restored = keep.restore(kept, done.text, build_file=True) if done else None
        if done is not None and restored is not None and restored != text:
            scripts.converted[name] = replace(done, text=restored)
    return scripts
