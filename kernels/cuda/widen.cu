/* SPDX-License-Identifier: Apache-2.0 */
/* y[i] = x[i], of bfloat16, for cards whose products have none: those before compute capability 8.0. */
struct widen_numbers {
  long long count;
};

extern "C" __global__ void widen(const unsigned short *x, TYPE *y, struct widen_numbers s) {
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < s.count; i += (long long)gridDim.x * blockDim.x)
    y[i] = __int_as_float((int)x[i] << 16);
}
