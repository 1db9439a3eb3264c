# The parser goes on after an error, at the next line.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
layer f(x, y = 1, z) {
  a = g(b
  c = 3
  d = 4 +* 2
  e = 'x'
  h = "abc
  i = 12abc
  j = a <-1
  k = 99999999999999999999
}
modle m() { }
model n() {
  relu(x, 3)
  train x adam()
}
model o() {
  if x > 3: y = 2
}
model p() {
  y = f(x))
}
# CHECK: :3:19: error: `z` needs a default, because `y` before it has one
# CHECK: :5:3: error: unexpected `c` before `)`
# CHECK: :4:8: note: for this `(`
# CHECK: :6:10: error: unexpected `*`
# CHECK: :7:7: error: unexpected character `'`
# CHECK: help: strings stand in double quotes
# CHECK: :8:7: error: this string does not end on its line
# CHECK: :9:7: error: a number ends before the first letter
# CHECK: :10:9: error: unexpected `<-`
# CHECK: help: to compare with a negative number write `< -`
# CHECK: :13:1: error: unexpected `modle`
# CHECK: help: did you mean `model`?
# CHECK: :15:7: error: unexpected `(`, expected `<-`, `+=`, `,` or `=`
# CHECK: :16:11: error: unexpected `adam`, expected `with` or `=`
# CHECK: :19:11: error: unexpected `:`, expected `{`
# CHECK: :22:11: error: unexpected `)`, expected the end of the line, `on` or `}`
