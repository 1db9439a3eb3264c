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
