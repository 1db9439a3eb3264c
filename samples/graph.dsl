# A graph network: which of three groups is a node in? The rows are edges, a batch is the whole graph. Of six nodes the group is known;
# the others learn it from those that they hear, twice over (Kipf, Welling 2017, with means of what comes in), and all learn that ends
# of an edge are alike. What is found is kept, for evaluation sees one edge at a time.
use nn

layer heard(nodes, from, to, units) {
  sent = segment_mean(gather(nodes, from), to, 60)
  return nn.dense(concat([nodes, sent], axis = 1), units)
}

model graph(units = 8, rate = 0.02) {
  input from  : i32[B]
  input to    : i32[B]
  input known : i32[B]                # of the node `to`: its group, or -1
  input group : i32[B]

  source = max(from, 0)
  target = max(to, 0)
  var nodes : f32[60, units] = normal(0, 0.1)
  h      = tanh(heard(nodes, source, target, units))
  logits = heard(h, source, target, 3)
  loss   = softmax_cross_entropy(gather(logits, target), max(known, 0))
  there  = cast(known >= 0, f32)
  end    = gather(h, target)
  near   = sum(gather(h, source) * end, axis = 1)
  far    = sum(gather(h, cast(random_uniform(f32[B], 0, 60), i32)) * end, axis = 1)
  alike  = -log_sigmoid(near) - log_sigmoid(-far)

  state found : f32[60, 3] = 0
  found <- logits
  mine   = gather(found, target)

  train   weighted_mean(loss, there) + mean(alike) with [decay_weights(0.01), adam(rate = rate)]
  metric  accuracy = ratio(sum((1 - there) * cast(correct(mine, group), f32)), sum(1 - there))     # of the others
  predict odds     = softmax(mine)

  data train {
    from  = "data/edges.csv:from"
    to    = "data/edges.csv:to"
    known = "data/edges.csv:known"
    group = "data/edges.csv:group"
  }
}

# SPDX-License-Identifier: Apache-2.0
