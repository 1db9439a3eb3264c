# The canonical text of a model, which prints as itself.
# RUN: %dgc compile --emit ast %s | %FileCheck %s
# RUN: %dgc compile --emit ast %s > %t.dsl
# RUN: %dgc compile --emit ast %t.dsl | %golden %t.dsl
use nn
layer f( x : f32[..., K], units,activation=identity ) { return activation( (x@x)+( (1-2)-(3-4) ) ) }
model print(rate = 1e-3, n = 1_000) {
  input x : f32[B,4]
  if n > 3 and not (n == 5 or false) { a = -x^2; b = (-x)**2 } else if n > 2 { a = x; b = x } else { a = x; b = x }
  c, d = [ a,
    b ]
  on "/cpu:0" { e = x[:, 1:-1, ...][..., 0:2] on "/cpu:0" }
  predict p = (a if true else b) + c * (d + 1) + nn.dense(e, units = 4)
}
# CHECK: use nn
# CHECK-EMPTY:
# CHECK-NEXT: layer f(x : f32[..., K], units, activation = identity) {
# CHECK-NEXT:   return activation(x @ x + (1 - 2 - (3 - 4)))
# CHECK-NEXT: }
# CHECK-EMPTY:
# CHECK-NEXT: model print(rate = 0.001, n = 1000) {
# CHECK-NEXT:   input x : f32[B, 4]
# CHECK-NEXT:   if n > 3 and not (n == 5 or false) {
# CHECK-NEXT:     a = -x ^ 2
# CHECK-NEXT:     b = (-x) ^ 2
# CHECK-NEXT:   } else if n > 2 {
# CHECK:        c, d = [a, b]
# CHECK-NEXT:   on "/cpu:0" {
# CHECK-NEXT:     e = x[:, 1:-1, ...][..., 0:2] on "/cpu:0"
# CHECK-NEXT:   }
# CHECK-NEXT:   predict p = (a if true else b) + c * (d + 1) + nn.dense(e, units = 4)
