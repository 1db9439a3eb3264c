# Sums and products of bytes are integers of 64 bits, which 784 pixels do not fill; extremes stay bytes, means are f32. So it
# is wherever elements of one operand are added up or multiplied; what is added to bytes, place by place, stays bytes.
# RUN: %dgc compile %s --emit graph --entry predict | %FileCheck %s
model bytes() {
  input image : u8[B, 28, 28]
  predict light = sum(image, axis = [1, 2])
  predict rows = sum(image, axis = 2, keep = true)
  predict times = prod(image[:, 0], axis = 1)
  predict most = max(image, axis = [1, 2])
  predict whole = cast(all(image > 0, axis = [1, 2]), u8)
  predict average = mean(image, axis = [1, 2])
  predict sofar = cumsum(image, axis = 2)
  predict product = image @ transpose(image)
  predict named = matmul(image, image)
  predict lettered = einsum("bij,bij->b", image, image)
  predict turned = einsum("bij->bji", image)
  predict seen = window_sum(expand(image, 3), 2)
  predict blurred = conv(expand(image, 3), cast(broadcast(1, [3, 3, 1, 1]), u8))
  predict kinds = gather(segment_sum(iota(u8[6]), [0, 0, 1, 1, 2, 2], 3), cast(image[:, 0, 0], i32))
  predict means = gather(segment_mean(iota(u8[6]), [0, 0, 1, 1, 2, 2], 3), cast(image[:, 0, 0], i32))
  predict factors = cumprod(image[:, 0])
  predict places = add_along(image, cast(image, i32), image, 1)
}
# CHECK: light.cast = cast image : i64[B,28,28]
# CHECK: light = reduce_sum light.cast {axes=[1, 2]} : i64[B]
# CHECK: rows = reshape {{.*}} : i64[B,28,1]
# CHECK: times = reduce_prod {{.*}} {axes=[1]} : i64[B]
# CHECK: most = reduce_max image {axes=[1, 2]} : u8[B]
# CHECK: reduce_sum {{.*}} : f32[B]
# CHECK: sofar = cumsum {{.*}} {axis=2} : i64[B,28,28]
# CHECK: product = {{.*}} : i64[B,28,28]
# CHECK: named = {{.*}} : i64[B,28,28]
# CHECK: lettered = {{.*}} : i64[B]
# CHECK: turned = {{.*}} : i64[B,28,28]
# CHECK: seen = window_sum {{.*}} : i64[B,27,27,1]
# CHECK: blurred = conv {{.*}} : i64[B,26,26,1]
# CHECK: kinds = gather {{.*}} : i64[B]
# CHECK: means = gather {{.*}} : f32[B]
# CHECK: factors = {{.*}} : i64[B,28]
# CHECK: places = add_along {{.*}} : u8[B,28,28]
