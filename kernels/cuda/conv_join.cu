/* SPDX-License-Identifier: Apache-2.0 */
/* y[e] = the sum of x[p][e], `pieces` of them: of LANES threads each adds up every LANES-th, then they are added in a tree. */
#ifndef LANES
#define LANES 8
#endif
enum { PLACES = 256 / LANES };

struct join_numbers {
  long long count, pieces;
};

extern "C" __global__ void conv_join(const TYPE *x, TYPE *y, struct join_numbers s) {
  __shared__ SUM shares[256];
  int place = (int)threadIdx.x % PLACES, lane = (int)threadIdx.x / PLACES;
  for (long long first = (long long)blockIdx.x * PLACES; first < s.count; first += (long long)gridDim.x * PLACES) {
    long long e = first + place;
    SUM sum = 0;
#pragma unroll 8
    for (long long p = lane; p < s.pieces && e < s.count; p += LANES) sum += x[p * s.count + e];
    shares[threadIdx.x] = sum;
    for (int half = LANES / 2; half > 0; half /= 2) {
      __syncthreads();
      if (lane < half) shares[threadIdx.x] += shares[threadIdx.x + PLACES * half];
    }
    if (lane == 0 && e < s.count) y[e] = (TYPE)shares[threadIdx.x];
    __syncthreads();
  }
}
