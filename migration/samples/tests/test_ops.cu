// Each op against a plain loop on the CPU. Prints a line a check, exits with 1 when one is off.
// Names as arguments run those checks only: a fault on the GPU ends the whole process.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fusedops/check.h"
#include "fusedops/fusedops.h"

namespace {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t n) : n_(n) {
    FUSEDOPS_CUDA_CHECK(cudaMalloc(&data_, n * sizeof(T)));
    FUSEDOPS_CUDA_CHECK(cudaMemset(data_, 0, n * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    FUSEDOPS_CUDA_CHECK(cudaMemcpy(data_, host.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() { return data_; }
  std::vector<T> host() const {
    std::vector<T> copy(n_);
    FUSEDOPS_CUDA_CHECK(cudaDeviceSynchronize());
    FUSEDOPS_CUDA_CHECK(cudaMemcpy(copy.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  T* data_ = nullptr;
  size_t n_;
};

std::mt19937 generator(7);
int failures = 0;

std::vector<float> random_floats(size_t n) {
  std::uniform_real_distribution<float> distribution(-2.0f, 2.0f);
  std::vector<float> values(n);
  for (float& value : values) {
    value = distribution(generator);
  }
  return values;
}

std::vector<__half> to_half(const std::vector<float>& values) {
  std::vector<__half> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), [](float v) { return __float2half(v); });
  return halves;
}

std::vector<float> to_float(const std::vector<__half>& halves) {
  std::vector<float> values(halves.size());
  std::transform(halves.begin(), halves.end(), values.begin(), [](__half h) { return __half2float(h); });
  return values;
}

void report(const char* name, bool good, double error) {
  std::printf("%s %-18s error %.3g\n", good ? "ok  " : "FAIL", name, error);
  failures += good ? 0 : 1;
}

void compare(const char* name, const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  double worst = 0.0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::fabs(got[i] - want[i]) / std::max(1.0, std::fabs(want[i]));
    worst = std::isfinite(got[i]) ? std::max(worst, error) : std::numeric_limits<double>::infinity();
    if (std::isinf(worst)) {
      break;
    }
  }
  report(name, worst <= tolerance, worst);
}

void test_rmsnorm(const char* name) {
  const int rows = 37, cols = 1026;
  const std::vector<__half> x = to_half(random_floats(size_t(rows) * cols)), weight = to_half(random_floats(cols));
  DeviceArray<__half> dx(x), dw(weight), dy(x.size());
  fusedops::rmsnorm(dx.get(), dw.get(), dy.get(), rows, cols, 1e-5f, nullptr);

  const std::vector<float> fx = to_float(x), fw = to_float(weight);
  std::vector<double> want(x.size());
  for (int r = 0; r < rows; ++r) {
    double squares = 0.0;
    for (int c = 0; c < cols; ++c) {
      squares += double(fx[r * cols + c]) * fx[r * cols + c];
    }
    const double scale = 1.0 / std::sqrt(squares / cols + 1e-5);
    for (int c = 0; c < cols; ++c) {
      want[r * cols + c] = fx[r * cols + c] * scale * fw[c];
    }
  }
  compare(name, to_float(dy.host()), want, 2e-3);
}

void test_softmax(const char* name, int rows, int cols) {
  const std::vector<float> x = random_floats(size_t(rows) * cols);
  DeviceArray<float> dx(x), dy(x.size());
  fusedops::softmax(dx.get(), dy.get(), rows, cols, nullptr);

  // Times `cols`, so that the comparison sees numbers near one.
  std::vector<double> want(x.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0.0;
    for (int c = 0; c < cols; ++c) {
      sum += std::exp(double(x[size_t(r) * cols + c]));
    }
    for (int c = 0; c < cols; ++c) {
      want[size_t(r) * cols + c] = std::exp(double(x[size_t(r) * cols + c])) / sum * cols;
    }
  }
  std::vector<float> got = dy.host();
  for (float& value : got) {
    value *= cols;
  }
  compare(name, got, want, 1e-4);
}

void test_swiglu(const char* name) {
  const int n = 1000003;
  const std::vector<float> gate = random_floats(n), up = random_floats(n);
  DeviceArray<float> dg(gate), du(up), dout(n);
  fusedops::swiglu(dg.get(), du.get(), dout.get(), n, nullptr);
  std::vector<double> want(n);
  for (int i = 0; i < n; ++i) {
    want[i] = double(gate[i]) / (1.0 + std::exp(-double(gate[i]))) * up[i];
  }
  compare(name, dout.host(), want, 1e-5);
}

void test_rope(const char* name) {
  const int tokens = 9, heads = 3, dim = 80, positions_max = 64, pairs = dim / 2;
  const std::vector<float> x = random_floats(size_t(tokens) * heads * dim);
  std::vector<float2> table(size_t(positions_max) * pairs);
  for (int p = 0; p < positions_max; ++p) {
    for (int i = 0; i < pairs; ++i) {
      const double angle = p * std::pow(10000.0, -double(i) / pairs);
      table[p * pairs + i] = make_float2(float(std::cos(angle)), float(std::sin(angle)));
    }
  }
  std::vector<int> positions(tokens);
  for (int t = 0; t < tokens; ++t) {
    positions[t] = (t * 7 + 3) % positions_max;
  }
  DeviceArray<float> dx(x);
  DeviceArray<float2> dtable(table);
  DeviceArray<int> dpositions(positions);
  fusedops::rope(dx.get(), dtable.get(), dpositions.get(), tokens, heads, dim, positions_max, nullptr);

  std::vector<double> want(x.size());
  for (size_t v = 0; v < x.size() / 2; ++v) {
    const int token = int(v / (size_t(heads) * pairs)), i = int(v % pairs);
    const float2 angle = table[positions[token] * pairs + i];
    want[2 * v] = double(x[2 * v]) * angle.x - double(x[2 * v + 1]) * angle.y;
    want[2 * v + 1] = double(x[2 * v]) * angle.y + double(x[2 * v + 1]) * angle.x;
  }
  compare(name, dx.host(), want, 1e-5);
}

void test_sum(const char* name) {
  const int n = 300001;
  const std::vector<float> x(n, 1.0f);
  DeviceArray<float> dx(x), dout(1);
  fusedops::sum(dx.get(), dout.get(), n, nullptr);
  compare(name, dout.host(), {double(n)}, 1e-6);
}

void test_count_nonfinite(const char* name) {
  const int n = 100000;
  std::vector<float> x = random_floats(n);
  unsigned int want = 0;
  for (int i = 5; i < n; i += 41) {
    x[i] = want % 2 ? std::numeric_limits<float>::infinity() : std::nanf("");
    ++want;
  }
  DeviceArray<float> dx(x);
  DeviceArray<unsigned int> dout(1);
  fusedops::count_nonfinite(dx.get(), dout.get(), n, nullptr);
  compare(name, {float(dout.host()[0])}, {double(want)}, 0.0);
}

void test_select_digit(const char* name) {
  const int n = 100003, shift = 9, bits = 3;
  const uint32_t digit = 5;
  std::vector<uint32_t> keys(n), want;
  for (uint32_t& key : keys) {
    key = generator();
    if (((key >> shift) & ((1u << bits) - 1)) == digit) {
      want.push_back(key);
    }
  }
  DeviceArray<uint32_t> dkeys(keys), dout(n);
  DeviceArray<unsigned int> dcount(1);
  fusedops::select_digit(dkeys.get(), dout.get(), dcount.get(), n, shift, bits, digit, nullptr);
  std::vector<uint32_t> got = dout.host();
  got.resize(std::min<size_t>(dcount.host()[0], n));
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  report(name, got == want, std::fabs(double(got.size()) - double(want.size())));
}

std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, int m, int n, int k, bool b_transposed, double scale) {
  std::vector<double> c(size_t(m) * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int l = 0; l < k; ++l) {
        sum += double(a[size_t(i) * k + l]) * (b_transposed ? b[size_t(j) * k + l] : b[size_t(l) * n + j]);
      }
      c[size_t(i) * n + j] = sum * scale;
    }
  }
  return c;
}

void test_gemm(const char* name) {
  const int m = 70, n = 96, k = 130;
  const std::vector<__half> a = to_half(random_floats(size_t(m) * k)), b = to_half(random_floats(size_t(k) * n));
  DeviceArray<__half> da(a), db(b), dc(size_t(m) * n);
  fusedops::Gemm gemm;
  gemm.leave_free(4);
  gemm.run(da.get(), db.get(), dc.get(), m, n, k, nullptr);
  compare(name, to_float(dc.host()), product(to_float(a), to_float(b), m, n, k, false, 1.0), 5e-3);
}

void test_tile_gemm(const char* name) {
  const int m = 64, n = 40, k = 96;
  const std::vector<__half> a = to_half(random_floats(size_t(m) * k)), b = to_half(random_floats(size_t(n) * k));
  DeviceArray<__half> da(a), db(b);
  DeviceArray<float> dc(size_t(m) * n);
  fusedops::tile_gemm(da.get(), db.get(), dc.get(), m, n, k, nullptr);
  compare(name, dc.host(), product(to_float(a), to_float(b), m, n, k, true, 1.0), 1e-4);
}

void test_attention_scores(const char* name) {
  const int tokens = 80;
  const std::vector<__half> q = to_half(random_floats(size_t(tokens) * 64)), k = to_half(random_floats(size_t(tokens) * 64));
  DeviceArray<__half> dq(q), dk(k);
  DeviceArray<float> ds(size_t(tokens) * tokens);
  fusedops::attention_scores(dq.get(), dk.get(), ds.get(), tokens, 0.125f, nullptr);
  compare(name, ds.host(), product(to_float(q), to_float(k), tokens, tokens, 64, true, 0.125), 1e-4);
}

struct Check {
  const char* name;
  void (*run)(const char* name);
};

const Check kChecks[] = {
    {"rmsnorm", test_rmsnorm},
    {"softmax_short", [](const char* name) { test_softmax(name, 37, 301); }},
    {"softmax_long", [](const char* name) { test_softmax(name, 5, 5000); }},
    {"softmax_80_kib", [](const char* name) { test_softmax(name, 3, 20480); }},
    {"swiglu", test_swiglu},
    {"rope", test_rope},
    {"sum", test_sum},
    {"count_nonfinite", test_count_nonfinite},
    {"select_digit", test_select_digit},
    {"gemm", test_gemm},
    {"tile_gemm", test_tile_gemm},
    {"attention_scores", test_attention_scores},
};

}  // namespace

int main(int argc, char** argv) {
  const std::set<std::string> wanted(argv + 1, argv + argc);
  try {
    for (const Check& check : kChecks) {
      if (wanted.empty() || wanted.count(check.name) != 0) {
        check.run(check.name);
      }
    }
  } catch (const fusedops::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}
