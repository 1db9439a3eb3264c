# A score is a number of f32, and infinite beyond it: rows with +Inf are NaN, -Inf is no weight, and a row of -Inf alone is 0. Of
# the first two JAX says the same; of the third it says NaN. The others are within the range, and were 0 of compiled code.
# RUN: %dgc predict %s --data x=%S/inputs/attention_range.csv:1-4 --output y=- --quiet | %FileCheck %s
# RUN: %dgc predict %s --data x=%S/inputs/attention_range.csv:1-4 --output y=- --quiet --backend interp | %FileCheck %s
model range() {
  input x : f32[B, 4]
  v = expand(expand(x[:, 1:4] * 0 + [1, 2, 3]))
  predict y = dot_product_attention(expand(expand(x[:, 0:1])), expand(expand(x[:, 1:4])), v)[:, 0, 0, 0]
}
# CHECK: {{^}}nan{{$}}
# CHECK-NEXT: {{^}}2.0{{$}}
# CHECK-NEXT: {{^}}0.0{{$}}
# CHECK-NEXT: {{^}}2.0{{$}}
# CHECK-NEXT: {{^}}2.04{{[0-9]+$}}
