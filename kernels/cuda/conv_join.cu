/* SPDX-License-Identifier: Apache-2.0 */
/* y[e] = the sum of x[p][e], `pieces` of them: of 8 threads each adds up every eighth, then they are added in a tree. */
struct join_numbers {
  long long count, pieces;
};

extern "C" __global__ void conv_join(const TYPE *x, TYPE *y, struct join_numbers s) {
  __shared__ SUM shares[256];
  int place = (int)threadIdx.x % 32, lane = (int)threadIdx.x / 32;
  for (long long first = (long long)blockIdx.x * 32; first < s.count; first += (long long)gridDim.x * 32) {
    long long e = first + place;
    SUM sum = 0;
    for (long long p = lane; p < s.pieces && e < s.count; p += 8) sum += x[p * s.count + e];
    shares[threadIdx.x] = sum;
    for (int half = 4; half > 0; half /= 2) {
      __syncthreads();
      if (lane < half) shares[threadIdx.x] += shares[threadIdx.x + 32 * half];
    }
    if (lane == 0 && e < s.count) y[e] = (TYPE)shares[threadIdx.x];
    __syncthreads();
  }
}
