"""Fetches Debian packages for a private prefix, through the machine's own mirror and keyring, without root.

apt-get is given a state folder of its own: the machine's package lists, sources and installed packages are neither read
nor changed. The mirror comes from the machine's Debian source entry with the suites replaced.
"""

from __future__ import annotations

import os
import re
import shutil
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amdflow import process
from amdflow.errors import EnvironmentProblem
from amdflow.files import sha256_file
from amdflow.toolchain.alternatives import ROCM_BY_HAND

SUITES = ("sid", "experimental")
COMPONENTS = ("main", "contrib")
_DEBIAN_SUITES = frozenset(
    {"bullseye", "bookworm", "trixie", "forky", "duke", "sid", "oldstable", "stable", "testing", "unstable"}
)
_KEPT_FIELDS = ("Signed-By", "Trusted", "Check-Valid-Until")
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>[^#]+)")


@dataclass(frozen=True)
class Source:
    """One entry of an apt configuration."""

    uris: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: Mapping[str, str]
    """Fields of the deb822 form; Signed-By may hold a whole key, indented."""

    @property
    def is_debian(self) -> bool:
        """Whether this is Debian's own archive: not its security one, and nobody else's."""
        known = not _DEBIAN_SUITES.isdisjoint(self.suites) and "main" in self.components
        return (
            known
            and "security" not in self.uris
            and "debian" in f"{self.uris} {self.options.get('Signed-By', '')}".lower()
        )

    def rewritten(self, suites: Sequence[str] = SUITES, components: Sequence[str] = COMPONENTS) -> str:
        """The same mirror and keyring in deb822 form, with other suites and components."""
        fields = {"Types": "deb", "URIs": self.uris, "Suites": " ".join(suites), "Components": " ".join(components)}
        fields |= {name: self.options[name] for name in _KEPT_FIELDS if name in self.options}
        return "".join(f"{name}: {value}\n" for name, value in fields.items())


@dataclass(frozen=True)
class Package:
    """One package file that apt would fetch."""

    name: str
    version: str
    file: str
    size: int
    """Bytes."""
    sha256: str


def debian_source(etc: Path = Path("/etc/apt")) -> Source:
    """The machine's Debian archive entry. Raises EnvironmentProblem when it has none."""
    found = next((source for source in read_sources(etc) if source.is_debian), None)
    if found is None:
        raise EnvironmentProblem(
            f"no Debian archive is configured in {etc}, from which ROCm's packages could be taken", hint=ROCM_BY_HAND
        )
    return found


def read_sources(etc: Path) -> Iterator[Source]:
    """Every enabled binary source of an apt configuration folder, in apt's order."""
    files = [etc / "sources.list", *sorted(etc.glob("sources.list.d/*"))]
    for file in files:
        if file.is_file() and file.suffix in (".list", ".sources"):
            text = file.read_text(encoding="utf-8", errors="replace")
            yield from parse_deb822(text) if file.suffix == ".sources" else parse_one_line(text)


def parse_deb822(text: str) -> Iterator[Source]:
    """Sources of a ``.sources`` file."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n[ \t]*\n", "\n".join(lines)):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1] in (" ", "\t") and name:
                fields[name] += f"\n{line}"
            elif ":" in line:
                name, _colon, value = line.partition(":")
                name = _canonical(name.strip())
                fields[name] = value.strip()
        if (
            "deb" in fields.get("Types", "").split()
            and fields.get("Enabled", "yes").lower() not in ("no", "false", "0")
            and fields.get("Uris")
        ):
            yield Source(
                fields["Uris"],
                tuple(fields.get("Suites", "").split()),
                tuple(fields.get("Components", "").split()),
                fields,
            )


def parse_one_line(text: str) -> Iterator[Source]:
    """Sources of a ``.list`` file."""
    for line in text.splitlines():
        found = _ONE_LINE.match(line.strip())
        if found:
            pairs = (word.partition("=") for word in (found["options"] or "").split())
            options = {_canonical(name): value for name, _equals, value in pairs}
            yield Source(found["uri"], (found["suite"],), tuple(found["components"].split()), options)


def parse_uris(text: str) -> list[Package]:
    """The packages that ``apt-get --print-uris`` lists."""
    packages = []
    for match in re.finditer(r"^'[^']*' (\S+\.deb) (\d+) SHA256:([0-9a-f]{64})", text, re.MULTILINE):
        name, version, _arch = urllib.parse.unquote(match[1]).removesuffix(".deb").rsplit("_", 2)
        packages.append(Package(name, version, match[1], int(match[2]), match[3]))
    return packages


class Apt:
    """apt-get with a state folder of its own below ``state``. Raises EnvironmentProblem when the machine has no apt."""

    def __init__(self, state: Path, source: Source, log: Path) -> None:
        for program in ("apt-get", "apt-cache", "dpkg-deb"):
            if shutil.which(program) is None:
                raise EnvironmentProblem(
                    f"ROCm's packages are taken with Debian's apt, and there is no {program} on this machine",
                    hint=ROCM_BY_HAND,
                )
        self.log = log
        for folder in ("lists/partial", "cache/archives/partial", "etc"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        (state / "status").write_text("", encoding="utf-8")
        (state / "etc/debian.sources").write_text(source.rewritten(), encoding="utf-8")
        settings = {
            "Dir::Etc::sourcelist": state / "etc/debian.sources",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": state,
            "Dir::State::Lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": state / "cache",
            "APT::Install-Recommends": "0",
            "APT::Default-Release": SUITES[-1],
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "",
            "Acquire::ForceHash": "SHA256",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Debug::NoLocking": "1",
            "Dpkg::Use-Pty": "0",
        }
        self._options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def update(self) -> None:
        """Fetch the package lists."""
        done = self._run("apt-get", "update")
        if done.returncode or re.search(r"^(E|W: Failed)", done.output, re.MULTILINE):
            reasons = [line for line in done.output.splitlines() if line.startswith(("E:", "W: Failed", "Err:"))]
            raise EnvironmentProblem(
                f"apt-get cannot read Debian's {' and '.join(SUITES)} from this machine's mirror: {'; '.join(reasons[:3]) or 'see ' + str(self.log)}",
                hint=f"check the network and run the same command again; or {ROCM_BY_HAND}",
            )

    def depends(self, package: str) -> list[str]:
        """Names of what a package depends on directly."""
        done = self._run("apt-cache", "depends", "--important", package)
        return re.findall(r"Depends: <?([^\s<>]+)", done.stdout)

    def resolve(self, wanted: Sequence[str]) -> list[Package]:
        """Everything that ``wanted`` needs, down to the C library."""
        done = self._run("apt-get", "install", "-y", "--print-uris", *wanted)
        packages = parse_uris(done.stdout)
        if done.returncode or not packages:
            reasons = [line.strip() for line in done.output.splitlines() if line.startswith("E:") or "Depends:" in line]
            raise EnvironmentProblem(
                f"Debian's {' and '.join(SUITES)} do not hold an installable ROCm today: {'; '.join(reasons[:4])}",
                hint=f"they change from day to day: try again tomorrow; or {ROCM_BY_HAND}",
            )
        return packages

    def download(self, packages: Iterable[Package], folder: Path, arrived: Callable[[Package], None]) -> None:
        """Put every package file into ``folder``, verified. Complete ones from an earlier attempt are kept."""
        folder.mkdir(parents=True, exist_ok=True)
        missing = []
        for package in packages:
            path = folder / package.file
            if path.is_file() and path.stat().st_size == package.size and sha256_file(path) == package.sha256:
                arrived(package)
            else:
                path.unlink(missing_ok=True)
                missing.append(package)
        awaited = {package.name: package for package in missing}

        def follow(line: str) -> None:
            found = re.match(r"Get:\d+ \S+ \S+ \S+ (\S+) ", line)
            if found and found[1] in awaited:
                arrived(awaited.pop(found[1]))

        if missing:
            done = self._run(
                "apt-get",
                "download",
                *(f"{package.name}={package.version}" for package in missing),
                cwd=folder,
                on_line=follow,
            )
            bad = [
                package.file
                for package in missing
                if not (folder / package.file).is_file() or sha256_file(folder / package.file) != package.sha256
            ]
            if done.returncode or bad:
                raise EnvironmentProblem(
                    f"{len(bad)} of {len(missing)} Debian packages could not be downloaded whole ({', '.join(bad[:3])}); log: {self.log}",
                    hint="run the same command again: it goes on with what is missing",
                )

    def _run(
        self, program: str, *words: str, cwd: Path | None = None, on_line: Callable[[str], None] | None = None
    ) -> process.Completed:
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return process.run(
            [program, *self._options, *words], cwd=cwd, env=environment, log=self.log, on_line=on_line, check=False
        )


def _canonical(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))
