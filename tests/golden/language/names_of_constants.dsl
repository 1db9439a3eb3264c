# Constants of one place are told apart by what they are: their names say so, the same on all machines.
# RUN: %dgc compile %s --batch 2 --emit graph | %FileCheck %s
# CHECK: kernel.adam.next_m.constant.8489cfba = constant {value=0.1} : f32[]
use nn
model names() {
  input x : f32[B, 4]
  input y : f32[B, 1]
  h = nn.dense(x, 1)
  loss = mean(square(h - y))
  train loss with adam(0.01)
}
