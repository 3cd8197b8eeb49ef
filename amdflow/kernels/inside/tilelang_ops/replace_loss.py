"""The last linear layer and the loss of causal language models, without the logits in memory."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from .loss import linear_cross_entropy
from .site import Declined, Forward, Site

_SCALES = ("final_logit_softcapping", "logits_scaling", "logit_scale")


def loss_of(site: Site) -> Forward:
    """A causal language model's forward: in training with labels it gives the loss, and None for the logits.

    Everything else (evaluation, generation, no labels, a choice of logits to keep) takes the model's own way. Raises
    Declined for a model whose logits are more than a linear layer's, or whose loss is its own.
    """
    model = site.module
    _check(model)
    inner, plan = model.forward, list(inspect.signature(model.forward).parameters)

    @wraps(inner)
    def forward(*arguments: Any, **named: Any) -> Any:
        named |= dict(zip(plan, arguments, strict=False))
        if not _applies(model, named):
            return inner(**named)
        labels = named.pop("labels")
        for name in ("logits_to_keep", "return_dict"):
            named.pop(name, None)
        outputs = model.model(**{name: value for name, value in named.items() if name != "shift_labels"})
        hidden = outputs.last_hidden_state
        site.count()
        loss = _loss(hidden, model.lm_head.weight, labels, named)
        return _output(outputs, loss)

    return forward


def _check(model: Any) -> None:
    for name in _SCALES:
        value = getattr(model.config, name, None)
        if value not in (None, 1.0):
            raise Declined(f"its logits go through {name} = {value}")
    if type(model.lm_head) is not torch.nn.Linear:
        raise Declined(f"its lm_head is a {type(model.lm_head).__module__}.{type(model.lm_head).__name__}")
    if model.lm_head.bias is not None:
        raise Declined("its lm_head has a bias")
    if getattr(model.loss_function, "__name__", "") != "ForCausalLMLoss":
        raise Declined("its loss is not the usual one of a causal language model")


def _applies(model: Any, named: dict[str, Any]) -> bool:
    head = model.lm_head
    return (
        named.get("labels") is not None
        and model.training
        and torch.is_grad_enabled()
        and not _given(named.get("logits_to_keep"))
        and named.get("return_dict") is not False
        and head.weight.shape == (head.out_features, head.in_features)  # a sharded one is gathered for lm_head only
        and type(head.weight) in (torch.nn.Parameter, Tensor)
        and not head._forward_hooks
        and not head._forward_pre_hooks
    )


def _given(keep: Any) -> bool:
    return isinstance(keep, Tensor) or bool(keep)


def _loss(hidden: Tensor, weight: Tensor, labels: Tensor, named: dict[str, Any]) -> Tensor:
    ignored = named.get("ignore_index", -100)
    target = named.get("shift_labels")
    if target is None:  # every token's label is the one behind it; the last token has none
        target = torch.nn.functional.pad(labels, (0, 1), value=ignored)[..., 1:]
    return linear_cross_entropy(
        hidden, weight, target.to(hidden.device), ignore_index=ignored, count=named.get("num_items_in_batch")
    )


def _output(outputs: Any, loss: Tensor) -> Any:
    from transformers.modeling_outputs import CausalLMOutputWithPast

    return CausalLMOutputWithPast(
        loss=loss,
        logits=None,
        past_key_values=outputs.past_key_values,
        hidden_states=outputs.hidden_states,
        attentions=outputs.attentions,
    )
