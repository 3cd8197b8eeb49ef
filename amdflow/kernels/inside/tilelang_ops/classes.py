"""Which classes of Hugging Face models each operator stands in: plain data, to be read without torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operator:
    """One operator: the classes it works in, by name, since importing every model's code would take minutes."""

    op: str
    modules: tuple[str, ...]
    kernels: tuple[str, ...]
    """What is built for it."""
    shapes: str = "any"
    """What it takes, in words."""
    dtypes: tuple[str, ...] = ("bfloat16", "float16", "float32")
    targets: tuple[str, ...] = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201", "cuda", "cpu")
    """What its kernels are built and tested for."""


def _names(families: tuple[str, ...], part: str) -> tuple[str, ...]:
    return tuple(f"{family}{part}" for family in families)


HEADS = (64, 96, 128, 256)
"""Widths of a head that the GPU's attention kernels are built and tested for; on the CPU any will do."""
_LLAMAS = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3", "SmolLM3")
"""Families whose blocks are alike."""
_MOES = ("Mixtral", "Qwen2Moe", "Qwen3Moe")
_EXPERTS = (
    *("AfmoeExperts", "DeepseekV2Experts", "DeepseekV3NaiveMoe", "Dots1NaiveMoe", "Ernie4_5_MoeExperts"),
    *("ExaoneMoeExperts", "FlexOlmoExperts", "Glm4MoeLiteNaiveMoe", "Glm4MoeNaiveMoe", "GlmMoeDsaNaiveMoe"),
    *("HYV3Experts", "HunYuanMoEV1Experts", "JambaExperts", "Lfm2MoeExperts", "MiniMaxExperts", "MiniMaxM2Experts"),
    *("Mistral4NaiveMoe", "MixtralExperts", "OlmoeExperts", "PhimoeExperts", "Qwen2MoeExperts", "Qwen3MoeExperts"),
    *("Qwen3NextExperts", "Qwen3_5MoeExperts", "SolarOpenNaiveMoe"),
)
"""Language models' experts that hold the weights of all in one tensor, gates and ups in another."""
_NORMS = ("rms_norm", "rms_norm_backward", "column_sum")

OPERATORS = {
    entry.op: entry
    for entry in (
        Operator("rms_norm", _names((*_LLAMAS, *_MOES, "Phi3", "Olmo2"), "RMSNorm"), _NORMS),
        Operator(
            "layer_norm",
            ("LayerNorm",),
            ("layer_norm", "layer_norm_backward", "column_sum"),
            "one normed dimension, with weight and bias",
        ),
        Operator(
            "add_rms_norm",
            _names((*_LLAMAS, *_MOES, "Phi3"), "DecoderLayer"),
            _NORMS,
            "layers whose norms come before their blocks; a norm whose weight lies on this device in one piece",
        ),
        Operator(
            "swiglu",
            _names((*_LLAMAS, "Qwen2Moe", "Qwen3Moe", "Olmo2"), "MLP"),
            ("swiglu", "swiglu_backward"),
            "gate and up as layers of their own; SiLU or GELU",
        ),
        Operator(
            "moe",
            _EXPERTS,
            ("grouped_gemm", "grouped_gemm_dw", "moe_gate", "moe_gate_backward", "gather_sum"),
            "experts with gates, without biases; SiLU or GELU",
            ("bfloat16", "float16"),
        ),
        Operator(
            "rope",
            _names((*_LLAMAS, *_MOES, "Phi3", "Olmo2"), "Attention"),
            ("rope",),
            "halves rotated, an even number of elements a head",
        ),
        Operator(
            "attention",
            _names((*_LLAMAS, *_MOES, "Phi3", "Olmo2"), "Attention"),
            ("attention", "attention_varlen", "attention_delta", "attention_backward", "attention_varlen_backward"),
            f"causal, with a window or packed, or full; as many keys as tokens, heads of {', '.join(map(str, HEADS))}; else torch's SDPA, with a warning",
            ("bfloat16", "float16"),
        ),
        Operator(
            "linear_cross_entropy",
            _names((*_LLAMAS, "Phi3", "Olmo2"), "ForCausalLM"),
            ("cross_entropy", "scale_in_place"),
            "training with labels; a plain lm_head without bias, logits neither capped nor scaled",
        ),
    )
}
"""By name, in the order in which they are put in place."""
