/* SPDX-License-Identifier: Apache-2.0 */
/* out[n][i][c] = the sum of the values[n][o][c] of the windows o that choose x[n][i][c], from 0 on in the order of o. A
 * thread for each element looks at all windows that see it. */
extern "C" __global__ void window_put(const TYPE *x, const TYPE *values, TYPE *out, struct window_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  long long inputs = s.input[0] * s.input[1] * s.input[2] * s.channels;
  for (; e < s.batch * inputs; e += step) {
    long long i[3], o[3], begin[3], end[3], image = window_place(&s, s.input, e, i);
    SUM sum = 0;
    for (int axis = 0; axis < 3; axis++) {
      long long place = i[axis] + s.low[axis], before = place - (s.size[axis] - 1) * s.dilation[axis];
      begin[axis] = before <= 0 ? 0 : (before + s.stride[axis] - 1) / s.stride[axis];
      end[axis] = place < 0 ? 0 : place / s.stride[axis] + 1;
      if (end[axis] > s.output[axis]) end[axis] = s.output[axis];
    }
    for (o[0] = begin[0]; o[0] < end[0]; o[0]++)
      for (o[1] = begin[1]; o[1] < end[1]; o[1]++)
        for (o[2] = begin[2]; o[2] < end[2]; o[2]++) {
          if (window_choice(&s, x + image * inputs, o, e % s.channels) != e % inputs) continue;
          sum += (SUM)values[(((image * s.output[0] + o[0]) * s.output[1] + o[1]) * s.output[2] + o[2]) * s.channels +
                             e % s.channels];
        }
    out[e] = (TYPE)sum;
  }
}
