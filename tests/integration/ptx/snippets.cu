// Inline PTX as it stands in real CUDA code, one idiom a function. All of it must be rewritten and compile.
#include <cstdint>
#include <cuda_fp16.h>

__device__ __forceinline__ unsigned lane() { unsigned r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
__device__ unsigned lane_mask() { unsigned r; asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r)); return r; }
__device__ unsigned masks() {
  unsigned eq, le, gt, ge;
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  return eq ^ le ^ gt ^ ge;
}
__device__ unsigned places() {
  unsigned a, b, c, d, e, f;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(a));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(b));
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(c));
  asm("mov.u32 %0, %%tid.x; mov.u32 %1, %%ntid.y; mov.u32 %2, %%ctaid.z;" : "=r"(d), "=r"(e), "=r"(f));
  return a + b + c + d + e + f;
}
__device__ uint64_t now() {
  uint64_t t, u;
  unsigned v;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(u)::"memory");
  asm volatile("mov.u32 %0, %%clock;" : "=r"(v)::"memory");
  return t + u + v;
}
__device__ int fields(unsigned w, int s, uint64_t q) {
  unsigned a, b;
  int c;
  uint64_t d;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(a) : "r"(w), "r"(4), "r"(8));
  asm("bfi.b32 %0, %1, %2, 8, 16;" : "=r"(b) : "r"(w), "r"(a));
  asm("bfe.s32 %0, %1, 3, 5;" : "=r"(c) : "r"(s));
  asm("bfe.u64 %0, %1, %2, %3;" : "=l"(d) : "l"(q), "r"(7), "r"(9));
  return a + b + c + int(d);
}
template <int kLut> __device__ __forceinline__ int lop3(int a, int b, int c) {
  int res;
  asm volatile("lop3.b32 %0, %1, %2, %3, %4;\n" : "=r"(res) : "r"(a), "r"(b), "r"(c), "n"(kLut));
  return res;
}
template <int start_byte, int mask> __device__ inline uint32_t prmt(uint32_t a) {
  uint32_t res;
  asm volatile("prmt.b32 %0, %1, %2, %3;\n" : "=r"(res) : "r"(a), "n"(start_byte), "n"(mask));
  return res;
}
__device__ half2 dequantize(int q) {
  const int lo = lop3<(0xf0 & 0xcc) | 0xaa>(q, 0x000f000f, 0x64006400);
  uint32_t hi = prmt<0x43, 0x5410>(q);
  uint32_t sum;
  asm volatile("sub.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(lo), "r"(hi));
  asm("fma.rn.f16x2 %0, %1, %2, %3;\n" : "=r"(sum) : "r"(lo), "r"(hi), "r"(sum));
  return *reinterpret_cast<half2*>(&sum);
}
__device__ unsigned shifts(unsigned a, unsigned b, int n) {
  unsigned l, r, f, p, z, v;
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(l) : "r"(a), "r"(b), "r"(n));
  asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(n));
  asm("bfind.u32 %0, %1;" : "=r"(f) : "r"(a));
  asm("popc.b32 %0, %1;" : "=r"(p) : "r"(a));
  asm("clz.b64 %0, %1;" : "=r"(z) : "l"((unsigned long long)a << 3));
  asm("brev.b32 %0, %1;" : "=r"(v) : "r"(a));
  return l + r + f + p + z + v;
}
struct u128 { uint64_t low, high; };
__device__ u128 add128(u128 a, u128 b) {
  u128 r;
  asm("add.cc.u64 %0, %2, %4;\n\t"
      "addc.u64   %1, %3, %5;"
      : "=l"(r.low), "=l"(r.high)
      : "l"(a.low), "l"(a.high), "l"(b.low), "l"(b.high));
  return r;
}
__device__ void mul64(uint32_t* r, const uint32_t* a, const uint32_t* b) {
  asm("{\n\t"
      "mul.lo.u32      %0, %4, %6;    \n\t"  // low
      "mul.hi.u32      %1, %4, %6;    \n\t"
      "mad.lo.cc.u32   %1, %4, %7, %1;\n\t"
      "madc.hi.u32     %2, %4, %7,  0;\n\t"
      "mad.lo.cc.u32   %1, %5, %6, %1;\n\t"
      "madc.hi.cc.u32  %2, %5, %6, %2;\n\t"
      "madc.hi.u32     %3, %5, %7,  0;\n\t"
      "mad.lo.cc.u32   %2, %5, %7, %2;\n\t"
      "addc.u32        %3, %3, 0;     \n\t"
      "}"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
__device__ int whole(int a, int b, int c) {
  int r;
  asm("mad24.lo.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  asm("sad.s32 %0, %1, %2, %0;" : "+r"(r) : "r"(a), "r"(b));
  asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(r) : "r"(a), "r"(b));
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(r));
  asm("slct.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(r));
  long long wide;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(wide) : "r"(a), "r"(b));
  return r + int(wide);
}
__device__ float real(float x, float y) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  asm("lg2.approx.f32 %0, %0;" : "+f"(r));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(r + y));
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(r));
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(y));
  asm("tanh.approx.f32 %0, %1;" : "=f"(x) : "f"(y));
  asm("sin.approx.f32 %0, %1;" : "=f"(x) : "f"(x));
  asm("div.full.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(y));
  asm("fma.rn.ftz.f32 %0, %1, %2, %0;" : "+f"(x) : "f"(r), "f"(y));
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(y));
  asm("add.rz.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(y));
  asm("{ .reg .b64 t; mov.b64 t, {%1, %2}; mul.rn.f32x2 t, t, t; mov.b64 {%0, _}, t; }" : "=f"(x) : "f"(x), "f"(y));
  double d = x;
  asm("div.rp.f64 %0, %0, %1;" : "+d"(d) : "d"(d + 1));
  asm("fma.rn.f64 %0, %1, %1, %0;" : "+d"(d) : "d"(d));
  return float(d);
}
__device__ uint32_t narrow(float a, float b, int q) {
  uint32_t pair, packed;
  uint16_t one;
  int rounded;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(b), "f"(a));
  asm("{  cvt.rn.f16.f32 %0, %1;}\n" : "=h"(one) : "f"(a));
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(rounded) : "f"(a));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %0;" : "+r"(packed) : "r"(q), "r"(rounded));
  return pair + packed + one;
}
__device__ float half_to_float(unsigned short h) {
  float f;
  asm volatile("cvt.f32.f16 %0, %1;\n" : "=f"(f) : "h"(h));
  return f;
}
__device__ float4 load_streaming(const float4* p) {
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p));
  return v;
}
__device__ void store_once(int4* p, int4 v) {
  asm volatile("st.global.cs.v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ void guarded_load(void* out, const void* p, bool take) {
  uint4& data = *reinterpret_cast<uint4*>(out);
  asm volatile(
      "{\n"
      "  .reg .pred p;\n"
      "  setp.ne.b32 p, %5, 0;\n"
      "  mov.b32 %0, %6;\n"
      "  mov.b32 %1, %7;\n"
      "  mov.b32 %2, %8;\n"
      "  mov.b32 %3, %9;\n"
      "  @p ld.global.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];\n"
      "}\n"
      : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
      : "l"(p), "r"((int)take), "r"(data.x), "r"(data.y), "r"(data.z), "r"(data.w));
}
__device__ int order(int* flag, unsigned long long* sum, float* f) {
  int seen;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(flag), "r"(seen) : "memory");
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
  asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(seen) : "l"(flag), "r"(0), "r"(1) : "memory");
  asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(*sum) : "l"(sum + 1), "l"(7ull));
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(f), "f"(1.0f));
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(f), "r"(seen) : "memory");
  asm volatile("ld.volatile.global.u32 %0, [%1+4];" : "=r"(seen) : "l"(flag));
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("membar.gl;" ::: "memory");
  asm volatile("prefetch.global.L2 [%0];" ::"l"(flag));
  return seen;
}
__device__ uint32_t shared_address(const void* p) {
  uint32_t a;
  asm volatile("{ .reg .u64 u64addr; cvta.to.shared.u64 u64addr, %1; cvt.u32.u64 %0, u64addr; }" : "=r"(a) : "l"(p));
  return a;
}
template <int kBytes> __device__ void copy_async(uint32_t smem, const void* g, int bytes, bool guard) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" ::"r"(smem), "l"(g), "n"(kBytes));
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;\n" ::"r"(smem), "l"(g), "n"(kBytes), "r"(bytes));
  asm volatile(
      "{\n"
      "   .reg .pred p;\n"
      "   setp.ne.b32 p, %0, 0;\n"
      "   @p cp.async.cg.shared.global [%1], [%2], %3;\n"
      "}\n" ::"r"((int)guard), "r"(smem), "l"(g), "n"(kBytes));
}
__global__ void pipeline(const float4* in, float* out, int n) {
  __shared__ float4 tile[128];
  const uint32_t place = shared_address(&tile[threadIdx.x]);
  copy_async<16>(place, in + threadIdx.x, n > 3 ? 16 : 8, n > 7);
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
  asm volatile("bar.sync 0;");
  float v;
  asm volatile("ld.shared.f32 %0, [%1+8];" : "=f"(v) : "r"(place));
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(place), "f"(v * 2) : "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (n < 0) asm volatile("exit;");
  else asm volatile("nanosleep.u32 %0;" ::"r"(100));
  out[threadIdx.x] = v;
}
__device__ unsigned across(unsigned v, unsigned m) {
  unsigned r, p;
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(r) : "r"(v));
  asm volatile(
      "{ .reg .u32 r0; .reg .pred p; shfl.sync.up.b32 r0|p, %1, %2, %3, %4; @p add.u32 r0, r0, %5; mov.u32 %0, r0; }"
      : "=r"(r) : "r"(r), "r"(1), "r"(0), "r"(0xffffffffu), "r"(v));
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }" : "=r"(p) : "r"(v), "r"(m));
  asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(p) : "r"(v), "r"(m));
  asm volatile("redux.sync.add.u32 %0, %1, %2;" : "=r"(r) : "r"(v), "r"(m));
  asm volatile("activemask.b32 %0;" : "=r"(m));
  asm volatile("{ .reg .pred P1; elect.sync _|P1, %1; selp.b32 %0, 1, 0, P1; }" : "=r"(p) : "r"(m));
  return r + p + m;
}
#define ADD_CARRY(high, low, a, b)                      \
  asm("add.cc.u32 %0, %2, %3;\n\t"                      \
      "addc.u32 %1, 0, 0;"                              \
      : "=r"(low), "=r"(high) : "r"(a), "r"(b))
__device__ unsigned carry_of(unsigned a, unsigned b) {
  unsigned h, l;
  ADD_CARRY(h, l, a, b);
  return h + l;
}
__device__ void named(int& out, int first, int second) {
  asm("sub.s32 %[out], %[first], %[second];" : [out] "=r"(out) : [first] "r"(first), [second] "r"(second));
}
__device__ double parts(double x, float y) {
  int lo, hi;
  asm("mov.b64 {%0,%1}, %2;" : "=r"(lo), "=r"(hi) : "d"(x));
  asm("mov.b64 %0, {%1,%2};" : "=d"(x) : "r"(lo), "r"(hi ^ 1));
  unsigned b;
  asm("mov.b32 %0, %1;" : "=r"(b) : "f"(y));
  asm("{ .reg .b16 a, b; mov.b32 {a, b}, %1; mov.b32 %0, {b, a}; }" : "=r"(b) : "r"(b));
  return x + b;
}
