"""What CUDA names become, as the installed hipify-clang itself tells it.

The tool exports its tables as CSV (every CUDA name with versions and its HIP name) and its substitutions as a script;
both together are the map that the textual pass and ``amdflow lookup`` use.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from amdflow import process
from amdflow.errors import AmdflowError
from amdflow.files import write_atomic

_COLUMNS = 12
_NAME = re.compile(r"[A-Za-z_]\w*")
_SUBSTITUTION = re.compile(r'\bsubst\("([^"]+)", "([^"]*)", "(\w+)"\);')
_SECTION = re.compile(r"^\d+\. (.+)$")


@dataclass(frozen=True, slots=True)
class Api:
    """One CUDA name as the tool's tables describe it. ``hip`` is empty where HIP has nothing; versions are texts such as ``12.0``."""

    name: str
    hip: str
    table: str
    section: str
    cuda_added: str = ""
    cuda_deprecated: str = ""
    cuda_removed: str = ""
    hip_added: str = ""
    hip_deprecated: str = ""
    hip_experimental: bool = False


@dataclass(frozen=True)
class ApiMap:
    """CUDA names to HIP names, headers to headers, and the names HIP does not have."""

    names: Mapping[str, str]
    headers: Mapping[str, str]
    """A header that HIP does not need maps to the empty text."""
    unsupported: frozenset[str]

    def save(self, path: Path) -> None:
        """Write as JSON."""
        write_atomic(
            path, json.dumps({"names": self.names, "headers": self.headers, "unsupported": sorted(self.unsupported)})
        )

    @classmethod
    def load(cls, path: Path) -> ApiMap:
        """Read what :meth:`save` wrote; OSError, ValueError or KeyError when that is not what is there."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(data["names"], data["headers"], frozenset(data["unsupported"]))


def export_map(hipify: Path, cache: Path) -> ApiMap:
    """The map of the tool at ``hipify``, kept in ``cache`` (a file whose name changes with the tool's version)."""
    if cache.is_file():
        try:
            return ApiMap.load(cache)
        except (OSError, ValueError, KeyError):
            cache.unlink()
    apis = export_tables(hipify)
    names, headers = _substitutions(hipify)
    for api in apis:
        if api.hip:
            names.setdefault(api.name, api.hip)
    unsupported = frozenset(api.name for api in apis if not api.hip and api.name not in names)
    made = ApiMap(names, headers, unsupported)
    made.save(cache)
    return made


def export_tables(hipify: Path) -> list[Api]:
    """Every row of the tool's tables, in their order."""
    with tempfile.TemporaryDirectory(prefix="amdflow-") as folder:
        process.run([str(hipify), "--csv", "--doc-format=full"], cwd=Path(folder), timeout=120)
        found = [api for path in sorted(Path(folder).glob("*.csv")) for api in _read_table(path)]
    if not found:
        raise AmdflowError(
            f"{hipify} exported no tables", hint="amdflow doctor says whether this hipify-clang is whole"
        )
    return found


def api_json(api: Api) -> dict[str, object]:
    """Plain JSON values, empty ones left out."""
    return {key: value for key, value in asdict(api).items() if value not in ("", False)} | {"hip": api.hip or None}


def _read_table(path: Path) -> list[Api]:
    table = path.stem.replace("_supported_by_HIP", "").replace("_", " ")
    section, rows = "", []
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream):
            if len(row) < _COLUMNS:
                title = _SECTION.match(",".join(row).strip())
                section = title.group(1) if title else section
            elif _NAME.fullmatch(row[0].strip()) and row[0] != "CUDA":
                cell = [text.strip() for text in row]
                rows.append(
                    Api(cell[0], cell[5], table, section, cell[1], cell[2], cell[4], cell[6], cell[7], bool(cell[11]))
                )
    return rows


def _substitutions(hipify: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Names and headers of the tool's plain CUDA -> HIP substitutions (not those for its other targets)."""
    with tempfile.TemporaryDirectory(prefix="amdflow-") as folder:
        process.run([str(hipify), "--perl", f"--o-hipify-perl-dir={folder}"], cwd=Path(folder), timeout=120)
        script = next(iter(Path(folder).iterdir())).read_text(encoding="utf-8", errors="replace")
    body = script.partition("sub simpleSubstitutions")[2].partition("\nsub ")[0]
    names: dict[str, str] = {}
    headers: dict[str, str] = {}
    for old, new, kind in _SUBSTITUTION.findall(body):
        if kind.startswith("include"):
            headers[old.replace("\\/", "/")] = new.replace("\\/", "/")
        elif _NAME.fullmatch(old) and new:
            names[old] = new
    return names, headers
