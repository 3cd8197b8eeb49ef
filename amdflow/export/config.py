"""The ``export`` section of ``amdflow.yaml``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from amdflow.config import Model


class ExportConfig(Model):
    """What to export, and how."""

    adapter: str = ""
    """An adapter folder; empty: what finetune made."""
    model: str = ""
    """The model folder the adapter belongs to, or a fully trained model; empty: what finetune used or made."""
    shard_size: Annotated[float, Field(gt=0, le=1000)] = 5.0
    """Largest size of one SafeTensors file, in GB."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    """Data type of the exported weights."""
    template: str = ""
    """LLaMA-Factory chat template; empty: the one the training used."""
    name: str = ""
    """Name to serve the model under; empty: the base model's, with the kind of training added."""
    probe: str = "Which library takes the place of cuBLAS on AMD GPUs?"
    """A question that the finished model is asked, here and when it is served."""
    trust_remote_code: bool = False
    """Let the model folder run Python code of its own. Only for models you trust."""
