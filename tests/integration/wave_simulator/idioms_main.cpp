// Runs every kernel of idioms.cu (or of its migrated form, whichever KERNELS names) and prints what it computed: in the
// simulator, for the wave size that is given, or, compiled by a HIP compiler, on this machine's GPU.
#include KERNELS

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

#if defined(__HIPCC__)
void check(hipError_t status) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "%s\n", hipGetErrorString(status));
  std::exit(1);
}

// Memory that host and device both reach.
template <typename T> struct Managed {
  using value_type = T;
  Managed() = default;
  template <typename U> Managed(const Managed<U>&) {}
  T* allocate(std::size_t count) {
    void* memory = nullptr;
    check(hipMallocManaged(&memory, count * sizeof(T)));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { check(hipFree(memory)); }
  template <typename U> bool operator==(const Managed<U>&) const { return true; }
  template <typename U> bool operator!=(const Managed<U>&) const { return false; }
};
template <typename T> using Values = std::vector<T, Managed<T>>;

#define RUN(grid, kernel, ...)             \
  kernel<<<grid, THREADS>>>(__VA_ARGS__);  \
  check(hipGetLastError());                \
  check(hipDeviceSynchronize())
#else
template <typename T> using Values = std::vector<T>;

#define RUN(grid, kernel, ...) simulator::launch(wave, {grid, 1, 1}, {THREADS, 1, 1}, [&] { kernel(__VA_ARGS__); })
#endif

constexpr unsigned int THREADS = 224;  // seven warps: the last wave of 64 is half empty

unsigned int random_state = 12345;
int random_below(int limit) {
  random_state = random_state * 1664525u + 1013904223u;
  return static_cast<int>((random_state >> 8) % static_cast<unsigned int>(limit));
}

template <typename T> Values<T> random_values(std::size_t count, int limit) {
  Values<T> values(count);
  for (T& value : values) value = static_cast<T>(random_below(limit));
  return values;
}

template <typename T> void print(const char* name, const Values<T>& values) {
  std::printf("%s", name);
  for (const T& value : values) std::printf(" %s", std::to_string(value).c_str());
  std::printf("\n");
}

}  // namespace

int main(int, [[maybe_unused]] char** arguments) {
#if !defined(__HIPCC__)
  const unsigned int wave = static_cast<unsigned int>(std::atoi(arguments[1]));
#endif

  const auto numbers = random_values<int>(1500, 1000);
  Values<int> sums(3);
  RUN(3, block_sum, numbers.data(), sums.data(), 1500);
  print("block_sum", sums);

  const auto reals = random_values<float>(THREADS, 10000);
  Values<float> maxima(THREADS);
  RUN(1, warp_maximum, reals.data(), maxima.data());
  print("warp_maximum", maxima);

  const auto longs = random_values<long long>(THREADS, 1 << 23);
  Values<long long> scanned(THREADS);
  RUN(1, block_scan, longs.data(), scanned.data());
  print("block_scan", scanned);

  Values<int> compacted(THREADS, -1), size(1);
  RUN(1, compact, numbers.data(), compacted.data(), size.data());
  compacted.push_back(size[0]);
  print("compact", compacted);

  Values<int> counter(1), places(THREADS);
  RUN(1, aggregate, numbers.data(), counter.data(), places.data());
  places.push_back(counter[0]);
  print("aggregate", places);

  Values<int> bins(7);
  RUN(1, histogram, numbers.data(), bins.data());
  print("histogram", bins);

  auto keys = random_values<int>(THREADS, 3);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int>(i) / 4 + (keys[i] > 1);
  Values<int> segments(THREADS);
  RUN(1, segmented_sum, keys.data(), numbers.data(), segments.data());
  print("segmented_sum", segments);

  const auto doubles = random_values<double>(THREADS, 100);
  Values<double> rows(THREADS);
  RUN(1, row_sums, doubles.data(), rows.data());
  print("row_sums", rows);

  Values<int> counted(THREADS);
  RUN(1, rounds, numbers.data(), counted.data());
  print("rounds", counted);

  Values<int> exchanged(THREADS);
  RUN(1, exchange, numbers.data(), exchanged.data());
  print("exchange", exchanged);
  return 0;
}
