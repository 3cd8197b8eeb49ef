// Attention scores S = scale * Q * K^T for a head of 64, a warp a 16 x 16 tile.
#include <mma.h>

#include "fusedops/check.h"
#include "fusedops/fusedops.h"

namespace fusedops {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int kHeadDim = 64;
constexpr int kTile = 16;

__global__ void __launch_bounds__(32) attention_scores_kernel(const __half* __restrict__ q, const __half* __restrict__ k, float* __restrict__ scores, int tokens,
                                                              float scale) {
  wmma::fragment<wmma::matrix_a, kTile, kTile, kTile, __half, wmma::row_major> q_tile;
  wmma::fragment<wmma::matrix_b, kTile, kTile, kTile, __half, wmma::col_major> k_tile;
  wmma::fragment<wmma::accumulator, kTile, kTile, kTile, float> s_tile;
  wmma::fill_fragment(s_tile, 0.0f);

  const __half* const q_rows = q + static_cast<size_t>(blockIdx.y) * kTile * kHeadDim;
  const __half* const k_rows = k + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim;
  for (int d = 0; d < kHeadDim; d += kTile) {
    wmma::load_matrix_sync(q_tile, q_rows + d, kHeadDim);
    wmma::load_matrix_sync(k_tile, k_rows + d, kHeadDim);
    wmma::mma_sync(s_tile, q_tile, k_tile, s_tile);
  }
  for (int i = 0; i < s_tile.num_elements; ++i) {
    s_tile.x[i] *= scale;
  }
  wmma::store_matrix_sync(scores + static_cast<size_t>(blockIdx.y) * kTile * tokens + blockIdx.x * kTile, s_tile, tokens, wmma::mem_row_major);
}

}  // namespace

void attention_scores(const __half* q, const __half* k, float* scores, int tokens, float scale, cudaStream_t stream) {
  if (tokens % kTile != 0) {
    throw Error("attention_scores: tokens must be a multiple of 16");
  }
  if (tokens == 0) {
    return;
  }
  const dim3 grid(tokens / kTile, tokens / kTile);
  FUSEDOPS_LAUNCH(attention_scores_kernel, grid, 32, 0, stream, q, k, scores, tokens, scale);
}

}  // namespace fusedops
