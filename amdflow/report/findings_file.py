"""``findings.json``: the findings of a migration for programs; its JSON Schema is docs/reference/findings.schema.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from amdflow.errors import UsageError
from amdflow.findings import Finding

NAME = "findings.json"


class FindingsFile(BaseModel):
    """All findings, worst first."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid")

    schema_name: Literal["amdflow/findings"] = Field(default="amdflow/findings", alias="schema")
    version: Literal["1.0"] = "1.0"
    root: str
    """The source folder's path below its repository (else below the workspace); findings' paths start there. Empty for the top."""
    findings: list[Finding]


def as_json(findings: Sequence[Finding], root: str) -> dict[str, Any]:
    """What the file holds; empty fields of a finding are left out."""
    return {
        "schema": "amdflow/findings",
        "version": "1.0",
        "root": root,
        "findings": [finding.to_json() for finding in findings],
    }


def json_schema() -> dict[str, Any]:
    """JSON Schema of the file."""
    return FindingsFile.model_json_schema(by_alias=True) | {"required": ["schema", "version", "root", "findings"]}


def read(file: Path) -> tuple[list[Finding], str]:
    """Findings and root. Raises UsageError when there is no such file, or when it does not hold findings."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return [Finding.from_json(item) for item in data["findings"]], str(data.get("root", ""))
    except FileNotFoundError as error:
        raise UsageError(f"no findings at {file}", hint="amdflow migrate ./cuda_src writes them") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} cannot be read: {error!r}", hint="amdflow migrate --force writes it again") from error
