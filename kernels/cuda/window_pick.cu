/* SPDX-License-Identifier: Apache-2.0 */
/* out[n][o][c] = values[n][i][c] for the x[n][i][c] that window o chooses; 0 where it sees none. */
extern "C" __global__ void window_pick(const TYPE *x, const TYPE *values, TYPE *out, struct window_numbers s) {
  INDEX step = (INDEX)(gridDim.x * blockDim.x), channels = (INDEX)s.channels;
  INDEX e = (INDEX)blockIdx.x * (INDEX)blockDim.x + (INDEX)threadIdx.x;
  INDEX inputs = (INDEX)(s.input[0] * s.input[1] * s.input[2] * s.channels);
  INDEX count = (INDEX)(s.batch * s.output[0] * s.output[1] * s.output[2] * s.channels);
  for (; e < count; e += step) {
    INDEX o[3], image = window_place(&s, s.output, e, o) * inputs;
    INDEX at = window_choice(&s, x + image, o, e % channels);
    out[e] = at < 0 ? (TYPE)0 : values[image + at];
  }
}
