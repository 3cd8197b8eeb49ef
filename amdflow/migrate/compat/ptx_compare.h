// amdflow compatibility header, copied into migrated trees that need it. Apache-2.0.
// PTX's comparisons (setp, set). Those with a u at the end hold for NaN as well.
#pragma once
#include "ptx_float.h"

namespace amdflow {
namespace ptx {
namespace detail {
template <typename T> AMDFLOW_FUNCTION T comparable(T x) { return x; }
AMDFLOW_FUNCTION float comparable(_Float16 x) { return widen(x); }
AMDFLOW_FUNCTION float comparable(bf16 x) { return widen(x); }
}  // namespace detail

#define AMDFLOW_PTX_COMPARE(name, expression)                          \
  template <typename T> AMDFLOW_FUNCTION bool is_##name(T x, T y) {    \
    const auto a = detail::comparable(x), b = detail::comparable(y);   \
    return expression;                                                 \
  }
AMDFLOW_PTX_COMPARE(eq, a == b)
AMDFLOW_PTX_COMPARE(ne, (a < b) || (a > b))
AMDFLOW_PTX_COMPARE(lt, a < b)
AMDFLOW_PTX_COMPARE(le, a <= b)
AMDFLOW_PTX_COMPARE(gt, a > b)
AMDFLOW_PTX_COMPARE(ge, a >= b)
AMDFLOW_PTX_COMPARE(equ, !((a < b) || (a > b)))
AMDFLOW_PTX_COMPARE(neu, !(a == b))
AMDFLOW_PTX_COMPARE(ltu, !(a >= b))
AMDFLOW_PTX_COMPARE(leu, !(a > b))
AMDFLOW_PTX_COMPARE(gtu, !(a <= b))
AMDFLOW_PTX_COMPARE(geu, !(a < b))
AMDFLOW_PTX_COMPARE(num, (a == a) && (b == b))
AMDFLOW_PTX_COMPARE(nan, (a != a) || (b != b))
#undef AMDFLOW_PTX_COMPARE

}  // namespace ptx
}  // namespace amdflow
