// Runs every kernel of idioms.cu (or of its migrated form, whichever KERNELS names) and prints what it computed.
#include KERNELS

#include <string>

namespace {

constexpr unsigned int THREADS = 224;  // seven warps: the last wave of 64 is half empty

unsigned int random_state = 12345;
int random_below(int limit) {
  random_state = random_state * 1664525u + 1013904223u;
  return static_cast<int>((random_state >> 8) % static_cast<unsigned int>(limit));
}

template <typename T> std::vector<T> random_values(std::size_t count, int limit) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random_below(limit));
  return values;
}

template <typename T> void print(const char* name, const std::vector<T>& values) {
  std::printf("%s", name);
  for (const T& value : values) std::printf(" %s", std::to_string(value).c_str());
  std::printf("\n");
}

}  // namespace

int main(int, char** arguments) {
  const unsigned int wave = static_cast<unsigned int>(std::atoi(arguments[1]));
  auto run = [&](const std::function<void()>& kernel, unsigned int grid = 1) {
    simulator::launch(wave, {grid, 1, 1}, {THREADS, 1, 1}, kernel);
  };

  const auto numbers = random_values<int>(1500, 1000);
  std::vector<int> sums(3);
  run([&] { block_sum(numbers.data(), sums.data(), 1500); }, 3);
  print("block_sum", sums);

  const auto reals = random_values<float>(THREADS, 10000);
  std::vector<float> maxima(THREADS);
  run([&] { warp_maximum(reals.data(), maxima.data()); });
  print("warp_maximum", maxima);

  const auto longs = random_values<long long>(THREADS, 1 << 23);
  std::vector<long long> scanned(THREADS);
  run([&] { block_scan(longs.data(), scanned.data()); });
  print("block_scan", scanned);

  std::vector<int> compacted(THREADS, -1), size(1);
  run([&] { compact(numbers.data(), compacted.data(), size.data()); });
  compacted.push_back(size[0]);
  print("compact", compacted);

  std::vector<int> counter(1), places(THREADS);
  run([&] { aggregate(numbers.data(), counter.data(), places.data()); });
  places.push_back(counter[0]);
  print("aggregate", places);

  std::vector<int> bins(7);
  run([&] { histogram(numbers.data(), bins.data()); });
  print("histogram", bins);

  auto keys = random_values<int>(THREADS, 3);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int>(i) / 4 + (keys[i] > 1);
  std::vector<int> segments(THREADS);
  run([&] { segmented_sum(keys.data(), numbers.data(), segments.data()); });
  print("segmented_sum", segments);

  const auto doubles = random_values<double>(THREADS, 100);
  std::vector<double> rows(THREADS);
  run([&] { row_sums(doubles.data(), rows.data()); });
  print("row_sums", rows);

  std::vector<int> counted(THREADS);
  run([&] { rounds(numbers.data(), counted.data()); });
  print("rounds", counted);

  std::vector<int> exchanged(THREADS);
  run([&] { exchange(numbers.data(), exchanged.data()); });
  print("exchange", exchanged);
  return 0;
}
