# Variables are named by the bindings that lead to them, values by bindings and roles.
# RUN: %dgc compile --emit graph %s | %FileCheck %s
use nn
model names(depth = 2) {
  input x : f32[B, 4]
  h = x
  for i in 0..depth { h = nn.dense(h, 4, relu) on "/cpu:1" }
  y = nn.dense(h, 3) + nn.dense(x, 3)
  z = tanh(nn.mlp(y, [5, 2]))
  train mean(z) with sgd(rate = 0.5)
}
# CHECK-LABEL: graph names.train
# CHECK: h.0.kernel = variable {trainable=1} : f32[4,4] {{.*}}"/cpu:1"
# CHECK: h.0.matmul = matmul x, h.0.kernel
# CHECK: h.0 = max
# CHECK: h.1.kernel = variable
# CHECK: h.1.matmul = matmul h.0, h.1.kernel
# CHECK: y.kernel = variable {trainable=1} : f32[4,3]
# CHECK: y#2.kernel = variable {trainable=1} : f32[4,3]
# CHECK: y = add y.lhs, y.rhs
# CHECK: z.part.0.kernel = variable {trainable=1} : f32[3,5]
# CHECK: z.part.1.kernel = variable {trainable=1} : f32[5,2]
# CHECK: z = tanh z.x
# CHECK: z.mean = div
# CHECK: h.0.kernel.grad = gradient z.mean, h.0.kernel
# CHECK: step.update = assign step
# CHECK: loss z = z.mean
