# The strategy of a model, which options replace; what it says is checked where it stands.
# REQUIRES: shell
# RUN: %dgc compile --emit placed --devices cpu:0-1 %s | %FileCheck %s
# RUN: %dgc compile --emit ast %s | %FileCheck --check-prefix=AST %s
# RUN: %dgc compile --emit placed --devices cpu:0-1 --towers 2 %s | %FileCheck --check-prefix=TOWERS %s
# RUN: %dgc compile --emit placed --devices cpu:0-1 --strategy round_robin %s | %FileCheck --check-prefix=OPTION %s
# RUN: sed 's/^  strategy.*/  strategy mirorred/' %s > %t.1.dsl
# RUN: %not %dgc check %t.1.dsl 2>&1 | %FileCheck --check-prefix=NAME %s
# RUN: sed 's/^  strategy.*/  strategy mirrored(tower = 3)/' %s > %t.2.dsl
# RUN: %not %dgc check %t.2.dsl 2>&1 | %FileCheck --check-prefix=SETTING %s
# RUN: sed 's/^  strategy.*/  strategy mirrored(towers = "x")/' %s > %t.3.dsl
# RUN: %not %dgc check %t.3.dsl 2>&1 | %FileCheck --check-prefix=KIND %s
# RUN: sed 's/^  strategy.*/  strategy mirrored(towers = 0)/' %s > %t.4.dsl
# RUN: %not %dgc check %t.4.dsl 2>&1 | %FileCheck --check-prefix=RANGE %s
# RUN: sed 's/^  strategy.*/  strategy mirrored(3)/' %s > %t.5.dsl
# RUN: %not %dgc check %t.5.dsl 2>&1 | %FileCheck --check-prefix=NAMELESS %s
# RUN: sed 's/^  strategy.*/  strategy mirrored; strategy auto/' %s > %t.6.dsl
# RUN: %not %dgc check %t.6.dsl 2>&1 | %FileCheck --check-prefix=TWICE %s
# RUN: sed 's/^  strategy.*/  strategy mirrored(towers = 2, towers = 3)/' %s > %t.7.dsl
# RUN: %not %dgc check %t.7.dsl 2>&1 | %FileCheck --check-prefix=AGAIN %s

# CHECK: towers 4
# CHECK: strategy central_storage
# CHECK: parameter_device "/cpu:1"
# AST: strategy central_storage(towers = parts * 2, parameter_device = "/cpu:1")
# TOWERS: towers 2
# TOWERS: strategy central_storage
# OPTION: towers 2
# OPTION: strategy round_robin

# NAME:     error: there is no strategy 'mirorred'
# NAME:     help: did you mean 'mirrored'?
# SETTING:  error: strategies have no setting `tower`
# SETTING:  help: did you mean 'towers'?
# KIND:     error: `towers` of a strategy is an integer
# RANGE:    error: `towers` of a strategy is from 1 to
# NAMELESS: error: a strategy's settings have names, as in `towers = 4`
# TWICE:    error: a model has one strategy
# AGAIN:    error: `towers` is given twice
model spread(parts = 2) {
  input x : f32[B]
  strategy central_storage(towers = parts * 2, parameter_device = "/cpu:1")
  var w : f32[] = 1
  train mean(square(x * w)) with sgd(rate = 0.5)
}
