// What a scaffold needs besides the code it is about: checked HIP calls, filled buffers, comparison. C++17, HIP runtime only.
#pragma once
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace amdflow_scaffold {

constexpr int kNotWritten = 77;  // test runners read it as "skipped", never as "passed"

inline void check(hipError_t status, const char* what, const char* file, int line) {
  if (status != hipSuccess) {
    std::fprintf(stderr, "%s:%d: %s failed: %s\n", file, line, what, hipGetErrorString(status));
    std::exit(1);
  }
}
#define SCAFFOLD_CHECK(call) ::amdflow_scaffold::check((call), #call, __FILE__, __LINE__)

[[noreturn]] inline void not_written(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: %s is not written yet. Nothing was tested.\n", file, line, what);
  std::exit(kNotWritten);
}
#define SCAFFOLD_NOT_WRITTEN(what) ::amdflow_scaffold::not_written(what, __FILE__, __LINE__)

// Stands in for a functor that a template takes.
struct Plus {
  template <typename A, typename B>
  __host__ __device__ auto operator()(A a, B b) const { return a + b; }
};

// Values that differ from element to element and are the same in every run.
template <typename T>
T value_at(std::size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return i % 3 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>((i * 37 + 11) % 101);
  } else if constexpr (std::is_constructible_v<T, float> && !std::is_pointer_v<T>) {
    return T(static_cast<float>((i * 37 + 11) % 101) / 101.0f - 0.25f);
  } else {
    T value;
    std::memset(static_cast<void*>(&value), 0, sizeof(T));
    return value;
  }
}

template <typename T>
bool is_same(const T& a, const T& b, double tolerance) {
  if constexpr (std::is_pointer_v<T> || !std::is_convertible_v<T, float>) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const double x = static_cast<double>(static_cast<float>(a)), y = static_cast<double>(static_cast<float>(b));
    return (std::isnan(x) && std::isnan(y)) || x == y || std::fabs(x - y) <= tolerance * std::fmax(1.0, std::fabs(y));
  }
}

// Values on the host and on the device, and a second copy on the host for what the reference computes.
template <typename T>
class Buffer {
 public:
  Buffer(const char* name, std::size_t size) : name_(name), size_(size), host_(size * sizeof(T)), expected_(size * sizeof(T)) {
    for (std::size_t i = 0; i < size_; ++i) {
      const T value = value_at<T>(i);
      std::memcpy(static_cast<void*>(&host_[i * sizeof(T)]), &value, sizeof(T));
    }
    expected_ = host_;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { (void)hipFree(device_); }

  T* host() { return reinterpret_cast<T*>(host_.data()); }          // inputs before to_device(), results after to_host()
  T* expected() { return reinterpret_cast<T*>(expected_.data()); }  // what the reference works on

  // For a host function, which may read the memory itself or hand it to a kernel.
  T* on_both() {
    if (device_ == nullptr) SCAFFOLD_CHECK(hipMallocManaged(reinterpret_cast<void**>(&device_), host_.size()));
    std::memcpy(static_cast<void*>(device_), host_.data(), host_.size());
    return device_;
  }
  T* to_device() {
    if (device_ == nullptr) SCAFFOLD_CHECK(hipMalloc(reinterpret_cast<void**>(&device_), host_.size()));
    SCAFFOLD_CHECK(hipMemcpy(device_, host_.data(), host_.size(), hipMemcpyHostToDevice));
    return device_;
  }
  void to_host() { SCAFFOLD_CHECK(hipMemcpy(host_.data(), device_, host_.size(), hipMemcpyDeviceToHost)); }

  // How many elements differ from the reference; the first few are printed.
  std::size_t differences(double tolerance) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (is_same(host()[i], expected()[i], tolerance)) continue;
      if (found++ < 5) show(i);
    }
    std::printf("%s: %zu of %zu elements differ\n", name_, found, size_);
    return found;
  }

 private:
  void show(std::size_t i) {
    if constexpr (std::is_convertible_v<T, float> && !std::is_pointer_v<T>) {
      std::printf("%s[%zu] is %g, expected %g\n", name_, i, static_cast<double>(static_cast<float>(host()[i])),
                  static_cast<double>(static_cast<float>(expected()[i])));
    } else {
      std::printf("%s[%zu] differs\n", name_, i);
    }
  }

  const char* name_;
  std::size_t size_;
  std::vector<unsigned char> host_, expected_;
  T* device_ = nullptr;
};

}  // namespace amdflow_scaffold
