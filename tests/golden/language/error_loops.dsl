# What is bound in a loop is gone behind it: its values, those of a `scan` and what the loop counts by.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model loops() {
  input x : f32[B, 4]
  var w : f32[4, 4] = glorot_uniform()
  for i in 0..2 {
    h = x @ w
  }
  s = x
  scan s over t in w {
    q = s + t
    s = q * 2
  }
  predict y = h + q + i + s + z
}
# CHECK: :14:15: error: unknown name `h`
# CHECK: :7:5: note: `h` is bound here, and is gone where the loop ends
# CHECK: help: what is bound before a loop stays behind it; a `scan` carries it
# CHECK: :14:19: error: unknown name `q`
# CHECK: :11:5: note: `q` is bound here
# CHECK: help: what is bound
# CHECK: :14:23: error: unknown name `i`
# CHECK-NEXT: {{.*}}predict
# CHECK-NEXT: {{.*}}^
# CHECK-NEXT: {{.*}}:6:7: note: `i` is bound here
# CHECK-NOT: help:
# CHECK: :14:31: error: unknown name `z`
# CHECK-NOT: note:
