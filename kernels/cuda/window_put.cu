/* SPDX-License-Identifier: Apache-2.0 */
/* out[n][i][c] = the sum of the values[n][o][c] of the windows o that choose x[n][i][c], from 0 on in the order of o. A
 * thread for each element looks at all windows that see it. */
extern "C" __global__ void window_put(const TYPE *x, const TYPE *values, TYPE *out, struct window_numbers s) {
  INDEX step = (INDEX)(gridDim.x * blockDim.x), channels = (INDEX)s.channels;
  INDEX e = (INDEX)blockIdx.x * (INDEX)blockDim.x + (INDEX)threadIdx.x;
  INDEX inputs = (INDEX)(s.input[0] * s.input[1] * s.input[2] * s.channels), count = (INDEX)s.batch * inputs;
  for (; e < count; e += step) {
    INDEX i[3], o[3], begin[3], end[3], image = window_place(&s, s.input, e, i), channel = e % channels;
    INDEX element = e - image * inputs;
    SUM sum = 0;
    for (int axis = 0; axis < 3; axis++) {
      INDEX stride = (INDEX)s.stride[axis], place = i[axis] + (INDEX)s.low[axis];
      INDEX before = place - ((INDEX)s.size[axis] - 1) * (INDEX)s.dilation[axis];
      begin[axis] = before <= 0 ? 0 : (before + stride - 1) / stride;
      end[axis] = place < 0 ? 0 : place / stride + 1;
      if (end[axis] > (INDEX)s.output[axis]) end[axis] = (INDEX)s.output[axis];
    }
    for (o[0] = begin[0]; o[0] < end[0]; o[0]++)
      for (o[1] = begin[1]; o[1] < end[1]; o[1]++)
        for (o[2] = begin[2]; o[2] < end[2]; o[2]++) {
          if (window_choice(&s, x + image * inputs, o, channel) != element) continue;
          INDEX row = (image * (INDEX)s.output[0] + o[0]) * (INDEX)s.output[1] + o[1];
          sum += (SUM)values[(row * (INDEX)s.output[2] + o[2]) * channels + channel];
        }
    out[e] = (TYPE)sum;
  }
}
