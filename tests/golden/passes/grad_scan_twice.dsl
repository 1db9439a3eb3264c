# The gradient of a gradient goes back through a loop in a loop that keeps values for the first one already.
# RUN: %dgc compile %s --entry train --batch 4 --verify-each --emit placed 2>&1 | %FileCheck %s --implicit-check-not=error
# CHECK: graph twice.train
# CHECK: update k.update
model twice {
  input x : f64[B, 4, 2]
  var w : f64[2, 3] = 0.5
  var k : f64[2, 3, 3] = 0.25
  h = broadcast(cast(0.0, f64), [B, 3])
  ys = scan h over x_t in x {
    q = h
    scan(axis = 0, reverse = true) q over k_t in k {
      q = tanh(q @ k_t + 0.5 * x_t @ w)
    }
    h = h + 0.5 * q
    return q
  }
  train mean(square(gradient(sum(ys) + sum(h), x))) with sgd(0.1)
}
