# Which language is a line in? An embedding of letter pairs, averaged: a step changes the few rows of the table
# that its lines name, and no others.
use nn

model words(width = 8, rate = 2.0) {
  input line : u8[B, 48]               # "1 der Koch malt ein Lied...": language, blank, text, dots

  language = cast(line[:, 0], i32) - 48
  letter   = cast(line[:, 2:47], i32)
  pair     = 256 * letter[:, 0:44] + letter[:, 1:45]
  vectors  = nn.embedding(pair, 65536, width)
  logits   = nn.dense(mean(vectors, axis = 1), units = 3)
  loss     = softmax_cross_entropy(logits, language)

  train   mean(loss) with sgd(rate = rate)
  metric  accuracy    = mean(correct(logits, language))
  predict probability = softmax(logits)

  data train { line = "data/words-train.txt:48" }
  data test  { line = "data/words-test.txt:48" }
}

# SPDX-License-Identifier: Apache-2.0
