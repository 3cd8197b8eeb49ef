"""Serving engines: what each one needs, how it is started, how it shows that it is ready."""

from __future__ import annotations

from amdflow.serve.engines.base import ServingEngine
from amdflow.serve.engines.sglang import SGLang
from amdflow.serve.engines.transformers import Transformers
from amdflow.serve.engines.vllm import VLLM

ENGINES: dict[str, ServingEngine] = {engine.name: engine for engine in (SGLang(), VLLM(), Transformers())}
"""In the order ``auto`` prefers them."""
