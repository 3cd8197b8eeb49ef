"""The machine's apt configuration, read and rewritten; downloads that go on where they were."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from amdflow.errors import EnvironmentProblem
from amdflow.toolchain.apt import Apt, Package, Source, debian_source, parse_deb822, parse_one_line, parse_uris
from amdflow.toolchain.install_rocm import newest_llvm
from tests.unit.toolchain.places import write

DEB822 = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
INLINE_KEY = """\
types: deb deb-src
uris: https://mirror.example/debian/
suites: trixie
components: main contrib
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS/xcRfwEQWzr
 -----END PGP PUBLIC KEY BLOCK-----
"""
OTHERS = """\
deb [signed-by=/k.gpg] https://dl.example.com/linux/chrome/deb stable main
deb https://download.example.com/linux/debian bookworm stable
deb http://apt.example.org/pub/debian bookworm-pgdg main
deb-src http://mirror.example/debian bookworm main
# deb http://mirror.example/debian bookworm main
"""


def test_deb822(tmp_path: Path) -> None:
    write(tmp_path, {"sources.list.d/debian.sources": DEB822})
    source = debian_source(tmp_path)
    assert source.uris == "http://mirror.example/debian"
    assert source.rewritten() == (
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: sid experimental\nComponents: main contrib\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def test_an_inline_key_is_kept_whole() -> None:
    (source,) = parse_deb822(INLINE_KEY)
    assert source.is_debian
    again = next(iter(parse_deb822(source.rewritten())))
    assert again.options["Signed-By"] == source.options["Signed-By"]
    assert again.options["Signed-By"].count("\n") == 4
    assert again.suites == ("sid", "experimental")


def test_one_line_form(tmp_path: Path) -> None:
    line = "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian trixie main non-free-firmware # home\n"
    write(tmp_path, {"sources.list": OTHERS + line})
    source = debian_source(tmp_path)
    assert source.uris == "http://mirror.example/debian"
    assert source.components == ("main", "non-free-firmware")
    assert "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n" in source.rewritten()
    assert "amd64" not in source.rewritten()


def test_nobody_elses_archive_is_taken(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "sources.list": OTHERS,
            "sources.list.d/off.sources": "Enabled: no\n" + DEB822.split("\n\n")[0],
            "sources.list.d/x.disabled": DEB822,
        },
    )
    assert not [source for source in parse_one_line(OTHERS) if source.is_debian]
    with pytest.raises(EnvironmentProblem, match="no Debian archive is configured") as caught:
        debian_source(tmp_path)
    assert "AMD's packages" in caught.value.hint
    assert "rocm-sdk wheels" in caught.value.hint
    assert caught.value.exit_code == 5


def test_ubuntu_is_not_debian(tmp_path: Path) -> None:
    write(tmp_path, {"sources.list": "deb http://archive.example.com/ubuntu noble main universe\n"})
    with pytest.raises(EnvironmentProblem):
        debian_source(tmp_path)


def test_what_apt_would_fetch() -> None:
    listing = (
        "Reading package lists...\nThe following NEW packages will be installed:\n  libc6\n"
        f"'http://m/pool/c/libc6_2.44-3_amd64.deb' libc6_2.44-3_amd64.deb 1897964 SHA256:{'a' * 64}\n"
        f"'http://m/pool/l/clang-22_1%3a22.1.8-3_amd64.deb' clang-22_1%3a22.1.8-3_amd64.deb 143088 SHA256:{'b' * 64}\n"
    )
    assert parse_uris(listing) == [
        Package("libc6", "2.44-3", "libc6_2.44-3_amd64.deb", 1897964, "a" * 64),
        Package("clang-22", "1:22.1.8-3", "clang-22_1%3a22.1.8-3_amd64.deb", 143088, "b" * 64),
    ]


def test_the_llvm_is_the_one_hipcc_asks_for() -> None:
    assert newest_llvm(["libc6", "clang-22", "rocm-device-libs-22", "clang-9"]) == "22"
    with pytest.raises(EnvironmentProblem, match="names no clang"):
        newest_llvm(["libc6"])


def apt(tmp_path: Path) -> Apt:
    return Apt(tmp_path / "state", Source("file:/nowhere/debian", ("sid",), ("main",), {}), tmp_path / "log")


def test_complete_downloads_are_kept_and_damaged_ones_fetched_again(tmp_path: Path) -> None:
    whole = Package("whole", "1", "whole_1_amd64.deb", 5, hashlib.sha256(b"whole").hexdigest())
    torn = Package("torn", "1", "torn_1_amd64.deb", 4, hashlib.sha256(b"torn").hexdigest())
    write(tmp_path / "debs", {whole.file: "whole", torn.file: "to"})
    arrived: list[str] = []
    apt(tmp_path).download([whole], tmp_path / "debs", lambda package: arrived.append(package.name))
    assert arrived == ["whole"]
    with pytest.raises(
        EnvironmentProblem, match=r"1 of 1 Debian packages could not be downloaded whole \(torn_1"
    ) as caught:
        apt(tmp_path).download([whole, torn], tmp_path / "debs", lambda package: arrived.append(package.name))
    assert "goes on" in caught.value.hint
    assert arrived == ["whole", "whole"]
    assert not (tmp_path / "debs" / torn.file).exists()


def test_a_mirror_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="apt-get cannot read Debian's sid and experimental"):
        apt(tmp_path).update()


def test_a_machine_without_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="there is no apt-get on this machine") as caught:
        apt(tmp_path)
    assert "container" in caught.value.hint
