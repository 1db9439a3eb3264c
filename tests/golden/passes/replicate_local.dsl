# What each tower has for itself: the model says so, its graphs show it, and what is joined is one all_reduce.
# RUN: %dgc compile %s --entry train --emit graph | %FileCheck %s --check-prefix=SOURCE
# RUN: %dgc compile %s --entry train --towers 3 --batch 7 --emit replicated | %FileCheck %s --check-prefix=TOWERS
# RUN: %dgc check %s 2>&1 | %FileCheck %s --check-prefix=NOTE
# RUN: %dgc verify %s --towers 3 --batch 7 --numeric | %FileCheck %s --check-prefix=PROOF
model own() {
  input x : f64[B]
  var w : f64[] = 2
  # NOTE: :[[#@LINE+1]]:15: note: each tower has a value of its own here: results depend on the number of towers
  m = w * x - local(mean(w * x))
  s = all_reduce(local(sum(x)), "sum")
  train loss = mean(square(m)) * s with sgd(0.1)
}
# SOURCE-DAG: m.local = local m.reduce_sum
# SOURCE-DAG: m.local.batch_size = local m.batch_size
# SOURCE-DAG: s = aggregate s.local {reduction="sum", each=1, given=1}
# TOWERS-DAG: s.all_reduce = all_reduce s.share, tower_1/s.share, tower_2/s.share {reduction="sum"} : f64[] mirrored
# TOWERS-DAG: tower_1/local/m.batch_size = batch_size {batch=2} : f64[] per_replica tower 1
# PROOF: own.train: 3 towers
# PROOF: towers     ok
# PROOF: partial    ok
# PROOF: numbers    ok

# SPDX-License-Identifier: Apache-2.0
