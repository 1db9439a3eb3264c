# ---- images [batch, height, width, channels]: what is drawn is drawn for each by itself, in training alone ----

# Turned round along an axis, 2: left and right, with the probability 1/2.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.random_flip(x)
function random_flip(x : T[N, H, W, C], axis = 2) {
  if not training { return x }
  turned = random_uniform(f32[N, 1, 1, 1]) < 0.5
  return select(broadcast(turned, [N, H, W, C]), reverse(x, axis), x)
}

# For random_crop: the first of `count` places, one for each row.
function random_places(N, count : int) {
  return min(cast(random_uniform(f32[N, 1, 1, 1]) * count, i32), count - 1)
}

# For random_crop: by how much less high and wide a part is.
function room_of(down : nonnegative,  # images are [B, height, width, channels], parts no larger
                 right : nonnegative) {
  return [down, right]
}

# A part of each image, `height` x `width`, from a place that is drawn, when `padding` pixels of 0 stand around it; outside of
# training from the middle.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.random_crop(x, 8, 8, padding = 1)
function random_crop(x : T[N, H, W, C], height : int, width : int, padding : int = 0) {
  wide = pad(x, [0, padding, padding, 0], [0, padding, padding, 0]) if padding > 0 else x
  down, right = room_of(H + 2 * padding - height, W + 2 * padding - width)
  if not training { return slice(wide, [0, (down - down % 2) / 2, (right - right % 2) / 2, 0], [-1, height, width, -1]) }
  high = broadcast(random_places(N, down + 1), [N, height, W + 2 * padding, C]) + iota(i32[N, height, W + 2 * padding, C], axis = 1)
  far = broadcast(random_places(N, right + 1), [N, height, width, C]) + iota(i32[N, height, width, C], axis = 2)
  return take_along(take_along(wide, high, 1), far, 2)
}

# x plus a number between -most and most.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.random_brightness(x / 255, 0.2)
function random_brightness(x : T[N, H, W, C], most) {
  if not training { return x }
  return x + broadcast(random_uniform(T[N, 1, 1, 1], -most, most), [N, H, W, C])
}

# How far x is from the mean of each channel of the image, times a number between low and high.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.random_contrast(x / 255, 0.8, 1.2)
function random_contrast(x : T[N, H, W, C], low, high) {
  if not training { return x }
  center = broadcast(mean(x, axis = [1, 2], keep = true), [N, H, W, C])
  return center + (x - center) * broadcast(random_uniform(T[N, 1, 1, 1], low, high), [N, H, W, C])
}

# A square of `size` pixels around one that is drawn is 0, as far as it lies in the image (DeVries, Taylor 2017).
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.random_erase(x, 4)
function random_erase(x : T[N, H, W, C], size : int) {
  if not training { return x }
  half = (size - size % 2) / 2
  down = iota(i32[N, H, W, C], axis = 1) - broadcast(random_places(N, H), [N, H, W, C]) + half
  right = iota(i32[N, H, W, C], axis = 2) - broadcast(random_places(N, W), [N, H, W, C]) + half
  inside = down >= 0 and down < size and right >= 0 and right < size
  return select(inside, 0, x)
}

# (x - mean) / stddev, lists of a number for each channel, or for each column of a table.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.normalize(x / 255, [0.49, 0.48, 0.45], [0.25, 0.24, 0.26])
function normalize(x : T[...S, C], mean : list, stddev : list) {
  scale = []
  for s in stddev { scale = scale + [1.0 / s] }
  return (x - mean) * scale
}

# Each image less its mean, divided by its deviation, or by that of a single 1 where it has less: tf.image.per_image_standardization.
#   input x : f32[B, 8, 8, 3]
#   predict y = nn.standardize(x)
function standardize(x : T[N, H, W, C]) {
  center = mean(x, axis = [1, 2, 3], keep = true)
  spread = mean(square(x - broadcast(center, [N, H, W, C])), axis = [1, 2, 3], keep = true)
  scale = 1 / max(sqrt(spread), 1.0 / sqrt(1.0 * H * W * C))
  return (x - broadcast(center, [N, H, W, C])) * broadcast(scale, [N, H, W, C])
}

# SPDX-License-Identifier: Apache-2.0
