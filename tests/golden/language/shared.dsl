# A layer that is made once and called often: its variables are declared by the first call, under the layer's own name.
# RUN: %dgc compile --emit graph %s | %FileCheck %s
# RUN: %dgc compile --emit graph --entry init %s | %FileCheck --check-prefix=INIT %s
# RUN: %dgc compile --emit graph --entry predict %s | %FileCheck --check-prefix=PREDICT %s
use nn

layer pair(x, y, inner) { return inner(x) - relu(inner(y)) }

model shared() {
  input x : f32[B, 4]
  input ids : i32[B, 2]
  norm = nn.batch_norm.new()
  tower = nn.mlp.new([3, 2], activation = tanh)
  embed = nn.embedding.new(size = 7, units = 4)
  both = dropout(pair(norm(x), norm(x * 2), inner = tower))
  many = [nn.dense.new(5), nn.dense.new(6)]
  wide = many[0](x) @ broadcast(1.0, [5, 6]) + many[1](tanh(embed(ids)[:, 0]))
  logits = x @ transpose(embed.table)

  train mean(both) + mean(logits) + mean(wide) +
        sum(tower.part[1].bias) with sgd() over [tower, embed]
  predict p = both
}

# INIT-NOT:  {{^  (both|wide|logits).*}} = variable
# INIT-DAG:  tower.part.1.kernel = variable {trainable=1} : f32[3,2]
# INIT-DAG:  many.kernel = variable {trainable=1} : f32[4,5]
# INIT-DAG:  many#2.kernel = variable {trainable=1} : f32[4,6]
# CHECK:     norm.moving_mean = variable
# CHECK:     both.x.x.moving_mean.add = add
# CHECK-NOT: norm.moving_mean = variable
# CHECK:     both.x.y.moving_mean.mul = mul {{.*}}both.x.x.moving_mean.add
# CHECK:     both.x.lhs.part.0.matmul = matmul both.x.x, tower.part.0.kernel
# CHECK:     both.x.rhs.x.part.0.matmul = matmul both.x.y, tower.part.0.kernel
# CHECK:     embed.table = variable
# CHECK:     logits = matmul x, embed.table {transpose_b=1}
# CHECK-NOT: {{many|norm.*}}.grad = gradient
# CHECK-DAG: tower.part.1.bias.grad = gradient
# CHECK-DAG: embed.table.grad = gradient
# PREDICT:   tower.part.0.kernel = variable
