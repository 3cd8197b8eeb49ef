// SwiGLU: gate * sigmoid(gate) * up.
#include "fusedops/check.h"
#include "fusedops/fusedops.h"
#include "fusedops/ptx.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1024;
constexpr int kPrefetchAhead = 2;
constexpr float kLog2E = 1.4426950408889634f;

struct ElementOp {
  __device__ float operator()(float gate, float up) const {
    return gate * up / (1.0f + fusedops::ptx::exp2_approx(-gate * kLog2E));
  }
};

#include "elementwise.cuh"

}  // namespace

namespace fusedops {

void swiglu(const float* gate, const float* up, float* out, int n, cudaStream_t stream) {
  if (n == 0) {
    return;
  }
  const int wanted = (n + kThreads - 1) / kThreads;
  const int blocks = wanted < kBlocks ? wanted : kBlocks;
  FUSEDOPS_LAUNCH(elementwise_kernel, blocks, kThreads, 0, stream, gate, up, out, n);
}

}  // namespace fusedops
