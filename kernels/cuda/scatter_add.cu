/* SPDX-License-Identifier: Apache-2.0 */
/* out, which holds x: out[index[i]] += values[i], in the order of i, nothing where there is no such row; integers wrap.
 * A block for each row number: it goes on if it is the first of those with the same number, and then adds the values of
 * all of them. So sums do not depend on what runs when. */
extern "C" __global__ void scatter_add(const TYPE *x, const void *index, const TYPE *values, TYPE *out,
                                       struct rows_numbers s) {
  __shared__ int repeated;
  for (long long i = blockIdx.x; i < s.count; i += gridDim.x) {
    long long row = row_at(index, s.index_bytes, i);
    __syncthreads();
    if (threadIdx.x == 0) repeated = 0;
    __syncthreads();
    for (long long e = threadIdx.x; e < i; e += blockDim.x)
      if (row_at(index, s.index_bytes, e) == row) repeated = 1;
    __syncthreads();
    if (repeated || row < 0 || row >= s.rows) continue;
    for (long long k = threadIdx.x; k < s.width; k += blockDim.x) {
      SUM sum = (SUM)out[row * s.width + k];
      for (long long e = i; e < s.count; e++)
        if (row_at(index, s.index_bytes, e) == row) sum += (SUM)values[e * s.width + k];
      out[row * s.width + k] = (TYPE)sum;
    }
  }
}
