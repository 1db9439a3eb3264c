# Values that cannot be read, and what was meant by them; tests/unit/test_frontend.c ends a source in each.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model m() {
  input x : f32[B, 4]
  # CHECK: help: write `function f(x) { return ... }`
  g = lambda a: a + 1
  # CHECK: help: values are compared by `==` and `!=`
  h = 1 if x is None else 2
  # CHECK: [[#@LINE+2]]:13: error: unexpected `<`
  # CHECK: help: two comparisons are joined: `a < b and b < c`
  j = 0 < 1 < 2
  # CHECK: [[#@LINE+2]]:7: error: unexpected `<`
  # CHECK-NOT: help: two comparisons
  k = < 2
  # CHECK: error: unexpected character `?`
  # CHECK: help: a choice is written `a if c else b`
  l = 1 > 2 ? x : -x
  # CHECK: [[#@LINE+2]]:7: error: unexpected `(`, expected a name
  # CHECK: help: write `for i in 0..n { }`, or `for item in list { }`
  for (i = 0
  # CHECK: [[#@LINE+2]]:8: error: unexpected `,`, expected `in`
  # CHECK: help: write `for i in 0..n { }`, or `for item in list { }`
  for i, v in [1, 2] { }
  # CHECK: [[#@LINE+2]]:7: error: unexpected `{`
  # CHECK: help: a list stands in `[ ]`; values by name are statements of their own
  n = {"a": 1}
  predict y = x
}
