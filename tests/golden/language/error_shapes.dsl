# Shape and type errors name both sides and say where each came from; one run tells several.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
layer scale(x : f32[..., K], by : f32[K]) { return x * by }
model shapes() {
  input image : f32[B, 784]
  input label : i32[B]
  var w : f32[10, 5] = zeros()
  a = image @ w
  b = image + label
  c = reshape(image, [B, 28, 27])
  d = scale(image, w[0])
  e = nn.dense(label, 10)
  f = concat([image, w], axis = 1)
  g = image[:, 800]
  h = sum(image, axis = 2)
  predict p = mean(image)
  predict q = transpose(image)
}
# CHECK: error_shapes.dsl:9:7: error: `@` needs equal inner dimensions: f32[B,784] @ f32[10,5]
# CHECK-NEXT: 9 |   a = image @ w
# CHECK-NEXT:   |       ^~~~~~~~~
# CHECK: :6:9: note: `image` is f32[B,784]
# CHECK: :8:7: note: `w` is f32[10,5]
# CHECK: :10:7: error: add needs operands of one type, not f32[B,784] and i32[B]
# CHECK: help: types are never converted silently: write `cast(label, f32)`
# CHECK: :11:7: error: f32[B,784] cannot become [B, 28, 27]: they hold different numbers of elements
# CHECK: :12:20: error: `by` of `scale` must be f32[K], not f32[5]: K is 784 here
# CHECK: :4:35: note: the parameter is declared here
# CHECK: :13:7: error: a variable cannot depend on the batch: i32[B,10]
# CHECK: :14:7: error: f32[B,784] and f32[10,5] do not fit together along axis 1
# CHECK: :15:16: error: this index lies outside of axis 1 of f32[B,784]
# CHECK: :16:25: error: there is no axis 2: the tensor has 2
# CHECK: :17:15: error: a prediction has one row per example: f32[B, ...], not f32[]
# CHECK: :18:15: error: a prediction has one row per example: f32[B, ...], not f32[784,B]
# CHECK: help: `transpose(x, [1, 0])` puts the batch first
