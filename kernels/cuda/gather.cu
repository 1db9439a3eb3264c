/* out[i] = table[index[i]], zeros where there is no such row. TYPE has the bytes of an element. */
struct rows_sizes {
  long long rows, width, count, index_bytes;
};

__device__ static long long row_at(const void *index, long long bytes, long long i) {
  if (bytes == 1) return ((const unsigned char *)index)[i];
  if (bytes == 4) return ((const int *)index)[i];
  return ((const long long *)index)[i];
}

extern "C" __global__ void gather(const TYPE *table, const void *index, TYPE *out, struct rows_sizes s) {
  long long step = (long long)gridDim.x * blockDim.x;
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; at < s.count * s.width; at += step) {
    long long row = row_at(index, s.index_bytes, at / s.width);
    out[at] = row >= 0 && row < s.rows ? table[row * s.width + at % s.width] : 0;
  }
}
