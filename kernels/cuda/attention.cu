/* SPDX-License-Identifier: Apache-2.0 */
/* y[i] = sum over the keys j that row i sees of p[j] v[j], see ir/ops/attention.c. A block does 16 rows of a head
 * against 16 keys at a time, a thread for each pair: scores of 16 keys, then the values, of which each thread has
 * every sixteenth, at most 8 at a time. */

extern "C" __global__ void __launch_bounds__(256, LEAST_BLOCKS)
    attention(const TYPE *q, const TYPE *k, const TYPE *v, const unsigned char *mask, TYPE *y,
                                     struct attention_numbers s) {
  __shared__ struct attention_tile tile;
  long long tiles = (s.queries + ROWS - 1) / ROWS;
  for (long long at = blockIdx.x; at < s.batch * s.heads * tiles; at += gridDim.x) {
    struct attention_head x = attention_head(&s, mask, at / tiles);
    for (long long first = 0; first < s.values; first += ROWS * HELD)
      attention_rows(&s, &x, &tile, q + x.q, k + x.k, v + x.v, y + x.y, at % tiles * ROWS, first);
  }
}
