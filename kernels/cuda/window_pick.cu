/* SPDX-License-Identifier: Apache-2.0 */
/* out[n][o][c] = values[n][i][c] for the x[n][i][c] that window o chooses; 0 where it sees none. */
extern "C" __global__ void window_pick(const TYPE *x, const TYPE *values, TYPE *out, struct window_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  long long inputs = s.input[0] * s.input[1] * s.input[2] * s.channels;
  long long count = s.batch * s.output[0] * s.output[1] * s.output[2] * s.channels;
  for (; e < count; e += step) {
    long long o[3], image = window_place(&s, s.output, e, o) * inputs;
    long long at = window_choice(&s, x + image, o, e % s.channels);
    out[e] = at < 0 ? (TYPE)0 : values[image + at];
  }
}
