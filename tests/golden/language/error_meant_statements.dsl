# Statements that cannot be read, and what was meant by them; tests/unit/test_frontend.c ends a source in each.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model m() {
  input x : f32[B, 4]
  # CHECK: [[#@LINE+2]]:3: error: unexpected string
  # CHECK: help: a comment begins with `#`
  """A model."""
  # CHECK: help: a comment begins with `#`; `floor_div(a, b)` divides and rounds down
  o = 7 // 2
  # CHECK: help: what is done one after the other stands in a list: `with [clip_by_norm(1.0), adam()]`
  train mean(x) with clip_by_norm(1.0), adam()
  # CHECK: help: how long is said by `dgc train --epochs N` or `--steps N`
  train mean(x) with adam() for 10 epochs
  # CHECK: help: the name of a file stands in quotes: `x = "train.csv"`
  data eval { x = train.csv }
  # CHECK: [[#@LINE+2]]:8: error: unexpected `,`
  # CHECK: help: each stands on a line of its own, or behind `;`
  p = 3, q = 4
  # CHECK: help: names stand without brackets: `a, b = value`
  (r, s) = [x, x]
  # CHECK: help: what runs elsewhere stands in `on "/gpu:0" { }`
  with device("gpu:0"):
  # CHECK: help: a block may be empty: `{ }`
  pass
  # CHECK: help: `expect_range(x, low, high)` looks at the data of an input
  assert x > 0
  # CHECK: error: unexpected `*` before `)`
  # CHECK: help: a list's items are spread in another one: `[...list, item]`
  t = concat(*[x, x])
  # CHECK: error: a number ends before the first letter
  # CHECK: help: numbers are decimal
  u = 0x10
  predict y = x
}
# CHECK: [[#@LINE+2]]:1: error: unexpected `}`
# CHECK: help: no `{` is open here
}
