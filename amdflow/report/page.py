"""Self-contained HTML pages: one look for all of them, nothing from the network, nothing unescaped.

Scripts are allowed by their hash in the page's Content-Security-Policy, so a source text that slipped past the escaping
still could not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from amdflow.files import write_atomic_parts

_TEMPLATES = Path(__file__).with_name("templates")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_SCRIPT_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def write_page(path: Path, template: str, *, scripts: Sequence[str], **values: Any) -> None:
    """Render ``templates/<template>`` with its style sheet and ``scripts`` inlined, and write it atomically.

    The page is written as it is rendered: a value that is an iterator is taken item by item and need not fit in memory.
    """
    names = ("base.js", *scripts)
    hashes = " ".join(f"'sha256-{_digest(_asset(name))}'" for name in names)
    parts = (
        _environment()
        .get_template(template)
        .generate(
            values,
            style=_trusted("style.css"),
            scripts=[_trusted(name) for name in names],
            policy=f"{_POLICY}; script-src {hashes}",
        )
    )
    # A file name that is not UTF-8 arrives with lone surrogates; written as \udcXX they are valid in JSON and readable in text.
    write_atomic_parts(path, (part.encode("utf-8", errors="backslashreplace") for part in parts))


def embed(value: Any) -> Markup:
    """JSON for a ``<script type="application/json">``: no character in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_SCRIPT_SAFE)
    return Markup(text)  # noqa: S704  every < > & is escaped


def packed(value: Any) -> str:
    """JSON, deflated, in base64: for what a page opens only when asked to (``unpack`` in base.js)."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    data = squeeze.compress(text.encode("utf-8", errors="backslashreplace")) + squeeze.flush()
    return base64.b64encode(data).decode("ascii")


def prose(text: str) -> Markup:
    """Text with its words in backticks set as code, everything escaped."""
    parts = re.split(r"`([^`\n]+)`", text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def size(value: int) -> str:
    """Bytes for people: ``517 B``, ``1.2 MB`` (decimal units)."""
    if value < 1000:
        return f"{value} B"
    amount = float(value)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5 or unit == "TB":
            return f"{amount:.3g} {unit}"
    raise AssertionError


def duration(seconds: float) -> str:
    """Seconds for people: ``0.4 s``, ``12 s``, ``3 min 5 s``, ``2 h 10 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(embed=embed, size=size, duration=duration, prose=prose)
    return environment


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _trusted(name: str) -> Markup:
    return Markup(_asset(name))  # noqa: S704  a file of this package


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
