// Every function of the compatibility library's warp.h against the reference, in every lane, for waves of 32 and 64 lanes.
#include "warp.h"

#include "cuda_reference.h"

namespace {

constexpr unsigned int THREADS = 96;  // with waves of 64 the second wave is half empty
unsigned int wave_size;
long checks, wrong;

template <typename T> void expect_same(const char* what, unsigned int thread, const T& got, const T& wanted) {
  ++checks;
  if (!reference::same_bits(got, wanted) && ++wrong <= 20) {
    std::printf("wave %u, thread %u: %s differs\n", wave_size, thread, what);
  }
}

// Values that a thread brings: different in each thread, and in each byte of a wide type.
struct Bytes6 { std::uint16_t part[3]; };
struct Bytes16 { float x, y, z, w; };
struct Half { std::uint16_t bits; };
struct Half2 { Half x, y; };

template <typename T> T value_of(unsigned int thread, unsigned int salt) {
  unsigned char bytes[sizeof(T)];
  for (unsigned int i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<unsigned char>(thread * 37 + i * 11 + salt);
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
template <> bool value_of<bool>(unsigned int thread, unsigned int salt) { return (thread * 7 + salt) % 3 == 0; }
template <> float value_of<float>(unsigned int thread, unsigned int salt) { return thread * 0.37f - salt; }
template <> double value_of<double>(unsigned int thread, unsigned int salt) { return thread * 1e-7 - salt; }

// Which lanes of each warp take part. The warps of one wave differ from each other.
struct Participants {
  unsigned int lanes[3];
  bool has(unsigned int thread) const { return (lanes[thread / 32] >> (thread % 32) & 1) != 0; }
};

const std::vector<Participants> PARTICIPANTS = {
    {{~0u, ~0u, ~0u}},
    {{~0u, 0u, ~0u}},
    {{1u, 0x80000000u, 0x00010000u}},
    {{0xffffu, 0xffff0000u, ~0u}},
    {{0x55555555u, 0xaaaaaaaau, 0x0f0f0f0fu}},
    {{0x12345679u, 0x9abcdef0u, 0x7ffffffeu}},
};
const unsigned int SPLITS[] = {~0u, 0x0000ffffu, 0x33333333u, 0x01000010u};

template <typename Body> void in_each_thread(const Participants& participants, Body body) {
  simulator::launch(wave_size, {1, 1, 1}, {THREADS, 1, 1}, [&] {
    if (participants.has(threadIdx.x)) body(threadIdx.x);
  });
}

// CUDA has overloads from int on: smaller integers arrive as int.
template <typename T> using Promoted = amdflow::detail::promoted_t<T>;

template <typename T> void check_shuffles(const char* type) {
  using reference::Mode;
  for (const Participants& participants : PARTICIPANTS) {
    in_each_thread(participants, [&](unsigned int thread) {
      const unsigned int lane = thread % 32, first = thread - lane;
      const T own = value_of<T>(thread, 1);
      auto compare = [&](Mode mode, const Promoted<T>& got, unsigned int operand, int width) {
        const unsigned int source = reference::shuffle_source(mode, lane, operand, width);
        if (!participants.has(first + source)) return;  // undefined in CUDA
        expect_same(type, thread, got, static_cast<Promoted<T>>(value_of<T>(first + source, 1)));
      };
      for (int width : {1, 4, 8, 16, 32}) {
        for (unsigned int operand : {0u, 1u, 5u, 16u, 31u, 45u}) {
          const int signed_operand = static_cast<int>(operand);
          compare(Mode::index, amdflow::shfl_sync(0xffffffff, own, signed_operand, width), operand, width);
          compare(Mode::up, amdflow::shfl_up_sync(~0ull, own, operand, width), operand, width);
          compare(Mode::down, amdflow::shfl_down_sync(-1, own, operand, width), operand, width);
          compare(Mode::butterfly, amdflow::shfl_xor_sync(0xffffffffu, own, signed_operand, width), operand, width);
        }
      }
      compare(Mode::index, amdflow::shfl(own, -1), ~0u, 32);
      compare(Mode::index, amdflow::shfl(own, static_cast<int>(lane + 3)), lane + 3, 32);
      compare(Mode::up, amdflow::shfl_up(own, 2), 2, 32);
      compare(Mode::down, amdflow::shfl_down(own, 7), 7, 32);
      compare(Mode::butterfly, amdflow::shfl_xor(own, 16), 16, 32);
    });
  }
}

// Groups of lanes with masks of their own call together, as after a match: each mask counts for itself.
template <typename Body> void with_masks(Body body) {
  for (const Participants& participants : PARTICIPANTS) {
    for (unsigned int split : SPLITS) {
      in_each_thread(participants, [&](unsigned int thread) {
        const unsigned int side = (split >> (thread % 32) & 1) != 0 ? split : ~split;
        const unsigned int present = participants.lanes[thread / 32];
        body(thread, present & side, present);
      });
    }
  }
}

void check_votes() {
  with_masks([](unsigned int thread, unsigned int mask, unsigned int present) {
    const unsigned int first = thread / 32 * 32;
    for (unsigned int salt = 0; salt < 4; ++salt) {
      auto predicate = [&](unsigned int lane) -> int {
        const unsigned int mixed = (first + lane) * 2654435761u >> (7 * salt + 3);
        return salt == 3 ? 1 : static_cast<int>(mixed & 2u);
      };
      const int own = predicate(thread % 32);
      const unsigned int votes = reference::ballot(mask, predicate);
      expect_same("ballot_sync", thread, amdflow::ballot_sync(mask, own), votes);
      expect_same("ballot_sync, 64 bits", thread, amdflow::ballot_sync(mask | 0xabcd00000000ull, own), votes);
      expect_same("any_sync", thread, amdflow::any_sync(mask, own), static_cast<int>(votes != 0));
      expect_same("all_sync", thread, amdflow::all_sync(mask, own), static_cast<int>(votes == mask));
      expect_same("uni_sync", thread, amdflow::uni_sync(mask, own), static_cast<int>(votes == 0 || votes == mask));
      const unsigned int everyone = reference::ballot(present, predicate);
      expect_same("ballot", thread, amdflow::ballot(own), everyone);
      expect_same("any", thread, amdflow::any(own), static_cast<int>(everyone != 0));
      expect_same("all", thread, amdflow::all(own), static_cast<int>(everyone == present));
    }
    expect_same("activemask", thread, amdflow::activemask(), present);
    // A mask that names lanes which are gone: they do not count.
    expect_same("all_sync of a full mask", thread, amdflow::all_sync(~0u, 1), 1);
  });
}

template <typename T> void check_match(const char* type) {
  with_masks([&](unsigned int thread, unsigned int mask, unsigned int) {
    const unsigned int lane = thread % 32, first = thread - lane;
    for (unsigned int kinds : {1u, 2u, 5u, 32u}) {
      auto value = [&](unsigned int i) { return value_of<T>((first + i) * 2654435761u % kinds + 1, 3); };
      const unsigned int same = reference::match_any(mask, lane, value);
      expect_same(type, thread, amdflow::match_any_sync(mask, value(lane)), same);
      int predicate = -1;
      const unsigned int all = amdflow::match_all_sync(mask, value(lane), &predicate);
      const bool equal = reference::ballot(mask, [&](unsigned int i) {
        return reference::match_any(mask, i, value) == mask;
      }) == mask;
      expect_same(type, thread, all, equal ? mask : 0u);
      expect_same(type, thread, predicate, static_cast<int>(equal));
    }
  });
}

template <typename T> void check_reductions(const char* type) {
  with_masks([&](unsigned int thread, unsigned int mask, unsigned int) {
    const unsigned int first = thread / 32 * 32;
    using Wide = Promoted<T>;
    auto value = [&](unsigned int i) -> Wide { return static_cast<T>((first + i) * 2654435761u); };
    const T own = static_cast<T>(value(thread % 32));
    auto add = [](Wide a, Wide b) -> Wide { return static_cast<Wide>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); };
    expect_same(type, thread, amdflow::reduce_add_sync(mask, own), reference::reduce<Wide>(mask, value, add));
    expect_same(type, thread, amdflow::reduce_min_sync(mask, own),
                reference::reduce<Wide>(mask, value, [](Wide a, Wide b) { return b < a ? b : a; }));
    expect_same(type, thread, amdflow::reduce_max_sync(mask, own),
                reference::reduce<Wide>(mask, value, [](Wide a, Wide b) { return a < b ? b : a; }));
    auto bits = [&](unsigned int i) { return static_cast<unsigned int>(value(i)); };
    using Bits = unsigned int;
    expect_same(type, thread, amdflow::reduce_and_sync(mask, static_cast<Bits>(own)),
                reference::reduce<Bits>(mask, bits, [](Bits a, Bits b) { return a & b; }));
    expect_same(type, thread, amdflow::reduce_or_sync(mask, static_cast<Bits>(own)),
                reference::reduce<Bits>(mask, bits, [](Bits a, Bits b) { return a | b; }));
    expect_same(type, thread, amdflow::reduce_xor_sync(mask, static_cast<Bits>(own)),
                reference::reduce<Bits>(mask, bits, [](Bits a, Bits b) { return a ^ b; }));
  });
}

void check_lanes() {
  simulator::launch(wave_size, {1, 1, 1}, {16, 3, 2}, [] {
    const unsigned int thread = threadIdx.x + 16 * (threadIdx.y + 3 * threadIdx.z), lane = thread % 32;
    unsigned int below = 0;
    for (unsigned int i = 0; i < lane; ++i) below |= 1u << i;
    expect_same("lane_id", thread, amdflow::lane_id(), lane);
    expect_same("warp_id", thread, amdflow::warp_id(), thread / 32);
    expect_same("lanemask_eq", thread, amdflow::lanemask_eq(), 1u << lane);
    expect_same("lanemask_lt", thread, amdflow::lanemask_lt(), below);
    expect_same("lanemask_le", thread, amdflow::lanemask_le(), below | 1u << lane);
    expect_same("lanemask_gt", thread, amdflow::lanemask_gt(), ~(below | 1u << lane));
    expect_same("lanemask_ge", thread, amdflow::lanemask_ge(), ~below);
  });
}

// What one lane wrote before syncwarp, the others read behind it, also when only some lanes of the warp are there.
void check_syncwarp() {
  static int slots[THREADS];
  for (const Participants& participants : PARTICIPANTS) {
    in_each_thread(participants, [&](unsigned int thread) {
      slots[thread] = static_cast<int>(thread) + 1000;
      amdflow::syncwarp(participants.lanes[thread / 32]);
      for (unsigned int other = thread / 32 * 32; other < thread / 32 * 32 + 32; ++other) {
        if (participants.has(other)) expect_same("syncwarp", thread, slots[other], static_cast<int>(other) + 1000);
      }
      amdflow::syncwarp();
      slots[thread] = 0;
      amdflow::syncwarp();
    });
  }
}

// The simulator itself: lanes diverge at a branch, are masked out of each other's votes, and meet again behind it.
void check_simulator() {
  simulator::launch(wave_size, {1, 1, 1}, {THREADS, 1, 1}, [] {
    const unsigned int thread = threadIdx.x, odd = 0xaaaaaaaau;
    unsigned int in_branch;
    if (thread % 2 == 1) {
      in_branch = amdflow::activemask();
    } else {
      in_branch = amdflow::activemask();
    }
    expect_same("divergent branch", thread, in_branch, thread % 2 == 1 ? odd : ~odd);
    expect_same("behind the branch", thread, amdflow::activemask(), ~0u);
    unsigned int rounds = 0;
    for (unsigned int i = 0; i <= thread % 4; ++i) rounds += amdflow::activemask() & 1u;
    expect_same("loops of different length", thread, rounds, 1u);
    expect_same("behind the loop", thread, amdflow::activemask(), ~0u);
  });
}

}  // namespace

int main() {
  for (unsigned int size : {32u, 64u}) {
    wave_size = size;
    check_simulator();
    check_lanes();
    check_votes();
    check_syncwarp();
    check_shuffles<int>("shuffle of int");
    check_shuffles<unsigned int>("shuffle of unsigned int");
    check_shuffles<long>("shuffle of long");
    check_shuffles<unsigned long long>("shuffle of unsigned long long");
    check_shuffles<float>("shuffle of float");
    check_shuffles<double>("shuffle of double");
    check_shuffles<bool>("shuffle of bool");
    check_shuffles<signed char>("shuffle of signed char");
    check_shuffles<unsigned short>("shuffle of unsigned short");
    check_shuffles<Half>("shuffle of two bytes");
    check_shuffles<Half2>("shuffle of two times two bytes");
    check_shuffles<Bytes6>("shuffle of six bytes");
    check_shuffles<Bytes16>("shuffle of sixteen bytes");
    check_match<int>("match of int");
    check_match<unsigned long long>("match of unsigned long long");
    check_match<float>("match of float");
    check_match<double>("match of double");
    check_match<short>("match of short");
    check_reductions<int>("reduction of int");
    check_reductions<unsigned int>("reduction of unsigned int");
    check_reductions<long long>("reduction of long long");
    check_reductions<signed char>("reduction of signed char");
  }
  std::printf("%ld checks, %ld wrong\n", checks, wrong);
  return wrong == 0 && checks > 0 ? 0 : 1;
}
