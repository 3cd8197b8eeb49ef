// Runs a GPU block on the CPU: each thread is a coroutine, the threads of a wave meet at every cross-lane instruction.
//
// A wave advances the way its hardware does: of all lanes that wait, those at the lowest instruction address go on
// together, the others are masked out. With code laid out in source order (-O0) diverged lanes meet again behind the
// branch. A lane that was masked out brings no value, and reading from it gives POISON.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace simulator {

constexpr std::uint32_t POISON = 0xbad0bad0u;
constexpr std::size_t STACK_BYTES = 64 * 1024;

struct Index { unsigned int x = 1, y = 1, z = 1; };

// What the lanes brought that met at one instruction; bit i of active says whether lane i of the wave was among them.
struct Meeting {
  std::uint64_t active = 0;
  unsigned char values[64][16] = {};

  template <typename T> T of(unsigned int lane) const {
    T value;
    std::memcpy(&value, values[lane], sizeof(T));
    return value;
  }
  bool has(unsigned int lane) const { return lane < 64 && (active >> lane & 1) != 0; }
};

struct Thread {
  ucontext_t context{};
  std::vector<char> stack = std::vector<char>(STACK_BYTES);
  Index index;
  unsigned int lane = 0;
  bool done = false;
  const void* waits_at = nullptr;
  unsigned char value[16] = {};
  std::shared_ptr<Meeting> meeting;
};

struct State {
  ucontext_t scheduler{};
  Thread* running = nullptr;
  Index block_index, block_size, grid_size;
  unsigned int wave_size = 32;
  const std::function<void()>* body = nullptr;
};

inline State state;
inline const char block_barrier = 0;

inline Thread& self() { return *state.running; }

inline void suspend_at(const void* place) {
  Thread& thread = self();
  thread.waits_at = place;
  swapcontext(&thread.context, &state.scheduler);
}

// Wait for the other lanes at this very instruction; give what each of them brought.
template <typename T> __attribute__((noinline)) const Meeting& meet(const T& value) {
  static_assert(sizeof(T) <= sizeof(Thread::value), "too large to exchange");
  std::memcpy(self().value, &value, sizeof(T));
  suspend_at(__builtin_return_address(0));
  return *self().meeting;
}

inline void wait_for_block() { suspend_at(&block_barrier); }

inline void start() {
  (*state.body)();
  self().done = true;
  swapcontext(&self().context, &state.scheduler);
}

inline void run_until_it_waits(Thread& thread) {
  state.running = &thread;
  thread.waits_at = nullptr;
  swapcontext(&state.scheduler, &thread.context);
}

// Lets one group of lanes of a wave pass; false if every lane is done or waits for the block.
inline bool advance(Thread* wave, unsigned int lanes) {
  const void* place = nullptr;
  for (unsigned int i = 0; i < lanes; ++i) {
    const void* candidate = wave[i].done || wave[i].waits_at == &block_barrier ? nullptr : wave[i].waits_at;
    if (candidate != nullptr && (place == nullptr || std::less<>()(candidate, place))) place = candidate;
  }
  if (place == nullptr) return false;
  auto meeting = std::make_shared<Meeting>();
  std::vector<Thread*> group;
  for (unsigned int i = 0; i < lanes; ++i) {
    if (!wave[i].done && wave[i].waits_at == place) {
      meeting->active |= std::uint64_t(1) << i;
      std::memcpy(meeting->values[i], wave[i].value, sizeof(wave[i].value));
      wave[i].meeting = meeting;
      group.push_back(&wave[i]);
    }
  }
  for (Thread* thread : group) run_until_it_waits(*thread);
  return true;
}

inline void run_block(std::vector<Thread>& threads, const std::function<void()>& body) {
  state.body = &body;
  for (Thread& thread : threads) {
    thread.done = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    makecontext(&thread.context, start, 0);
    run_until_it_waits(thread);
  }
  for (bool all_done = false; !all_done;) {
    bool moved = false;
    for (std::size_t first = 0; first < threads.size(); first += state.wave_size) {
      const unsigned int lanes = std::min<std::size_t>(state.wave_size, threads.size() - first);
      while (advance(&threads[first], lanes)) moved = true;
    }
    all_done = std::all_of(threads.begin(), threads.end(), [](const Thread& thread) { return thread.done; });
    for (Thread& thread : threads) {
      if (!thread.done && thread.waits_at == &block_barrier) {
        run_until_it_waits(thread);
        moved = true;
      }
    }
    if (!all_done && !moved) std::abort();
  }
}

// Runs the body once for each thread of the grid, block after block.
inline void launch(unsigned int wave_size, Index grid, Index block, const std::function<void()>& body) {
  state.wave_size = wave_size;
  state.grid_size = grid;
  state.block_size = block;
  std::vector<Thread> threads(block.x * block.y * block.z);
  for (unsigned int i = 0; i < threads.size(); ++i) {
    threads[i].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    threads[i].lane = i % wave_size;
  }
  for (unsigned int i = 0; i < grid.x * grid.y * grid.z; ++i) {
    state.block_index = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
    run_block(threads, body);
  }
}

}  // namespace simulator
