# What no tower has for itself, and what towers have and nothing may be made of.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
use nn
model own() {
  input x : f32[B, 3]
  var w : f32[3] = ones()
  state kept : f32[] = 0
  state level : f32[3] = 0 aggregation(mean)
  # CHECK-DAG: error: the values of towers have no mean where they are bool
  # CHECK-DAG: help: declare it i32, and assign `cast(x, i32)`
  state any_mean : bool[] = false aggregation(mean)
  # CHECK-DAG: error: the values of towers have no sum where they are bool
  state any_sum : bool[] = false aggregation(sum) synchronization(on_read)
  # CHECK-DAG: :[[@LINE+2]]:22: error: the mean of integers is no integer: i32[] cannot hold that of the towers' values
  # CHECK-DAG: help: declare it f32 or f64, and assign `cast(x, f32)`
  state whole_mean : i32[] = 0 aggregation(mean)
  state whole_sum : i32[] = 0 aggregation(sum)
  state first : bool[] = false aggregation(only_first_replica) synchronization(on_read)
  # CHECK-DAG: error: `local` takes what is made of all rows of the batch, without them, not f32[B,3]
  # CHECK-DAG: help: rows are a tower's own already: write `local(mean(x, axis = 0))` of its mean of them
  a = local(x)
  # CHECK-DAG: error: this is the same in all towers: nothing of it is of the rows of a batch
  b = local(2 * w)
  # CHECK-DAG: error: this is the same in all towers: f32[3], of the whole batch
  # CHECK-DAG: help: write `all_reduce(local(x), op)` of what each tower has of its own rows
  c = all_reduce(mean(x, axis = 0), "sum")
  # CHECK-DAG: error: rows of towers cannot be added to each other: towers may have different numbers of them
  # CHECK-DAG: help: reduce them in each tower first: `all_reduce(local(sum(x, axis = 0)), op = "mean")`
  d = all_reduce(x, "mean")
  # CHECK-DAG: error: `op` is "sum" or "mean"
  e = all_reduce(local(sum(x)), "median")
  # CHECK-DAG: error: `{{.*}}` would be of a tower's rows in this value, and of the whole batch in the rows that it is made of
  # CHECK-DAG: help: make it local first, and the rows of that
  m = mean(x, axis = 0)
  f = local(m + mean(square(x - m), axis = 0))
  # CHECK-DAG: error: `level.top.reduce_max` would be of a tower's rows in this value, and of the whole batch in the rows that it is made of
  level <- logsumexp(x, axis = 0)
  # CHECK-DAG: error: `kept` cannot hold what differs from tower to tower
  kept <- local(sum(x))
  # CHECK-DAG: error: what a tower has for itself is made in no step of a `scan`
  g = scan(length = 2) {
    return broadcast(local(sum(x, axis = 0)), [B, 3])
  }
  train mean(sum(x * w, axis = 1)) with sgd(0.1)
}

# SPDX-License-Identifier: Apache-2.0
