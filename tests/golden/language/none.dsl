# Anything may be compared with none.
# RUN: %dgc compile %s --entry predict --emit graph 2>&1 | %FileCheck %s
layer f(x, k = none, s = "a", l = [1, 2], g = relu) {
  if s == none { return 2 * x }
  if l == none { return 3 * x }
  if g == none { return 4 * x }
  if none != none { return 5 * x }
  if x == none { return 6 * x }
  if k == none { return x }
  if x != none and none == none { return g(x * k) }
  return 7 * x
}
model none_of_them() {
  input x : f32[B]
  predict y = f(f(x), x)
}
# CHECK: y.mul = mul x, x
# CHECK: predict y
