# Loops at run time, for XLA: each kind of what is carried, gone over, read and stacked.

model plain {
  input x : f64[B, 5, 2]
  input y : f64[B, 3]
  var w : f64[2, 3] = glorot_uniform()
  var u : f64[3, 3] = glorot_uniform()
  var b : f64[3] = zeros()
  h = broadcast(cast(0.0, f64), [B, 3])
  ys = scan h over x_t in x {
    h = tanh(x_t @ w + h @ u + b)
    return 2 * h
  }
  train loss = mean(square(h - y)) + 0.1 * mean(square(ys)) with sgd(0.1)
  predict p = concat([h, reshape(ys, [B, 15])], axis = 1)
}

# Rows of 3 to 5 steps, whichever they begin with.
model masked {
  input x : f32[B, 5, 2]
  input y : f32[B, 3]
  input n : i32[B]
  var k : f32[5, 12] = glorot_uniform()
  var b : f32[12] = zeros()
  h = broadcast(cast(0.0, f32), [B, 3])
  c = h
  ys = scan(reverse = true) h, c over x_t in x, t in broadcast(iota(i32[5]), [B, 5]) {
    z = concat([x_t, h], axis = 1) @ k + b
    d = sigmoid(z[:, 3:6] + 1) * c + sigmoid(z[:, 0:3]) * tanh(z[:, 6:9])
    e = sigmoid(z[:, 9:]) * tanh(d)
    live = broadcast(expand(t < n + 4, 1), [B, 3])
    h = select(live, e, h)
    c = select(live, d, c)
    return select(live, e, 0.0)
  }
  train loss = mean(square(h - y)) + 0.1 * mean(square(ys)) with adam(0.01)
  predict p = h
  predict all = ys
}

# Constants of rows, a number that is read, and a first value that is trained.
model context {
  input x : f64[B, 4, 2]
  input y : f64[B, 3]
  var w : f64[2, 3] = glorot_uniform()
  var s : f64[] = 0.5
  var h0 : f64[3] = 0.25
  about = tanh(sum(x, axis = 1) @ w)
  h = broadcast(h0, [B, 3])
  ys = scan h over x_t in x {
    h = sin(about * h + x_t @ w * s)
    return h * about
  }
  train loss = mean(square(h - y)) + 0.1 * mean(square(ys)) with sgd(0.1)
  predict p = h
}

# The sequence is one of weights, and all layers' results are stacked along the first axis.
model layers {
  input x : f64[B, 2]
  input y : f64[B, 3]
  var v : f64[2, 3] = glorot_uniform()
  var w : f64[4, 3, 3] = glorot_uniform()
  var b : f64[4, 3] = 0.1
  h = x @ v
  ys = scan(axis = 0) h over w_t in w, b_t in b {
    h = tanh(h @ w_t + b_t)
    return h
  }
  train loss = mean(square(h - y)) + 0.1 * mean(square(transpose(ys, [1, 0, 2]))) with sgd(0.1)
  predict p = h
}

# A loop in a loop, with constants of both, which are rows and weights.
model nested {
  input x : f64[B, 3, 2]
  input y : f64[B, 3]
  var w : f64[2, 3] = glorot_uniform()
  var k : f64[3] = 0.5
  about = sum(x, axis = 1) @ w
  h = broadcast(cast(0.0, f64), [B, 3])
  ys = scan h over x_t in x {
    q = h
    scan(reverse = true) q over a_t in x {
      q = tanh(q * k + 0.5 * about + (x_t + a_t) @ w)
    }
    h = h + 0.5 * q
    return q
  }
  train loss = mean(square(h - y)) + 0.1 * mean(square(ys)) with sgd(0.1)
  predict p = h
}

# Carried values that change places, integers and bools; two loops in both directions.
model mixed {
  input x : f64[B, 6, 3]
  input y : f64[B, 3]
  var w : f64[3, 3] = glorot_uniform()
  a = broadcast(cast(0.0, f64), [B, 3])
  b = a + 1
  seen = broadcast(cast(0, i32), [B, 3])
  ys, above = scan a, b, seen over x_t in x {
    old = a
    a = b
    b = old * 0.9 + x_t @ w
    seen = seen + cast(b > 0.0, i32)
    return [old * b, b > 0.5]
  }
  g = a
  back = scan(reverse = true) g over x_t in x {
    g = tanh(x_t @ w + g)
    return g
  }
  train loss = mean(square(a * g - y)) + 0.1 * mean(square(ys + back)) with sgd(0.1)
  predict p = a * g
  predict count = seen
  predict high = above
}

# Of one step, and of none.
model short {
  input x : f64[B, 1, 3]
  input y : f64[B, 3]
  var w : f64[3, 3] = glorot_uniform()
  h = broadcast(cast(0.5, f64), [B, 3])
  ys = scan h over x_t in x {
    h = tanh(h + x_t @ w)
    return h
  }
  empty = scan h over x_t in x[:, 0:0] {
    h = h * 2
    return h + 1
  }
  train loss = mean(square(h - y)) with sgd(0.1)
  predict p = h
  predict one = ys
  predict none_yet = empty
}
