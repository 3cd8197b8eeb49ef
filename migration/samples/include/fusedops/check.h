// Error checks. A failed call throws with the expression, the place and the library's own words.
#pragma once

#include <stdexcept>
#include <string>

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace fusedops {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void raise(const char* expression, const char* what, const char* file, int line) {
  throw Error(std::string(file) + ":" + std::to_string(line) + ": " + expression + ": " + what);
}

}  // namespace fusedops

#define FUSEDOPS_CUDA_CHECK(expression)                                                            \
  do {                                                                                             \
    const cudaError_t fusedops_status = (expression);                                              \
    if (fusedops_status != cudaSuccess) {                                                          \
      ::fusedops::raise(#expression, cudaGetErrorString(fusedops_status), __FILE__, __LINE__);     \
    }                                                                                              \
  } while (0)

#define FUSEDOPS_CUBLAS_CHECK(expression)                                                          \
  do {                                                                                             \
    const cublasStatus_t fusedops_status = (expression);                                           \
    if (fusedops_status != CUBLAS_STATUS_SUCCESS) {                                                \
      ::fusedops::raise(#expression, cublasGetStatusString(fusedops_status), __FILE__, __LINE__);  \
    }                                                                                              \
  } while (0)

// Launches are asynchronous: this sees a bad launch configuration, not a fault inside the kernel.
#define FUSEDOPS_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)  \
  do {                                                                   \
    kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__);          \
    FUSEDOPS_CUDA_CHECK(cudaPeekAtLastError());                          \
  } while (0)
