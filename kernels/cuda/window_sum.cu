/* y[n][o][c] = the sum of the x[n][i][c] that window o sees, from 0 on in the order of i. Integers wrap. */
extern "C" __global__ void window_sum(const TYPE *x, TYPE *y, struct window_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  long long count = s.batch * s.output[0] * s.output[1] * s.output[2] * s.channels;
  for (; e < count; e += step) {
    struct window_taps t[3];
    long long o[3], image = window_place(&s, s.output, e, o) * s.input[0];
    SUM sum = 0;
    for (int axis = 0; axis < 3; axis++) t[axis] = taps_of(&s, axis, o[axis]);
    for (long long i = t[0].first; i < t[0].end; i += t[0].step)
      for (long long j = t[1].first; j < t[1].end; j += t[1].step)
        for (long long k = t[2].first; k < t[2].end; k += t[2].step)
          sum += (SUM)x[(((image + i) * s.input[1] + j) * s.input[2] + k) * s.channels + e % s.channels];
    y[e] = (TYPE)sum;
  }
}
