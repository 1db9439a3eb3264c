# Of lines one behind the other each is told of, unless it may be in brackets that an error has left open.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model lines() {
  input x : f32[B, 2]
  a b
  c d
  e = relu(x x)
  f g
  h = add(i j,
          k)
  predict y = x
}
# CHECK: :5:5: error: unexpected `b`
# CHECK: :6:5: error: unexpected `d`
# CHECK: :7:14: error: unexpected `x` before `)`
# CHECK: :8:5: error: unexpected `g`
# CHECK: :9:13: error: unexpected `j` before `)`
# CHECK-NOT: error:
