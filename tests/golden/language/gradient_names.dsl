# A gradient is called after the value whose gradient it is, also where its own name ends in ".gradient" by chance: the name of
# the product in the square's rule ends as its operand's does.
# RUN: %dgc compile %s --emit graph | %FileCheck %s
model m {
  input t : f32[B]
  input x : f32[B]
  both = concat([reshape(t, [B, 1]), reshape(x, [B, 1])], axis = 1)
  predict p = gradient(sum(square(both)), t)
}
# CHECK: both.gradient = mul {{.*}}square.gradient, {{.*}}square.gradient.mul
# CHECK: both.reshape.gradient = slice both.gradient {begin=[0, 0]}
