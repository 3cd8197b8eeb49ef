"""The compatibility headers compute what CUDA's functions do: run on the CPU, and compiled for both wave sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow import process
from amdflow.migrate.compat import header
from amdflow.toolchain import Rocm, Toolchain

SIMD = r"""
#include "simd_in_word.h"
#include <cstdint>
#include <cstdio>
using namespace amdflow;
static int wrong = 0;
#define SAME(got, wanted) \
  if ((got) != (wanted)) { std::printf("%s: %x, not %x\n", #got, unsigned(got), unsigned(wanted)); ++wrong; }
int main() {
  SAME(vadd4(0x01ff7f80u, 0x01010101u), 0x02008081u)
  SAME(vadd2(0x0001ffffu, 0x00010001u), 0x00020000u)
  SAME(vsub4(0x00000001u, 0x01010101u), 0xffffff00u)
  SAME(vmaxs4(0x7f80ff01u, 0x00000000u), 0x7f000001u)
  SAME(vmaxu4(0x7f80ff01u, 0x80808080u), 0x8080ff80u)
  SAME(vmins2(0x8000ffffu, 0x00000001u), 0x8000ffffu)
  SAME(vminu2(0x8000ffffu, 0x00000001u), 0x00000001u)
  SAME(vabsdiffu4(0x00ff1005u, 0xff000510u), 0xffff0b0bu)
  SAME(vabsdiffs4(0x80000000u, 0x7f000000u), 0xff000000u)
  SAME(vcmpeq4(0x01020304u, 0x01ff03ffu), 0xff00ff00u)
  SAME(vcmpgts4(0x01ff7f80u, 0x00000000u), 0xff00ff00u)
  SAME(vcmpgtu4(0x01ff7f80u, 0x00000000u), 0xffffffffu)
  SAME(vavgu4(0x01020304u, 0x02020202u), 0x02020303u)
  SAME(unsigned(dp4a(int(0x01ff0203u), int(0x02020202u), 10)), unsigned(10 + 2 - 2 + 4 + 6))
  SAME(dp4a(0x01ff0203u, 0x02020202u, 10u), 10u + 2 + 510 + 4 + 6)
  for (uint32_t x = 0; x < 65536; x += 7) {
    for (uint32_t y = 0; y < 65536; y += 997) {
      const uint32_t a = x * 0x10001u ^ 0x5aa50000u, b = y * 0x10001u;
      uint32_t wanted = 0;
      for (int i = 0; i < 4; ++i) {
        const int8_t s = int8_t(a >> (8 * i)), t = int8_t(b >> (8 * i));
        wanted |= uint32_t(uint8_t(s > t ? s : t)) << (8 * i);
      }
      SAME(vmaxs4(a, b), wanted)
    }
  }
  return wrong != 0;
}
"""

DEVICE = """
#include <hip/hip_runtime.h>
#include "cache_operators.h"
#include "cooperative_groups_scan.h"
#include "simd_in_word.h"
namespace cg = cooperative_groups;
__global__ void all(float* x, int* y, unsigned* z, float4* w) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  x[0] = cg::reduce(tile, x[1], cg::plus<float>()) + cg::reduce(tile, x[2], cg::greater<float>());
  y[0] = cg::inclusive_scan(tile, y[1]) + cg::exclusive_scan(tile, y[2], cg::less<int>());
  y[3] = cg::reduce(cg::coalesced_threads(), y[4], cg::bit_or<int>());
  amdflow::stcs(w, amdflow::ldcg(w + 1));
  amdflow::stwt(x + 5, amdflow::ldcv(x + 6) + amdflow::ldlu(x + 7));
  z[0] = amdflow::vmaxs4(z[1], z[2]) + amdflow::vcmpgeu2(z[3], z[4]) + amdflow::dp4a(z[5], z[6], 1u);
}
"""


@pytest.fixture(scope="module")
def rocm() -> Rocm:
    return Toolchain().rocm()


def test_simd_in_a_word_is_exact(tmp_path: Path) -> None:
    (tmp_path / "simd.cpp").write_text(SIMD)
    folder = header("simd_in_word.h").parent
    process.run(["g++", "-std=c++17", "-O1", f"-I{folder}", "simd.cpp", "-o", "simd"], cwd=tmp_path)
    done = process.run([str(tmp_path / "simd")], check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_every_header_compiles_for_both_wave_sizes(tmp_path: Path, rocm: Rocm, target: str) -> None:
    (tmp_path / "all.hip").write_text(DEVICE)
    folder = header("cache_operators.h").parent
    argv = [str(rocm.clang), *rocm.compile_flags(), f"--offload-arch={target}", "-std=c++17", "-O1", f"-I{folder}"]
    done = process.run([*argv, "-c", "all.hip", "-o", "all.o"], cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
