"""What CUDA names become, as the installed hipify-clang itself tells it.

The tool exports its tables as CSV (every CUDA name with versions and its HIP name) and its substitutions as a script;
both together are the map that the textual pass and ``amdflow lookup`` use.
"""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from amdflow import process
from amdflow.errors import AmdflowError, EnvironmentProblem
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
    with _scratch() as folder:
        _export(hipify, folder, "--csv", "--doc-format=full")
        found = [api for path in sorted(folder.glob("*.csv")) for api in _read_table(path)]
    if not found:
        raise AmdflowError(
            f"{hipify} exported no tables", hint="amdflow doctor says whether this hipify-clang is whole"
        )
    return found


@contextmanager
def _scratch() -> Iterator[Path]:
    """A temporary folder. Raises EnvironmentProblem when there is no place for one."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="amdflow-")
    except OSError as error:
        place = os.environ.get("TMPDIR", "the system's temporary folder")
        raise EnvironmentProblem(
            f"no temporary folder can be made in {place}: {error.strerror}",
            hint="export TMPDIR=<a folder that exists, is writable and has some space>",
        ) from error
    with folder as name:
        yield Path(name)


def _export(hipify: Path, folder: Path, *options: str) -> None:
    """Let the tool write into ``folder``. Raises EnvironmentProblem when it cannot, which mostly means that the disk is full."""
    done = process.run(
        [str(hipify), *options], cwd=folder, env={**os.environ, "TMPDIR": str(folder)}, timeout=120, check=False
    )
    if done.returncode or done.timed_out:
        said = [line.strip() for line in done.output.splitlines() if "error" in line.lower()][-1:]
        raise EnvironmentProblem(
            f"{hipify} {options[0]} {process.describe_status(done.returncode)} in {folder}"
            + "".join(f": {line[:200]}" for line in said),
            hint=f"df -h {folder.parent} shows whether the disk is full; amdflow doctor whether this hipify-clang is whole",
        )


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
    with _scratch() as folder:
        _export(hipify, folder, "--perl", f"--o-hipify-perl-dir={folder}")
        scripts = sorted(folder.iterdir())
        script = scripts[0].read_text(encoding="utf-8", errors="replace") if scripts else ""
    body = script.partition("sub simpleSubstitutions")[2].partition("\nsub ")[0]
    names: dict[str, str] = {}
    headers: dict[str, str] = {}
    for old, new, kind in _SUBSTITUTION.findall(body):
        if kind.startswith("include"):
            headers[old.replace("\\/", "/")] = new.replace("\\/", "/")
        elif _NAME.fullmatch(old) and new:
            names[old] = new
    return names, headers
