"""The instructions whose meaning is one call of the compatibility headers, as data.

A pattern is an opcode with ``{name:a|b}`` for a choice and ``[.x]`` for a part that may be missing. In ``call``,
``@`` stands for the library's namespace, ``{0}``, ``{1}`` for the inputs, ``{T}`` for the C++ type of the choice called
``t``, ``{C}`` for that of ``c``, ``{M}`` for the modifiers as a further template argument, and the choices for
themselves. Types are PTX types; ``t`` is the type chosen, ``wt`` one of twice its width.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

ROUNDING = "the last bits may differ from an NVIDIA GPU's"
CLOCK = "the counters run at another rate than an NVIDIA GPU's"
COPY = "the asynchronous copy became a plain copy: right, but nothing overlaps with it any more"
SLEEP = "the time slept is only roughly the one asked for"
LAUNCH = "programmatic dependent launch does not exist: kernels run one after the other"


@dataclass(frozen=True)
class Row:
    """One instruction family. ``warp`` is one that means a warp of 32 lanes; ``remark`` is what a person should know."""

    pattern: str
    result: str
    inputs: str
    call: str
    about: str = ""
    remark: str = ""
    warp: bool = False

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern as a regular expression; parts that may be missing are groups of their own name."""
        return re.compile(opcode_regex(self.pattern))


def opcode_regex(pattern: str) -> str:
    """The regular expression of an opcode pattern."""
    parts = []
    for choice, optional, plain in re.findall(r"\{(\w+:[^}]*)\}|\[\.([\w:]+)\]|([^{\[]+)", pattern):
        if choice:
            name, _colon, values = choice.partition(":")
            parts.append(f"(?P<{name}>{'|'.join(re.escape(value) for value in values.split('|'))})")
        elif optional:
            parts.append(rf"(?P<{optional.replace('::', '_')}>\.{re.escape(optional)})?")
        else:
            parts.append(re.escape(plain))
    return "".join(parts)


_INT = "{t:u16|s16|u32|s32|u64|s64}"
_WORD = "{t:u32|s32|u64|s64}"
_REAL = "{t:f32|f64|f16|f16x2|bf16|bf16x2}"
_PAIR = "{t:f16|f16x2|bf16|bf16x2}"


def _directed() -> tuple[Row, ...]:
    """Operations that round in a direction: rm is down, rp up."""
    rows = []
    for letter, kind in (("f", "f32"), ("d", "f64")):
        for word, mode in (("rz", "rz"), ("rm", "rd"), ("rp", "ru")):
            two = f"amdflow::{letter}{{o}}_{mode}({{0}}, {{1}})"
            rows.append(Row(f"{{o:add|sub|mul|div}}.{word}.{{t:{kind}}}", "t", "t t", two, "rounded exactly"))
            one = f"amdflow::{letter}{{o}}_{mode}({{0}})"
            rows.append(Row(f"{{o:sqrt|rcp}}.{word}.{{t:{kind}}}", "t", "t", one, "rounded exactly"))
            if kind == "f32":
                call = f"amdflow::fmaf_{mode}({{0}}, {{1}}, {{2}})"
                rows.append(Row(f"fma.{word}.{{t:f32}}", "t", "t t t", call, "rounded exactly"))
    return tuple(rows)


ROWS = (
    # bits
    Row("bfe." + _WORD, "t", "t u32 u32", "@bfe<{T}>({0}, {1}, {2})", "bit field, clamped as in PTX"),
    Row("bfi.{t:b32|b64}", "t", "t t u32 u32", "@bfi<{T}>({0}, {1}, {2}, {3})", "bit field inserted"),
    Row("prmt.b32", "b32", "b32 b32 b32", "@prmt({0}, {1}, {2})", "four bytes chosen"),
    Row("prmt.b32.{m:f4e|b4e|rc8|ecl|ecr|rc16}", "b32", "b32 b32 b32", "@prmt_{m}({0}, {1}, {2})", "four bytes chosen"),
    Row("shf.{d:l|r}.{m:wrap|clamp}.b32", "b32", "b32 b32 u32", "@shf_{d}_{m}({0}, {1}, {2})", "funnel shift"),
    Row("lop3.b32", "b32", "b32 b32 b32 u32", "@lop3({0}, {1}, {2}, {3})", "any function of three bits"),
    Row("bfind.{t:u32|s32|u64|s64}", "u32", "t", "@bfind<{T}>({0})", "highest bit that tells"),
    Row("bfind.shiftamt.{t:u32|s32|u64|s64}", "u32", "t", "@bfind_shiftamt<{T}>({0})"),
    Row("brev.{t:b32|b64}", "t", "t", "@brev<{T}>({0})"),
    Row("popc.{t:b32|b64}", "u32", "t", "@popc<{T}>({0})"),
    Row("clz.{t:b32|b64}", "u32", "t", "@clz<{T}>({0})"),
    Row("fns.b32", "b32", "b32 u32 s32", "@fns({0}, {1}, {2})"),
    Row("shl.{t:b16|b32|b64}", "t", "t u32", "@shl<{T}>({0}, {1})"),
    Row("shr.{t:b16|b32|b64|u16|u32|u64|s16|s32|s64}", "t", "t u32", "@shr<{T}>({0}, {1})"),
    Row("{o:and|or|xor}.{t:b16|b32|b64}", "t", "t t", "@bit_{o}<{T}>({0}, {1})"),
    Row("{o:and|or|xor}.pred", "pred", "pred pred", "@bit_{o}<bool>({0}, {1})"),
    Row("not.{t:b16|b32|b64}", "t", "t", "@bit_not<{T}>({0})"),
    Row("not.pred", "pred", "pred", "!{0}"),
    Row("cnot.{t:b16|b32|b64}", "t", "t", "@cnot<{T}>({0})"),
    # whole numbers
    Row("{o:add|sub}." + _INT, "t", "t t", "@int_{o}<{T}>({0}, {1})"),
    Row("{o:add|sub}.sat.s32", "s32", "s32 s32", "@{o}_sat({0}, {1})"),
    Row("mul.lo." + _INT, "t", "t t", "@mul_lo<{T}>({0}, {1})"),
    Row("mul.hi." + _INT, "t", "t t", "@mul_hi<{T}>({0}, {1})"),
    Row("mul.wide.{t:u16|s16|u32|s32}", "wt", "t t", "@mul_wide<{T}>({0}, {1})"),
    Row("mad.{h:lo|hi}." + _INT, "t", "t t t", "@mad_{h}<{T}>({0}, {1}, {2})"),
    Row("mad.wide.{t:u16|s16|u32|s32}", "wt", "t t wt", "@mad_wide<{T}>({0}, {1}, {2})"),
    Row("mul24.{h:lo|hi}.{t:u32|s32}", "t", "t t", "@mul24_{h}<{T}>({0}, {1})"),
    Row("mad24.{h:lo|hi}.{t:u32|s32}", "t", "t t t", "@mad24_{h}<{T}>({0}, {1}, {2})"),
    Row("sad." + _INT, "t", "t t t", "@sad<{T}>({0}, {1}, {2})"),
    Row("{o:min|max|div|rem}." + _INT, "t", "t t", "@int_{o}<{T}>({0}, {1})"),
    Row("{o:abs|neg}.{t:s16|s32|s64}", "t", "t", "@int_{o}<{T}>({0})"),
    Row(
        "slct.{t:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}.{c:s32|f32}",
        "t",
        "t t c",
        "@slct<{T}, {C}>({0}, {1}, {2})",
        "by the sign of the third",
    ),
    Row("selp.{t:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}", "t", "t t pred", "@selp<{T}>({0}, {1}, {2})"),
    Row("dp4a.{t:u32|s32}.{c:u32|s32}", "b32", "b32 b32 b32", "@dp4a<{T}, {C}>({0}, {1}, {2})", "dot product of bytes"),
    Row("dp2a.lo.{t:u32|s32}.{c:u32|s32}", "b32", "b32 b32 b32", "@dp2a<{T}, {C}, 0>({0}, {1}, {2})"),
    Row("dp2a.hi.{t:u32|s32}.{c:u32|s32}", "b32", "b32 b32 b32", "@dp2a<{T}, {C}, 2>({0}, {1}, {2})"),
    Row(
        "v{o:shl|shr}.u32.u32.u32.clamp.add",
        "u32",
        "u32 u32 u32",
        "@int_add<unsigned int>(@{o}<unsigned int>({0}, {1}), {2})",
    ),
    # floating point
    Row("{o:add|sub|mul}[.rn][.ftz][.sat]." + _REAL, "t", "t t", "@{o}<{T}{M}>({0}, {1})"),
    Row("{o:add|sub|mul}[.rn][.ftz].{t:f32x2}", "t", "t t", "@{o}<{T}{M}>({0}, {1})", "two floats in 64 bits"),
    Row("fma.rn[.ftz].{t:f32x2}", "t", "t t t", "@fma<{T}{M}>({0}, {1}, {2})", "two floats in 64 bits"),
    Row("fma.rn[.ftz][.sat][.relu]." + _REAL, "t", "t t t", "@fma<{T}{M}>({0}, {1}, {2})"),
    Row("fma[.rn][.ftz][.sat][.relu]." + _PAIR, "t", "t t t", "@fma<{T}{M}>({0}, {1}, {2})"),
    Row("mad.rn[.ftz][.sat].{t:f32|f64}", "t", "t t t", "@fma<{T}{M}>({0}, {1}, {2})"),
    Row("{o:min|max}[.ftz][.NaN]." + _REAL, "t", "t t", "@{o}imum<{T}{M}>({0}, {1})"),
    Row("abs[.ftz]." + _REAL, "t", "t", "@absolute<{T}{M}>({0})"),
    Row("neg[.ftz]." + _REAL, "t", "t", "@negative<{T}{M}>({0})"),
    Row("copysign.{t:f32|f64}", "t", "t t", "@sign_from<{T}>({0}, {1})"),
    Row("ex2.approx[.ftz].{t:f32|f16|f16x2|bf16|bf16x2}", "t", "t", "@ex2<{T}{M}>({0})", "1 ulp", ROUNDING),
    Row("lg2.approx[.ftz].{t:f32}", "t", "t", "@lg2<{T}{M}>({0})", "1 ulp", ROUNDING),
    Row("rcp.rn[.ftz].{t:f32|f64}", "t", "t", "@rcp<{T}{M}>({0})", "rounded to nearest"),
    Row("rcp.approx[.ftz].{t:f32|f64}", "t", "t", "@rcp_approx<{T}{M}>({0})", "1 ulp", ROUNDING),
    Row("sqrt.rn[.ftz].{t:f32|f64}", "t", "t", "@square_root<{T}{M}>({0})", "rounded to nearest"),
    Row(
        "sqrt.approx[.ftz].{t:f32}",
        "t",
        "t",
        "@sqrt_approx<{T}{M}>({0})",
        "1 ulp",
        ROUNDING,
    ),
    Row("rsqrt.approx[.ftz].{t:f32|f64}", "t", "t", "@rsqrt_approx<{T}{M}>({0})", "1 ulp", ROUNDING),
    Row("{o:sin|cos}.approx[.ftz].{t:f32}", "t", "t", "@{o}_approx<{T}{M}>({0})", "2 ulp in the whole range", ROUNDING),
    Row("tanh.approx.{t:f32|f16|f16x2|bf16|bf16x2}", "t", "t", "@tanh_approx<{T}>({0})", "2 ulp; PTX: 2^-11", ROUNDING),
    Row("div.rn[.ftz].{t:f32|f64}", "t", "t t", "@divide<{T}{M}>({0}, {1})", "rounded to nearest"),
    Row("div.{m:full|approx}[.ftz].{t:f32}", "t", "t t", "@divide<{T}{M}>({0}, {1})", "rounded to nearest", ROUNDING),
    *_directed(),
    # across lanes
    Row("activemask.b32", "b32", "", "amdflow::activemask()", warp=True),
    Row("vote.sync.{o:all|any|uni}.pred", "pred", "pred b32", "@vote_{o}({0}, {1})", warp=True),
    Row("vote.sync.ballot.b32", "b32", "pred b32", "@vote_ballot({0}, {1})", warp=True),
    Row("match.any.sync.{t:b32|b64}", "b32", "t b32", "amdflow::match_any_sync({1}, ({T})({0}))", warp=True),
    Row("redux.sync.{o:add|min|max}.{t:u32|s32}", "t", "t b32", "amdflow::reduce_{o}_sync({1}, ({T})({0}))", warp=True),
    Row("redux.sync.{o:and|or|xor}.b32", "b32", "b32 b32", "amdflow::reduce_{o}_sync({1}, ({T})({0}))", warp=True),
    Row("bar.warp.sync", "", "b32", "amdflow::syncwarp({0})", warp=True),
    # addresses
    Row("cvta.to.shared.{t:u64|u32}", "u32", "u64", "@to_shared({0})", "offset into the workgroup's LDS"),
    Row("cvta.shared.{t:u64|u32}", "u64", "u64", "@from_shared({0})"),
    Row("cvta[.to].global.{t:u64}", "u64", "u64", "{0}", "global addresses are generic ones"),
    Row("isspacep.{s:shared|local|global}", "pred", "u64", "@in_{s}({0})"),
    # order, barriers, control
    Row("membar.cta", "", "", "@fence<__ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_WORKGROUP>()"),
    Row("membar.gl", "", "", "@fence<__ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT>()"),
    Row("membar.sys", "", "", "@fence<__ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM>()"),
    Row("cp.async.{w:commit_group|wait_all}", "", "", "@cp_async_wait()", "the copies are done already"),
    Row("griddepcontrol.{w:wait|launch_dependents}", "", "", "@grid_dependency()", "nothing to do", LAUNCH),
    Row("nanosleep.u32", "", "u32", "@nanosleep({0})", "s_sleep in steps of 64 cycles", SLEEP),
    Row("trap", "", "", "@trap()"),
    Row("brkpt", "", "", "@break_point()"),
)

SPECIAL_REGISTERS = {
    **{f"tid.{axis}": ("u32", f"threadIdx.{axis}", "") for axis in "xyz"},
    **{f"ntid.{axis}": ("u32", f"blockDim.{axis}", "") for axis in "xyz"},
    **{f"ctaid.{axis}": ("u32", f"blockIdx.{axis}", "") for axis in "xyz"},
    **{f"nctaid.{axis}": ("u32", f"gridDim.{axis}", "") for axis in "xyz"},
    "laneid": ("u32", "amdflow::lane_id()", ""),
    "warpid": ("u32", "amdflow::warp_id()", ""),
    "nwarpid": ("u32", "amdflow::ptx::nwarpid()", ""),
    **{f"lanemask_{name}": ("u32", f"amdflow::lanemask_{name}()", "") for name in ("eq", "lt", "le", "gt", "ge")},
    "smid": ("u32", "__smid()", ""),
    "clock": ("u32", "amdflow::ptx::clock_cycles()", CLOCK),
    "clock_hi": ("u32", "amdflow::ptx::clock_cycles() >> 32", CLOCK),
    "clock64": ("u64", "amdflow::ptx::clock_cycles()", CLOCK),
    "globaltimer": ("u64", "amdflow::ptx::globaltimer()", CLOCK),
    "globaltimer_lo": ("u32", "amdflow::ptx::globaltimer()", CLOCK),
    "globaltimer_hi": ("u32", "amdflow::ptx::globaltimer() >> 32", CLOCK),
    "WARP_SZ": ("u32", "amdflow::warp_size", ""),
}
"""Type, C++ text and remark of each special register."""
OF_WARPS = (
    "laneid",
    "warpid",
    "nwarpid",
    "lanemask_eq",
    "lanemask_lt",
    "lanemask_le",
    "lanemask_gt",
    "lanemask_ge",
    "WARP_SZ",
)
"""Registers that mean a warp of 32 lanes."""
