# What a CPU multiplies as bfloat16 lies so in memory: a cast in the place of round_bf16, in the kernel that computes the
# operand. On GPUs it stays f32. Nothing but casts and products has the type, and the text is read back as it is printed.
# REQUIRES: shell
# RUN: %dgc compile --emit fused --batch 8 --verify-each %s > %t.dg
# RUN: %FileCheck %s < %t.dg
# RUN: %dgc opt --passes= %t.dg | %golden %t.dg
# RUN: %dgc compile --emit plan --batch 8 %s | %FileCheck --check-prefix=PLAN %s
# RUN: sed 's/x = input : f32/x = input : bf16/' %t.dg > %t.input.dg
# RUN: %not %dgc opt --passes= %t.input.dg 2>&1 | %FileCheck --check-prefix=INPUT %s
# RUN: %dgc verify --batch 8 --numeric %s

# CHECK: : bf16[8,4]
# CHECK: = cast {{.*}} : bf16[8,4]
# CHECK: y = matmul {{[^{]*}} : f32[8,3]
# CHECK-NOT: precision=
# PLAN: matmul y 8x3x4 bf16
# INPUT: error: {{.*}}bf16
model linear with precision = bf16 {
  input x : f32[B, 4]
  var w : f32[4, 3] = glorot_uniform()
  y = square(x) @ w
  train sum(square(y)) with sgd(rate = 0.1)
  predict p = y
}
