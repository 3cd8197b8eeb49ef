"""Linear layers over frozen weights of 8 or 4 bits: how such weights are made, converted, and multiplied with.

The two forms of float8: ``e4m3fn`` (OCP; gfx950, gfx1201, NVIDIA) has exponent bias 7, ``e4m3fnuz`` (gfx942) 8. The same
byte means half as much in the second; its 0x80 is not a number where the first has -0, and its 0x7f and 0xff are 240 and
-240 where the first has no number. Kernels read either on every target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from .define import operator
from .launch import kernel
from .linear import in_kernels_type, rows_of

Form = Literal["int8", "int4", "e4m3fn", "e4m3fnuz"]
_FLOATS = {"e4m3fn": torch.float8_e4m3fn, "e4m3fnuz": torch.float8_e4m3fnuz}
_GROUPS = (32, 64, 128)
MANY_ROWS = 1024
"""From so many rows on the weight is widened once, in memory of its own, and not by every workgroup that reads it."""


@dataclass(frozen=True)
class QuantizedWeight:
    """A weight of n rows and k columns in few bits; frozen: no gradient reaches it."""

    codes: Tensor
    """uint8: (n, k / 2) for int4, the even column in a byte's low half, else (n, k filled up with 0 to a multiple of 4)."""
    scale: Tensor
    """float32: (n, k / group) for int4, else (n)."""
    columns: int
    """k."""
    form: Form
    zero: Tensor | None = None
    """int4 with a zero a group: uint8 (n, k / group). Without it the zero is 8."""

    @property
    def group(self) -> int:
        """Columns that share a scale."""
        return self.columns // self.scale.shape[1] if self.form == "int4" else self.columns

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The weight (n, k), in plain torch."""
        if self.form == "int4":
            codes = torch.stack([self.codes & 15, self.codes >> 4], -1).view(*self.scale.shape, -1)
            zero = 8 if self.zero is None else self.zero.unsqueeze(-1).float()
            return ((codes.float() - zero) * self.scale.unsqueeze(-1)).flatten(1).to(dtype)
        codes = self.codes[:, : self.columns]
        codes = codes.view(torch.int8 if self.form == "int8" else _FLOATS[self.form])
        return (codes.float() * self.scale.unsqueeze(-1)).to(dtype)


def quantize_int8(weight: Tensor) -> QuantizedWeight:
    """A scale a row, the row's largest size over 127: each element is off by half a scale at most.

    Raises ValueError for a weight that is not finite.
    """
    wide = _finite(weight)
    scale = _scale(wide.abs().amax(1) / 127)
    codes = (wide / scale.unsqueeze(1)).round().clamp(-127, 127).to(torch.int8).view(torch.uint8)
    return QuantizedWeight(_filled(codes), scale, weight.shape[1], "int8")


def quantize_int4(weight: Tensor, group: int = 128, *, zeros: bool = False) -> QuantizedWeight:
    """A scale for each ``group`` neighbouring columns: each element is off by half a scale at most.

    The scale spans a group's range in 15 steps, 0 in it: the larger of max / 7 and -min / 8, or with ``zeros`` (max - min)
    / 15 with the number that stands for 0 stored beside it. Raises ValueError for a group other than 32, 64 and 128, for
    columns that are no multiple of it, and for a weight that is not finite.
    """
    n, k = weight.shape
    if group not in _GROUPS or k % group:
        raise ValueError(f"{k} columns in groups of {group}: groups are of 32, 64 or 128 columns, none of them cut")
    wide = _finite(weight).view(n, -1, group)
    low, high = wide.amin(2).clamp(max=0), wide.amax(2).clamp(min=0)
    scale = _scale((high - low) / 15 if zeros else torch.maximum(high / 7, -low / 8))
    zero = (-low / scale).round().clamp(0, 15) if zeros else torch.full_like(scale, 8)
    codes = ((wide / scale.unsqueeze(2)).round() + zero.unsqueeze(2)).clamp(0, 15).to(torch.uint8).view(n, -1, 2)
    packed = codes[..., 0] | codes[..., 1] << 4
    return QuantizedWeight(packed, scale, k, "int4", zero.to(torch.uint8) if zeros else None)


def quantize_float8(weight: Tensor, form: Literal["e4m3fn", "e4m3fnuz"]) -> QuantizedWeight:
    """A scale a row, so that the row's largest size is the form's largest number.

    Each element is off by 1/16 of its size at most, or by half the form's smallest number times the scale where that is
    more. Raises ValueError for a weight that is not finite.
    """
    wide, largest = _finite(weight), torch.finfo(_FLOATS[form]).max
    scale = _scale(wide.abs().amax(1) / largest)
    codes = (wide / scale.unsqueeze(1)).clamp(-largest, largest).to(_FLOATS[form]).view(torch.uint8)
    return QuantizedWeight(_filled(codes), scale, weight.shape[1], form)


def convert_float8(weight: QuantizedWeight, form: Literal["e4m3fn", "e4m3fnuz"]) -> QuantizedWeight:
    """The same numbers in the other form, bit for bit: the bytes stay and the scale makes up for the factor of 2.

    To e4m3fnuz the scale doubles, -0 becomes 0, and what is not a number becomes 0x80. To e4m3fn the scale halves and
    0x80 becomes 0x7f; 240 and -240 have no counterpart there. Raises ValueError for them, for a scale that float32 cannot
    double or halve, and for a weight that is not float8.
    """
    if weight.form not in _FLOATS or form not in _FLOATS:
        raise ValueError(f"from {weight.form} to {form}: only the two forms of float8 are converted into each other")
    if weight.form == form:
        return weight
    codes, scale = weight.codes.clone(), weight.scale * (2.0 if form == "e4m3fnuz" else 0.5)
    if not scale.isfinite().all() or (scale * (0.5 if form == "e4m3fnuz" else 2.0) != weight.scale).any():
        raise ValueError(f"a scale times {2 if form == 'e4m3fnuz' else '1/2'} is no float32 any more")
    if form == "e4m3fnuz":
        codes[weight.codes == 0x80] = 0
        codes[(weight.codes & 0x7F) == 0x7F] = 0x80
    else:
        beyond = int(((weight.codes & 0x7F) == 0x7F).sum())
        if beyond:
            raise ValueError(
                f"{beyond} elements are 240 or -240, which e4m3fn has no number for at half the scale: quantize anew"
            )
        codes[weight.codes == 0x80] = 0x7F
    return replace(weight, codes=codes, scale=scale, form=form)


def dequant_linear(x: Tensor, weight: QuantizedWeight, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias`` with x (..., k), widening the weight on the way; the gradient is x's (and the bias's).

    Within torch.autocast x is taken in its type. Raises TypeError for float32 on a GPU.
    """
    x = in_kernels_type(x)
    y: Tensor = _dequant_linear(
        x, weight.codes, weight.scale, weight.zero, weight.form, weight.columns, weight.scale.shape[0]
    )
    return y if bias is None else y + bias.to(y.dtype)


def _finite(weight: Tensor) -> Tensor:
    wide = weight.detach().float()
    if not wide.isfinite().all():
        raise ValueError("the weight holds elements that are infinite or not a number")
    return wide


def _scale(scale: Tensor) -> Tensor:
    """Without zeros, which would divide; where all is zero any scale does."""
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def _filled(codes: Tensor) -> Tensor:
    return torch.nn.functional.pad(codes, (0, -codes.shape[1] % 4))


def _multiply(x: Tensor, layout: str | None, weight: tuple[Any, ...], result: Tensor) -> None:
    """``x @ w.T``, or ``x @ w`` with the layout nn, into ``result``."""
    codes, scale, zero, form, columns, n = weight
    sizes: dict[str, Any] = {"form": form, "n": n, "k": columns}
    if form == "int4":
        sizes |= {"group": columns // scale.shape[1], "zeros": zero is not None or None}
    given = (codes.contiguous().view(torch.int32), scale.contiguous(), *(() if zero is None else (zero.contiguous(),)))
    if x.shape[0] < MANY_ROWS:
        kernel("dequant_gemm", x, layout=layout, **sizes)(x, *given, result)
        return
    wide = x.new_empty(n, columns)
    kernel("dequantize", x, **sizes)(*given, wide)
    kernel("gemm", x, layout=layout, n=result.shape[1], k=x.shape[1])(x, wide, result)


def _run(x: Tensor, *weight: Any) -> Tensor:
    rows, n = rows_of(x), weight[-1]
    y = rows.new_empty(rows.shape[0], n)
    if y.numel():
        _multiply(rows, None, weight, y)
    return y.view(*x.shape[:-1], n)


def _backward_run(dy: Tensor, *weight: Any) -> Tensor:
    rows, columns = rows_of(dy), weight[-2]
    dx = rows.new_empty(rows.shape[0], columns)
    if dx.numel():
        _multiply(rows, "nn", weight, dx)
    return dx.view(*dy.shape[:-1], columns)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 - torch's own signature
    _x, codes, scale, zero, *ctx.sizes = inputs
    ctx.save_for_backward(codes, scale, zero)


def _gradients(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    dx = _backward(dy, *ctx.saved_tensors, *ctx.sizes) if ctx.needs_input_grad[0] else None
    return dx, None, None, None, None, None, None


_WEIGHT = "Tensor codes, Tensor scale, Tensor? zero, str form, int columns, int rows"
_dequant_linear = operator(
    f"dequant_linear(Tensor x, {_WEIGHT}) -> Tensor",
    _run,
    fake=lambda x, *weight: x.new_empty((*x.shape[:-1], weight[-1])),
    save=_save,
    backward=_gradients,
)
_backward = operator(
    f"dequant_linear_backward(Tensor dy, {_WEIGHT}) -> Tensor",
    _backward_run,
    fake=lambda dy, *weight: dy.new_empty((*dy.shape[:-1], weight[-2])),
)
