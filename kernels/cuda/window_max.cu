/* y[n][o][c] = the greatest of the x[n][i][c] that window o sees: the first of equals, but the last NaN if there is
 * one; the least number there is where it sees none. */
__device__ static inline TYPE least(void) {
  TYPE one = 1;
  if ((TYPE)1 / 2 > 0) return (TYPE)-1 / (one - 1); /* -Inf */
  if ((TYPE)-1 > 0) return 0;
  return (TYPE)(-1ll * (1ll << (8 * sizeof(TYPE) - 2)) * 2);
}

extern "C" __global__ void window_max(const TYPE *x, TYPE *y, struct window_numbers s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  long long count = s.batch * s.output[0] * s.output[1] * s.output[2] * s.channels;
  for (; e < count; e += step) {
    struct window_taps t[3];
    long long o[3], image = window_place(&s, s.output, e, o) * s.input[0];
    TYPE most = least();
    for (int axis = 0; axis < 3; axis++) t[axis] = taps_of(&s, axis, o[axis]);
    for (long long i = t[0].first; i < t[0].end; i += t[0].step)
      for (long long j = t[1].first; j < t[1].end; j += t[1].step)
        for (long long k = t[2].first; k < t[2].end; k += t[2].step) {
          TYPE v = x[(((image + i) * s.input[1] + j) * s.input[2] + k) * s.channels + e % s.channels];
          if (v > most || v != v) most = v;
        }
    y[e] = most;
  }
}
