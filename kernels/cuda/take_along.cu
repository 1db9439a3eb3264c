/* SPDX-License-Identifier: Apache-2.0 */
/* y[o][i][k] = x[o][index[o][i][k]][k], 0 where there is no such place. */
extern "C" __global__ void take_along(const TYPE *x, const void *index, TYPE *y, struct along_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; at < s.outer * s.r.count * s.r.width; at += step) {
    long long row = row_at(index, s.r.index_bytes, at), o = at / s.r.width / s.r.count;
    y[at] = row >= 0 && row < s.r.rows ? x[(o * s.r.rows + row) * s.r.width + at % s.r.width] : 0;
  }
}
