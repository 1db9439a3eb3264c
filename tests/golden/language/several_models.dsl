# Several models in a file: check looks at all, the other verbs at one.
# RUN: %dgc check %s | %FileCheck --check-prefix=ALL %s
# RUN: %dgc check --model large %s | %FileCheck --check-prefix=ONE %s
# RUN: %dgc compile --model small --emit graph %s | %FileCheck --check-prefix=SMALL %s
# RUN: %not %dgc compile %s 2>&1 | %FileCheck --check-prefix=WHICH %s
# RUN: %not %dgc check --set units=0 %s 2>&1 | %FileCheck --check-prefix=WRONG %s
# RUN: %not %dgc check --model medium %s 2>&1 | %FileCheck --check-prefix=NONE %s
use nn

layer network(x, units) { return nn.dense(nn.dense(x, units, relu), 1) }

model small(units = 2) {
  input x : f32[B, 4]
  y = network(x, units)
  train mean(square(y)) with sgd()
}

model large(units = 50) {
  input x : f32[B, 4]
  y = network(x, units)
  train mean(square(y)) with sgd()
}

# ALL:        several_models.dsl: model small: ok
# ALL-NEXT:   several_models.dsl: model large: ok
# ONE:        several_models.dsl: ok
# SMALL:      graph small.train
# SMALL:      y.dense.kernel = variable {trainable=1} : f32[4,2]
# WHICH:      error: there are several models: small, large
# WHICH:      note: the first one is here
# WHICH:      help: `--model large` takes this one
# WRONG:      `y.dense.kernel` is f32[4,0] and holds nothing
# WRONG:      `y.dense.kernel` is f32[4,0] and holds nothing
# NONE:       error: there is no model `medium`
# NONE:       has small, large
