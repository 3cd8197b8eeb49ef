"""Training operators over the TileLang kernels, for any process with torch and TileLang: GPUs (HIP, CUDA) and the CPU.

Each is a ``torch.library`` operator of the namespace ``amdflow`` with a gradient and a shape function. Kernels are
compiled at first use; the environment variable AMDFLOW_KERNELS names folders whose kernels win over the shipped ones.
"""

from .attention import AttentionCall, attention, choose_attention
from .attention_varlen import attention_varlen
from .dequant import (
    QuantizedWeight,
    convert_float8,
    dequant_linear,
    quantize_float8,
    quantize_int4,
    quantize_int8,
)
from .gated import swiglu, swiglu_linear
from .linear import linear
from .loss import linear_cross_entropy
from .moe import grouped_linear, moe_experts, moe_route
from .norm import add_rms_norm, layer_norm, rms_norm
from .registry import REGISTRY, replace_modules
from .rotary import rope, rope_tables
from .site import Replaced

__all__ = [
    "REGISTRY",
    "AttentionCall",
    "QuantizedWeight",
    "Replaced",
    "add_rms_norm",
    "attention",
    "attention_varlen",
    "choose_attention",
    "convert_float8",
    "dequant_linear",
    "grouped_linear",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "moe_experts",
    "moe_route",
    "quantize_float8",
    "quantize_int4",
    "quantize_int8",
    "replace_modules",
    "rms_norm",
    "rope",
    "rope_tables",
    "swiglu",
    "swiglu_linear",
]
