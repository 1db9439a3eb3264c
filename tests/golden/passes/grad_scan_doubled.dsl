# What is added to itself again and again in a step has a gradient of as many additions, not of as many as there are ways back.
# RUN: %dgc compile %s --entry train --emit grad 2>&1 | %FileCheck %s
model doubled {
  input x : f64[B, 2]
  var w : f64[2] = 0.5
  z = x * w
  b = scan over e in z {
    h = e
    for i in 0..60 { h = h + h }
    return h
  }
  train total = mean(b) with sgd(0.1)
}
# CHECK: graph doubled.train
# CHECK: update w.update
