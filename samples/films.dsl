# A recommender in the manner of DLRM: a table of vectors for each kind of word, a perceptron for numbers, the products of all pairs
# of what they give, and a layer on top (Naumov et al. 2019).
use nn

model films(width = 8, rate = 0.01) {
  input age     : f32[B]
  input minutes : f32[B]
  input city    : i32[B]
  input kind    : i32[B]
  input liked   : f32[B]

  numbers = nn.mlp(stack([age / 40 - 1, minutes / 100 - 1], axis = 1), [16, width])
  cities  = nn.embedding(city, 8, width)              # seven words, and one for those that training has not seen
  kinds   = nn.embedding(kind, 8, width)
  all     = stack([numbers, cities, kinds], axis = 1)
  pairs   = flatten(all @ transpose(all))             # each with each
  logit   = squeeze(nn.dense(concat([numbers, pairs], axis = 1), 1), 1)
  loss    = sigmoid_cross_entropy(logit, liked)

  train   mean(loss) with [decay_weights(1e-3, "*.table"), adam(rate = rate)]
  metric  accuracy    = mean((logit > 0) == (liked > 0.5))
  predict probability = sigmoid(logit)

  data train {
    age     = "data/films-train.csv:age"
    minutes = "data/films-train.csv:minutes"
    city    = "data/films-train.csv:city:category"
    kind    = "data/films-train.csv:kind:category"
    liked   = "data/films-train.csv:liked"
  }
  data test {
    age     = "data/films-test.csv:age"
    minutes = "data/films-test.csv:minutes"
    city    = "data/films-test.csv:city:category"
    kind    = "data/films-test.csv:kind:category"
    liked   = "data/films-test.csv:liked"
  }
}

# SPDX-License-Identifier: Apache-2.0
