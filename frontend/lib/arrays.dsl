# Parts and orders of tensors, always in scope. An axis may count from the end, and is not the batch's where its elements move.

# x without the first `low` and from place `high` on along an axis: x[low:high].
#   input x : f32[B, 5]
#   predict y = cut(x, -1, 1, 3)      # f32[B, 2]
function cut(x, axis : int, low : int, high : int) {
  at = axis if axis >= 0 else axis + rank(x)
  begin = []
  count = []
  for i in 0..rank(x) {
    begin = begin + [low if i == at else 0]
    count = count + [high - low if i == at else -1]
  }
  return slice(x, begin, count)
}

# For reverse and others: numbers of places [n], as they stand along an axis of x, for all of it.
function places_along(x, places, axis : int) {
  at = axis if axis >= 0 else axis + rank(x)
  lone = []
  whole = []
  for i in 0..rank(x) {
    lone = lone + [size(places) if i == at else 1]
    whole = whole + [size(places) if i == at else shape(x)[i]]
  }
  return broadcast(reshape(places, lone), whole)
}

# The elements along an axis in the other order.
#   input x : f32[B, 5]
#   predict y = reverse(x)
function reverse(x, axis = -1) {
  n = shape(x)[axis]
  return take_along(x, places_along(x, n - 1 - iota(i32[n]), axis), axis)
}

# The elements along an axis `shift` places further, the last ones in front.
#   input x : f32[B, 5]
#   predict y = roll(x, 2)
function roll(x, shift : int, axis = -1) {
  n = shape(x)[axis]
  far = 0 if n == 0 else (shift % n + n) % n
  return concat([cut(x, axis, n - far, n), cut(x, axis, 0, n - far)], axis)
}

# x so many times along each axis, as a whole: counts are a list, one for each axis.
#   input x : f32[B, 2]
#   predict y = tile(x, [1, 3])       # f32[B, 6]
function tile(x, counts : list) {
  y = x
  for i in 0..rank(x) {
    if counts[i] != 1 {
      apart = expand(y, i)
      more = broadcast(apart, shape(y)[0:i] + [counts[i]] + shape(y)[i:])
      y = reshape(more, shape(y)[0:i] + [counts[i] * shape(y)[i]] + shape(y)[i + 1:])
    }
  }
  return y
}

# Each element along an axis so many times, one behind the other.
#   input x : f32[B, 2]
#   predict y = repeat(x, 3)          # f32[B, 6]
function repeat(x, count : int, axis = -1) {
  at = axis if axis >= 0 else axis + rank(x)
  dims = shape(x)
  more = broadcast(expand(x, at + 1), dims[0:at + 1] + [count] + dims[at + 1:])
  return reshape(more, dims[0:at] + [dims[at] * count] + dims[at + 1:])
}

# x with `low` copies of the first element in front of each axis and `high` of the last behind: lists, one for each axis.
#   input x : f32[B, 3]
#   predict y = pad_edge(x, [0, 1], [0, 2])       # f32[B, 6]
function pad_edge(x, low : list, high : list) {
  y = x
  for i in 0..rank(x) {
    n = shape(x)[i]
    if low[i] > 0 { y = concat([repeat(cut(y, i, 0, 1), low[i], i), y], i) }
    if high[i] > 0 { y = concat([y, repeat(cut(y, i, n + low[i] - 1, n + low[i]), high[i], i)], i) }
  }
  return y
}

# x with what lies behind its edges as in a mirror, in which the edge itself is not seen again.
#   input x : f32[B, 3]
#   predict y = pad_reflect(x, [0, 1], [0, 2])    # f32[B, 6]
function pad_reflect(x, low : list, high : list) {
  y = x
  for i in 0..rank(x) {
    n = shape(x)[i]
    if low[i] + high[i] > 0 {
      y = concat([reverse(cut(y, i, 1, 1 + low[i]), i), y, reverse(cut(y, i, n - 1 - high[i], n - 1), i)], i)
    }
  }
  return y
}

# As pad_reflect, where the edge is seen again.
#   input x : f32[B, 3]
#   predict y = pad_symmetric(x, [0, 1], [0, 2])  # f32[B, 6]
function pad_symmetric(x, low : list, high : list) {
  y = x
  for i in 0..rank(x) {
    n = shape(x)[i]
    if low[i] + high[i] > 0 {
      y = concat([reverse(cut(y, i, 0, low[i]), i), y, reverse(cut(y, i, n - high[i], n), i)], i)
    }
  }
  return y
}

# x as if it went round: in front of it what its end has, behind it its beginning.
#   input x : f32[B, 3]
#   predict y = pad_wrap(x, [0, 1], [0, 2])       # f32[B, 6]
function pad_wrap(x, low : list, high : list) {
  y = x
  for i in 0..rank(x) {
    n = shape(x)[i]
    if low[i] + high[i] > 0 { y = concat([cut(y, i, n - low[i], n), y, cut(y, i, 0, high[i])], i) }
  }
  return y
}

# ---- matrices: the last two axes ----

# 1 where row and column are the same, else 0.
#   input x : f32[B, 3]
#   predict y = x @ eye(3)
function eye(rows : int, columns = none, to = f32) {
  m = rows if columns == none else columns
  return cast(iota(i32[rows, m], axis = 0) == iota(i32[rows, m], axis = 1), to)
}

# Which elements of a matrix of rows and columns lie on diagonal `k` or below it, as bool.
#   input x : f32[B, 3, 3]
#   predict y = select(lower(3, 3), x, -inf)
function lower(rows : int, columns : int, k = 0) {
  return iota(i32[rows, columns], axis = 0) + k >= iota(i32[rows, columns], axis = 1)
}

# What lies above diagonal `k` is 0.
#   input x : f32[B, 3, 3]
#   predict y = tril(x)
function tril(x, k = 0) { return select(lower(shape(x)[-2], shape(x)[-1], k), x, cast(0, dtype(x))) }

# What lies below diagonal `k` is 0.
#   input x : f32[B, 3, 3]
#   predict y = triu(x)
function triu(x, k = 0) { return select(lower(shape(x)[-2], shape(x)[-1], k - 1), cast(0, dtype(x)), x) }

# The diagonal of square matrices, as vectors.
#   input x : f32[B, 3, 3]
#   predict y = diagonal(x)           # f32[B, 3]
function diagonal(x : T[...S, n, n]) {
  low = []
  high = []
  for i in 0..size(S) {
    low = low + [0]
    high = high + [0]
  }
  row = pad(reshape(x, S + [n * n]), low + [0], high + [n])
  return squeeze(cut(reshape(row, S + [n, n + 1]), -1, 0, 1), size(S) + 1)
}

# The sum of the diagonal of square matrices.
#   input x : f32[B, 3, 3]
#   predict y = trace(x)              # f32[B]
function trace(x) { return sum(diagonal(x), axis = -1) }

# ---- so far along an axis: in log2(n) steps, each of which joins what lies twice as far apart ----

# For cumprod and its likes: x `far` places further, in front of which stands `value`.
function further(x, axis : int, far : int, value) {
  at = axis if axis >= 0 else axis + rank(x)
  low = []
  high = []
  for i in 0..rank(x) {
    low = low + [far if i == at else 0]
    high = high + [0]
  }
  return pad(cut(x, at, 0, shape(x)[at] - far), low, high, value)
}

# The products so far along an axis; `from_end`: from its end. Its gradient divides by nothing: zeros are as good as others.
#   input x : f32[B, 5]
#   predict y = cumprod(x)
function cumprod(x, axis = -1, from_end = false) {
  wide = cast(x, i64) if dtype(x) == u8 else x
  y = reverse(wide, axis) if from_end else wide
  far = 1
  for i in 0..40 {
    if far < shape(x)[axis] {
      y = y * further(y, axis, far, 1)
      far = 2 * far
    }
  }
  return reverse(y, axis) if from_end else y
}

# The greatest so far along an axis. Of equals the later one has the gradient.
#   input x : f32[B, 5]
#   predict y = cummax(x)
function cummax(x, axis = -1) {
  y = x
  far = 1
  for i in 0..40 {
    if far < shape(x)[axis] {
      before = further(y, axis, far, 0)
      there = places_along(y, iota(i32[shape(x)[axis]]) >= far, axis)
      y = max(y, select(there, before, y))
      far = 2 * far
    }
  }
  return y
}

# The least so far along an axis. Of equals the later one has the gradient.
#   input x : f32[B, 5]
#   predict y = cummin(x)
function cummin(x, axis = -1) {
  y = x
  far = 1
  for i in 0..40 {
    if far < shape(x)[axis] {
      before = further(y, axis, far, 0)
      there = places_along(y, iota(i32[shape(x)[axis]]) >= far, axis)
      y = min(y, select(there, before, y))
      far = 2 * far
    }
  }
  return y
}

# ---- segments: rows of one kind, as `ids` number them: ----

# The sum of the rows of each segment, of u8 in i64, 0 of those without: values [n, ...], ids [n] give [count, ...]. A
# row whose id is none of 0..count is in no segment (of an input that is an error). Where n is the batch it is the sum of
# all its rows, on all towers.
#   input x : f32[B, 6, 2]
#   edges = reshape(sum(x, axis = 0), [6, 2])
#   metric m = sum(segment_sum(edges, iota(i32[6]) / 2, 3))
function segment_sum(values : T[n, ...S], ids : integers, count : int) {
  wide = i64 if T == u8 else T
  return scatter_add(cast(broadcast(0.0, [count] + S), wide), ids, cast(values, wide))
}

# How many rows each segment has, as f32 or as the type `to`; which rows are in none says segment_sum.
#   input x : f32[B, 3]
#   predict y = x * segment_count(iota(i32[6]) / 2, 3)
function segment_count(ids : integers, count : int, to = f32) {
  return scatter_add(cast(broadcast(0.0, [count]), to), ids, 1)
}

# The mean of the rows of each segment, of integers in f32, 0 of those without; which rows are in none says segment_sum.
#   input x : f32[B, 6, 2]
#   edges = reshape(sum(x, axis = 0), [6, 2])
#   metric m = sum(segment_mean(edges, iota(i32[6]) / 2, 3))
function segment_mean(values : T[n, ...S], ids : integers, count : int) {
  dims = [count]
  for d in S { dims = dims + [1] }
  real = f64 if T == f64 else f32
  return segment_sum(cast(values, real), ids, count) / max(reshape(segment_count(ids, count, real), dims), 1)
}

# ---- ids of many kinds ----

# Ids of any size, i64 or i32, as numbers from 0 to buckets - 1, i32: equal ids give equal numbers, others as if drawn; another
# seed gives another drawing. By multiplication modulo 2^64 (Knuth 1973, section 6.4), twice, with the high half added to the low
# one between.
#   input ids : i64[B, 3]
#   predict y = nn.embedding(hash(ids, 100), size = 100, units = 4)       # f32[B, 3, 4]
function hash(ids : integers, buckets : int, seed : int = 0) {
  half = 4294967296
  first = (cast(ids, i64) + (2 * seed + 1)) * 7046029254386353131
  second = (first + first / half) * 6364136223846793005 + 1442695040888963407
  high = second / half % buckets
  return cast((high + buckets) % buckets, i32)
}

# ---- integers ----

# For one_hot and others: u8 as i32, in which numbers beyond 255 and below 0 can be told from others.
function integers(x : integers) { return cast(x, i32) if dtype(x) == u8 else x }

# Bit by bit, of integers.
#   input x : i32[B, 4]
#   predict y = bit_and(x, 255)
function bit_and(x, y) { return x and y }

# Bit by bit, of integers.
#   input x : i32[B, 4]
#   predict y = bit_or(x, 1)
function bit_or(x, y) { return x or y }

# Bit by bit, of integers.
#   input x : i32[B, 4]
#   predict y = bit_xor(x, 255)
function bit_xor(x, y) { return xor(x, y) }

# x divided by y, rounded down, as numpy's `//` of integers: 0 where y is 0.
#   input x : i32[B, 4]
#   predict y = floor_div(x, 3)
function floor_div(x : integers, y : integers) {
  rest = x % y
  down = rest != 0 and (rest < 0) != (y < 0)
  near = (x - rest) / y # towards 0
  return select(down, near - 1, near)
}

# What floor_div leaves, of the sign of y, as numpy's `%`: where y is 0, 0 of integers and NaN of floats.
#   input x : i32[B, 4]
#   predict y = floor_mod(x, 3)
function floor_mod(x, y) {
  rest = x % y
  return rest + select(rest != 0 and (rest < 0) != (y < 0), y, rest - rest) # of other signs
}

# SPDX-License-Identifier: Apache-2.0
