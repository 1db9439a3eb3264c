# What functions of the library do not take is said where they are called.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model known() {
  input x : f32[B]
  input n : i64[B]
  # CHECK: :[[@LINE+1]]:17: error: `x` of `floor_div` must be integers, not the number 7.5
  a = floor_div(7.5, 2)
  # CHECK: :[[@LINE+2]]:17: error: `x` of `floor_div` must be integers, not f32[B]
  # CHECK: note: `x` is f32[B]
  b = floor_div(x, 2)
  # CHECK: :[[@LINE+1]]:7: error: division by zero
  c = floor_mod(7, 0)
  # CHECK: :[[@LINE+1]]:7: error: `and` works on bool and on integers, not on the number 1.5
  d = bit_and(1.5, 2)
  # CHECK: :[[@LINE+2]]:7: error: the number 0.5 cannot become i64
  # CHECK: note: `n` is i64[B]
  e = lgamma(n)
  # CHECK: :[[@LINE+1]]:7: error: `<` does not work on true and the number 0.5
  f = lgamma(true)
  # CHECK: :[[@LINE+1]]:13: error: only tensors and types have a dtype, not the number 7
  g = dtype(7)
  # CHECK: :[[@LINE+1]]:7: error: select does not work on true, the number 1 and true
  h = select(true, 1, true)
  # CHECK: :[[@LINE+1]]:7: error: xor does not work on true and the number 3
  i = xor(true, 3)
  # CHECK: :[[@LINE+1]]:7: error: 2 is not divisible by 3
  j = ratio(2, 3)
  # CHECK: :[[@LINE+1]]:16: error: `y` must be a tensor, not true
  k = ratio(2, true)
  predict y = x
}
