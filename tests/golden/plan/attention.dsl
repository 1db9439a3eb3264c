# Attention and its gradient: one step each, and nothing that has a number for each pair of places.
# RUN: %dgc compile %s --batch 3 --emit plan | %FileCheck %s
# RUN: %dgc compile %s --batch 3 --emit plan | %FileCheck --check-prefix=PAIRS %s
use nn

# CHECK: attention {{.*}} 3x97 of 97 2x4 causal
# CHECK: attention_gradient {{.*}} 3x97 of 97 2x4 causal
# PAIRS-NOT: 97{{[x,]}}97
# PAIRS-NOT: exp
model chars() {
  input x : f32[B, 97, 8]
  y = nn.attention(x, 2, causal = true)
  train mean(square(y)) with sgd(rate = 0.1)
}
