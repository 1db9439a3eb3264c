# A parameter may be one of some strings: of functions here and of the library, and what is another one, or no string.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn

function joined(x, how : "sum" or "mean" or "both" = "sum") {
  if how == "sum" { return sum(x) }
  if how == "mean" { return mean(x) }
  return sum(x) + mean(x)
}

function exactly(x, how : "sum") { return x }
function perhaps(x, how : "sum" or "mean" = none) { return x if how == none else joined(x, how) }

model strings {
  input x : f32[B, 4]
  input ids : i32[B, 3]
  a = joined(x) + joined(x, "mean") + joined(x, how = "both") + sum(exactly(x, "sum"))
  b = joined(x, "max")
  c = joined(x, 1)
  d = joined(x, x)
  e = exactly(x, "mean")
  f = nn.embedding_bag(ids, size = 10, units = 4, join = "max")
  g = nn.embedding_bag(ids, size = 10, units = 4, join = none)
  h = sum(perhaps(x)) + sum(perhaps(x, none)) + perhaps(x, "mean")
  metric all = a + b + c + d + e + sum(f) + sum(g) + h
}

# CHECK: strings.dsl:18:17: error: `how` of `joined` must be "sum" or "mean" or "both", not the string "max"
# CHECK: strings.dsl:5:26: note: the parameter is declared here
# CHECK: strings.dsl:19:17: error: `how` of `joined` must be "sum" or "mean" or "both", not the number 1
# CHECK: strings.dsl:20:17: error: `how` of `joined` must be "sum" or "mean" or "both", not f32[B,4]
# CHECK: strings.dsl:21:18: error: `how` of `exactly` must be "sum", not the string "mean"
# CHECK: strings.dsl:22:58: error: `join` of `embedding_bag` must be "sum" or "mean", not the string "max"
# CHECK: strings.dsl:23:58: error: `join` of `embedding_bag` must be "sum" or "mean", not none
# CHECK-NOT: error
