# What a loop rounds and stacks for products behind it, or for kernels, is stacked as bf16, and products read it as it lies,
# reshaped; what anything else reads is stacked as it was.
# RUN: %dgc compile --emit fused --batch 8 --verify-each %s > %t.dg
# RUN: %FileCheck %s < %t.dg
# RUN: %dgc opt --passes= %t.dg | %golden %t.dg

# CHECK:       h.last.grad.scan = scan {{.*}} {
# CHECK:       [[D:[^ ]+]] = cast {{[^ ]+}} : bf16[8,4]
# CHECK:       matmul [[D]], {{[^ ]+}} {transpose_b=1}
# CHECK:       value stack_1 = [[D]]
# CHECK:       }
# CHECK:       [[X:[^ ]+]] = output h.last.grad.scan {index=1} : bf16[3,8,6]
# CHECK:       [[Y:[^ ]+]] = output h.last.grad.scan {index=2} : bf16[3,8,4]
# CHECK:       [[A:[^ ]+]] = reshape [[X]] : bf16[24,6]
# CHECK:       [[B:[^ ]+]] = reshape [[Y]] : bf16[24,4]
# CHECK:       w.grad = matmul [[A]], [[B]] {transpose_a=1} : f32[6,4]

# A kernel widens what it reads; another loop is given f32.
# RUN: %dgc compile --emit fused --batch 8 --set read=1 --entry predict %s | %FileCheck --check-prefix=KERNEL %s
# RUN: %dgc compile --emit fused --batch 8 --set read=2 --entry predict %s | %FileCheck --check-prefix=LOOP %s
# KERNEL:      output {{[^ ]+}} {index=1} : bf16[3,8,4]
# LOOP:        output {{[^ ]+}} {index=1} : f32[3,8,4]

model stacks(read = 0) with precision = "bf16" {
  input x : f32[B, 3, 2]
  var w : f32[6, 4] = glorot_uniform()
  h = broadcast(0.0, [B, 4])
  rounded = scan h over x_t in x {
    h = tanh(concat([x_t, h], axis = 1) @ w)
    return round_bf16(h)
  }
  y = sum(square(h))
  train y with sgd(rate = 0.1)
  again = h
  scan again over r in rounded { again = again * r }
  predict p = rounded * 2.0 + 1.0 if read == 1 else again if read == 2 else h
}
