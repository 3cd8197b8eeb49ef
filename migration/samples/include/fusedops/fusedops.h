// fusedops: the handful of fused kernels that a transformer layer needs.
//
// Every pointer is a device pointer. Calls are asynchronous in `stream`; failures throw fusedops::Error.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace fusedops {

// y[r][c] = x[r][c] * rsqrt(mean(x[r]^2) + eps) * weight[c]. `cols` is even.
void rmsnorm(const __half* x, const __half* weight, __half* y, int rows, int cols, float eps, cudaStream_t stream);

// Softmax over the last dimension of x[rows][cols]. `cols` is at most kSoftmaxMaxCols.
constexpr int kSoftmaxMaxCols = 24 * 1024;
void softmax(const float* x, float* y, int rows, int cols, cudaStream_t stream);

// out = gate * sigmoid(gate) * up, elementwise.
void swiglu(const float* gate, const float* up, float* out, int n, cudaStream_t stream);

// Rotates pairs (x[2i], x[2i+1]) of qk[tokens][heads][dim] in place.
// table[position][dim / 2] holds (cos, sin); positions[tokens] picks the row of a token.
void rope(float* qk, const float2* table, const int* positions, int tokens, int heads, int dim, int max_position, cudaStream_t stream);

// *out += sum of x[0..n). The caller zeroes *out.
void sum(const float* x, float* out, int n, cudaStream_t stream);

// *out += how many of x[0..n) are infinite or not a number. The caller zeroes *out.
void count_nonfinite(const float* x, unsigned int* out, int n, cudaStream_t stream);

// Appends the keys whose bits [shift, shift + bits) equal `digit` to out, in any order of warps; *count grows by how many.
void select_digit(const uint32_t* keys, uint32_t* out, unsigned int* count, int n, int shift, int bits, uint32_t digit, cudaStream_t stream);

// c[m][n] = a[m][k] * b[n][k]^T, half in, float out, without cuBLAS. m and k are multiples of 16, n of 8.
void tile_gemm(const __half* a, const __half* b, float* c, int m, int n, int k, cudaStream_t stream);

// scores[tokens][tokens] = scale * q[tokens][64] * k[tokens][64]^T. `tokens` is a multiple of 16.
void attention_scores(const __half* q, const __half* k, float* scores, int tokens, float scale, cudaStream_t stream);

// Row-major matrix products through cuBLAS.
class Gemm {
 public:
  Gemm();
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // c[m][n] = a[m][k] * b[k][n], half in and out, float sums.
  void run(const __half* a, const __half* b, __half* c, int m, int n, int k, cudaStream_t stream);

  // Keeps `count` multiprocessors free for communication kernels.
  void leave_free(int count);

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace fusedops
