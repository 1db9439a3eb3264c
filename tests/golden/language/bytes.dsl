# Sums and products of bytes are integers of 64 bits, which 784 pixels do not fill; extremes stay bytes, means are f32.
# RUN: %dgc compile %s --emit graph --entry predict | %FileCheck %s
model bytes() {
  input image : u8[B, 28, 28]
  predict light = sum(image, axis = [1, 2])
  predict rows = sum(image, axis = 2, keep = true)
  predict times = prod(image[:, 0], axis = 1)
  predict most = max(image, axis = [1, 2])
  predict whole = cast(all(image > 0, axis = [1, 2]), u8)
  predict average = mean(image, axis = [1, 2])
}
# CHECK: light.cast = cast image : i64[B,28,28]
# CHECK: light = reduce_sum light.cast {axes=[1, 2]} : i64[B]
# CHECK: rows = reshape {{.*}} : i64[B,28,1]
# CHECK: times = reduce_prod {{.*}} {axes=[1]} : i64[B]
# CHECK: most = reduce_max image {axes=[1, 2]} : u8[B]
# CHECK: reduce_sum {{.*}} : f32[B]
