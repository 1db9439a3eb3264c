# What products of a step would make of a loop's constants is made before the loop: for the gradient a CPU transposes
# weights of f32, and those that are multiplied as bfloat16 are stored so. What something else reads, too, stays.
# RUN: %dgc compile --emit fused --batch 8 --verify-each %s > %t.dg
# RUN: %FileCheck %s < %t.dg
# RUN: %dgc opt --passes= %t.dg | %golden %t.dg
# RUN: %dgc compile --emit fused --batch 8 --verify-each --set precision=bf16 %s > %t.bf16.dg
# RUN: %FileCheck --check-prefix=BF16 %s < %t.bf16.dg
# RUN: %dgc opt --passes= %t.bf16.dg | %golden %t.bf16.dg
# RUN: %dgc compile --emit fused --batch 8 --devices gpu:0 %s | %FileCheck --check-prefix=GPU %s
# RUN: %dgc verify --batch 8 --numeric %s 2>&1 | %FileCheck --check-prefix=NUMBERS %s

# CHECK:       h.last = scan x, s, w, v {{.*}}{
# CHECK:       [[W:h.last.grad.scan.transpose]] = transpose w
# CHECK:       = scan {{.*}}, [[W]], v{{.*}} {reverse=1
# CHECK:       matmul {{[^ ]+}}, v {transpose_b=1}
# CHECK:       matmul {{[^ ]+}}, w : f32[8,4]

# BF16:        w.cast = cast w : bf16[4,4]
# BF16:        h.last = scan x, s, {{.*}}w.cast{{.*}}{
# BF16:        [[W:h.round_bf16.w]] = input : bf16[4,4]
# BF16:        matmul {{[^ ]+}}, [[W]] : f32[8,4]
# BF16:        {reverse=1
# BF16:        matmul {{[^ ]+}}, [[W]] {transpose_b=1} : f32[8,4]

# GPU-NOT:     = transpose w
# NUMBERS:     warning: numbers: h.last (scan) cannot be computed: its body is not computed in f64
# NUMBERS:     not compared: {{.*}}w, v
model loop(precision = "f32") with precision = precision {
  input x : f32[B, 4]
  var s : f32[3] = ones()
  var w : f32[4, 4] = glorot_uniform()
  var v : f32[4, 4] = glorot_uniform()
  h = x
  scan(axis = 0) h over t in s {
    h = tanh(h @ w) @ v + sum(v * t, axis = 0)
  }
  y = sum(square(h))
  train y with sgd(rate = 0.1)
  predict p = h
}
