// Row-major GEMM on cuBLAS, which is column-major: C^T = B^T * A^T is the same memory.
#include "fusedops/check.h"
#include "fusedops/fusedops.h"

namespace fusedops {

Gemm::Gemm() {
  FUSEDOPS_CUBLAS_CHECK(cublasCreate(&handle_));
  FUSEDOPS_CUBLAS_CHECK(cublasSetMathMode(handle_, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
}

Gemm::~Gemm() {
  if (handle_ != nullptr) {
    cublasDestroy(handle_);
  }
}

void Gemm::run(const __half* a, const __half* b, __half* c, int m, int n, int k, cudaStream_t stream) {
  const float alpha = 1.0f;
  const float beta = 0.0f;
  FUSEDOPS_CUBLAS_CHECK(cublasSetStream(handle_, stream));
  FUSEDOPS_CUBLAS_CHECK(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b, CUDA_R_16F, n, a, CUDA_R_16F, k, &beta, c, CUDA_R_16F, n,
                                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
}

void Gemm::leave_free(int count) {
  int device = 0;
  int all = 0;
  FUSEDOPS_CUDA_CHECK(cudaGetDevice(&device));
  FUSEDOPS_CUDA_CHECK(cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, device));
  FUSEDOPS_CUBLAS_CHECK(cublasSetSmCountTarget(handle_, count < all ? all - count : 1));
}

}  // namespace fusedops
