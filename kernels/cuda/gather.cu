/* SPDX-License-Identifier: Apache-2.0 */
/* out[i] = table[index[i]], zeros where there is no such row. */
extern "C" __global__ void gather(const TYPE *table, const void *index, TYPE *out, struct rows_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; at < s.count * s.width; at += step) {
    long long row = row_at(index, s.index_bytes, at / s.width);
    out[at] = row >= 0 && row < s.rows ? table[row * s.width + at % s.width] : 0;
  }
}
