# --emit summary: what is trained, with its line in the model; states; what optimizers keep.
# RUN: %dgc compile %s --emit summary | %FileCheck %s
# RUN: %dgc compile %s --emit summary --entry predict | %FileCheck %s --check-prefix=PREDICT
# RUN: %not %dgc compile %s --emit summary --json 2>&1 | %FileCheck %s --check-prefix=JSON
use nn
model m(units = 6) {
  input id : i32[B]
  input y  : f32[B, 3]
  x = nn.embedding(id, 10, 4, storage = bf16)
  h = nn.batch_norm(nn.dense(x, units))
  p = nn.dense(h, 3, use_bias = false)
  train mean(square(p - y)) with momentum(0.1, 0.9)
  predict said = p
}
# CHECK:      {{^}}m.train{{$}}
# CHECK-NEXT: {{^}}  x.table {{ *}}f32[10,4] in bf16 {{ *}}40  summary.dsl:9{{$}}
# CHECK-NEXT: {{^}}  h.dense.kernel {{ *}}f32[4,6] {{ *}}24  summary.dsl:10{{$}}
# CHECK-NEXT: {{^}}  h.dense.bias {{ *}}f32[6] {{ *}}6  summary.dsl:10{{$}}
# CHECK-NEXT: {{^}}  h.scale
# CHECK-NEXT: {{^}}  h.shift
# CHECK-NEXT: {{^}}  p.kernel {{ *}}f32[6,3] {{ *}}18  summary.dsl:11{{$}}
# CHECK-NEXT: {{^}}trained: 6 variables, 100 numbers{{$}}
# CHECK-NEXT: h.moving_mean
# CHECK-NEXT: h.moving_variance
# CHECK:      states: 3 variables, 13 numbers
# CHECK-NEXT: of optimizers: 6 variables, 100 numbers
# PREDICT: m.predict
# PREDICT: trained: 6 variables, 100 numbers
# PREDICT: states: 2 variables, 12 numbers
# PREDICT-NOT: of optimizers
# JSON: there is no JSON of 'summary'
