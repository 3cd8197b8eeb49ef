// The ops on torch tensors. They run on the current stream of the tensor's device.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include "fusedops/fusedops.h"

namespace {

template <typename T>
__global__ void scale_inplace_kernel(T* values, float factor, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) {
    values[i] = static_cast<T>(static_cast<float>(values[i]) * factor);
  }
}

void check(const torch::Tensor& tensor, const char* name, torch::ScalarType type) {
  TORCH_CHECK(tensor.is_cuda(), name, " must be on a CUDA device");
  TORCH_CHECK(tensor.is_contiguous(), name, " must be contiguous");
  TORCH_CHECK(tensor.scalar_type() == type, name, " has the wrong dtype");
}

const __half* halves(const torch::Tensor& tensor) { return reinterpret_cast<const __half*>(tensor.data_ptr<at::Half>()); }

}  // namespace

torch::Tensor rmsnorm(const torch::Tensor& x, const torch::Tensor& weight, double eps) {
  check(x, "x", torch::kHalf);
  check(weight, "weight", torch::kHalf);
  TORCH_CHECK(weight.numel() == x.size(-1), "weight must have as many elements as x's last dimension");
  const c10::cuda::CUDAGuard guard(x.device());
  torch::Tensor y = torch::empty_like(x);
  const int cols = static_cast<int>(x.size(-1));
  fusedops::rmsnorm(halves(x), halves(weight), reinterpret_cast<__half*>(y.data_ptr<at::Half>()), static_cast<int>(x.numel() / cols), cols,
                    static_cast<float>(eps), at::cuda::getCurrentCUDAStream());
  return y;
}

torch::Tensor softmax(const torch::Tensor& x) {
  check(x, "x", torch::kFloat);
  const c10::cuda::CUDAGuard guard(x.device());
  torch::Tensor y = torch::empty_like(x);
  const int cols = static_cast<int>(x.size(-1));
  fusedops::softmax(x.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(x.numel() / cols), cols, at::cuda::getCurrentCUDAStream());
  return y;
}

torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up) {
  check(gate, "gate", torch::kFloat);
  check(up, "up", torch::kFloat);
  TORCH_CHECK(gate.sizes() == up.sizes(), "gate and up must have the same shape");
  const c10::cuda::CUDAGuard guard(gate.device());
  torch::Tensor out = torch::empty_like(gate);
  fusedops::swiglu(gate.data_ptr<float>(), up.data_ptr<float>(), out.data_ptr<float>(), static_cast<int>(gate.numel()), at::cuda::getCurrentCUDAStream());
  return out;
}

void scale_(torch::Tensor x, double factor) {
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t n = x.numel();
  if (n == 0) {
    return;
  }
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "scale_", [&] {
    scale_inplace_kernel<scalar_t><<<static_cast<unsigned int>((n + 255) / 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), static_cast<float>(factor), n);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
