/* In front of every kernel of this folder. */

/* The numbers of gather and scatter_add: rows of `width` elements, of which the table has `rows`, and `count` row
 * numbers of index_bytes each. */
struct rows_numbers {
  long long rows, width, count, index_bytes, element_bytes;
};

/* Those of take_along and add_along: `outer` tables one behind the other, and row numbers for each element. */
struct along_numbers {
  struct rows_numbers r;
  long long outer;
};

/* Row number i: 1 byte is u8, 4 are i32, 8 i64. */
__device__ static inline long long row_at(const void *index, long long bytes, long long i) {
  if (bytes == 1) return ((const unsigned char *)index)[i];
  if (bytes == 4) return ((const int *)index)[i];
  return ((const long long *)index)[i];
}

/* Those of window_sum, window_max, window_put and window_pick. */
struct window_numbers {
  long long batch, channels;
  long long input[3], size[3], output[3], stride[3], low[3], input_dilation[3], dilation[3];
};

/* Of an axis, the elements that window o sees: from `first` to before `end` each `step`. */
struct window_taps {
  long long first, end, step;
};

__device__ static inline struct window_taps taps_of(const struct window_numbers *s, int axis, long long o) {
  struct window_taps t;
  long long low = o * s->stride[axis] - s->low[axis], gap = s->input_dilation[axis], by = s->dilation[axis];
  long long high = low + (s->size[axis] - 1) * by, a = by, b = gap;
  t.first = low <= 0 ? 0 : (low + gap - 1) / gap;
  t.end = high < 0 ? 0 : high / gap + 1;
  if (t.end > s->input[axis]) t.end = s->input[axis];
  while (t.first < t.end && (t.first * gap - low) % by) t.first++;
  while (b) {
    long long rest = a % b;
    a = b;
    b = rest;
  }
  t.step = by / a;
  return t;
}

/* The element of x that the window of pixel o of an image chooses in a channel: one takes the place of those before it
 * unless they are greater or equal. -1: it sees none. x is the image's. */
__device__ static inline long long window_choice(const struct window_numbers *s, const TYPE *x, const long long *o,
                                                 long long channel) {
  struct window_taps t[3];
  long long chosen = -1;
  for (int axis = 0; axis < 3; axis++) t[axis] = taps_of(s, axis, o[axis]);
  for (long long i = t[0].first; i < t[0].end; i += t[0].step)
    for (long long j = t[1].first; j < t[1].end; j += t[1].step)
      for (long long k = t[2].first; k < t[2].end; k += t[2].step) {
        long long at = ((i * s->input[1] + j) * s->input[2] + k) * s->channels + channel;
        if (chosen < 0 || !(x[chosen] >= x[at])) chosen = at;
      }
  return chosen;
}

/* Element e of an image's pixels of these sizes: its place on each axis; returns the image. */
__device__ static inline long long window_place(const struct window_numbers *s, const long long *size, long long e,
                                                long long *at) {
  e /= s->channels;
  for (int axis = 2; axis >= 0; axis--) {
    at[axis] = e % size[axis];
    e /= size[axis];
  }
  return e;
}
