# A layer's name freezes what lies in it, as behind `over`; what is only called alike is another one.
# RUN: %dgc compile %s --emit graph 2>&1 | %FileCheck %s
# RUN: %dgc compile %s --emit graph --set stars=1 2>&1 | %FileCheck %s
# RUN: %dgc check %s --set stars=2 2>&1 | %FileCheck %s --check-prefix NONE
use nn
model frozen(stars = 0) {
  input x : f32[B, 4]
  h = nn.dense(nn.layer_norm(x), 3)
  h2 = nn.dense(h, 3)
  only = "h" if stars == 0 else "h.*" if stars == 1 else "h.dense"
  train mean(square(h2)) with [freeze(only), sgd(0.1)]
}
# CHECK-NOT: warning:
# CHECK-NOT: assign h.
# CHECK: assign h2.kernel
# CHECK-NOT: assign h.
# NONE: warning: no trained variable is called `h.dense`
