#include <torch/extension.h>

torch::Tensor rmsnorm(const torch::Tensor& x, const torch::Tensor& weight, double eps);
torch::Tensor softmax(const torch::Tensor& x);
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);
void scale_(torch::Tensor x, double factor);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("rmsnorm", &rmsnorm, "RMSNorm over the last dimension", py::arg("x"), py::arg("weight"), py::arg("eps") = 1e-5);
  m.def("softmax", &softmax, "softmax over the last dimension", py::arg("x"));
  m.def("swiglu", &swiglu, "gate * sigmoid(gate) * up", py::arg("gate"), py::arg("up"));
  m.def("scale_", &scale_, "x *= factor, in place", py::arg("x"), py::arg("factor"));
}
