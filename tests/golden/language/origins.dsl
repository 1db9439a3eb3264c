# A node tells the model's line first, then each layer and function that was called, with the line inside of it.
# RUN: %dgc compile %s --emit graph | %FileCheck %s
# RUN: %dgc compile %s --emit graph --entry init | %FileCheck --check-prefix=INIT %s
# RUN: %dgc compile %s --devices cpu:0-1 --emit placed | %FileCheck --check-prefix=PLACED %s
use nn

layer block(x : f32[..., K]) {
  y = nn.dense(x, units = K, activation = relu)
  return x + y
}

model m() {
  input x : f32[B, 4]
  h = block(x)
  s = h * h
  train mean(sum(s, axis = 1)) with adam(rate = 0.1)
}

# CHECK: x = input : f32[B,4]  # origins.dsl:13
# CHECK: h.y.matmul = matmul {{.*}}  # origins.dsl:14 (block, origins.dsl:8; nn.dense, nn.dsl:[[#]])
# CHECK: h.y = max {{.*}}  # origins.dsl:14 (block, origins.dsl:8; nn.dense, nn.dsl:[[#]]; relu, prelude.dsl:[[#]])
# CHECK: h = add x, h.y : f32[B,4]  # origins.dsl:14 (block, origins.dsl:9)
# CHECK: s = {{.*}}  # origins.dsl:15{{$}}
# CHECK: step = variable {{.*}}  # origins.dsl:12{{$}}
# CHECK: h.y.bias.update = assign {{.*}}  # origins.dsl:16 (adam, optimizers.dsl:[[#]])
# CHECK: step.update = assign {{.*}}  # origins.dsl:12{{$}}
# INIT: h.y.kernel = variable {{.*}}  # origins.dsl:14 (block, origins.dsl:8; nn.dense, nn.dsl:[[#]])
# INIT: h.y.kernel.initial{{.*}} (block, origins.dsl:8; nn.dense, nn.dsl:[[#]]; glorot_uniform, initializers.dsl:[[#]])
# PLACED: tower_1/split_inputs/x = split {{.*}}  # split -> consolidation device, origins.dsl:13
# PLACED: tower_1/h.y.matmul = {{.*}}  # compute -> tower 1's worker, origins.dsl:14 (block, origins.dsl:8; nn.dense, nn.dsl:[[#]])
# PLACED: gradient_aggregating/h.y.bias = add {{.*}}  # sum -> device 0, origins.dsl:14 (block, origins.dsl:8; nn.dense, nn.dsl:[[#]])
