# Word2vec of letters: two vectors for each, so that the product of a letter's with those of its neighbours is large, and with
# those of letters from elsewhere in the line small (skip-gram with negative samples). What is predicted: which language a line is in,
# by a linear layer on the mean of its letters' vectors.
use nn

model letters(width = 8, rate = 0.01) {
  input line : u8[B, 48]               # "1 der Koch malt ein Lied...": language, blank, text, dots

  language = cast(line[:, 0], i32) - 48
  letter   = cast(line[:, 2:47], i32)
  inner    = nn.embedding.new(256, width)
  outer    = nn.embedding.new(256, width)
  here     = inner(letter[:, 0:44])
  near     = outer(letter[:, 1:45])
  far      = outer(shuffle(letter)[:, 0:44])
  good     = sum(here * near, axis = 2)
  bad      = sum(here * far, axis = 2)
  loss     = mean(-log_sigmoid(good) - log_sigmoid(-bad), axis = 1)
  known    = stop_gradient(mean(here, axis = 1))
  logits   = nn.dense(l2_normalize(known), 3)
  probe    = softmax_cross_entropy(logits, language)

  train   mean(loss) with adam(rate = rate) over [inner, outer]
  train   mean(probe) with adam(rate = 10 * rate)
  metric  accuracy    = mean(correct(logits, language))
  predict probability = softmax(logits)

  data train { line = "data/words-train.txt:48" }
  data test  { line = "data/words-test.txt:48" }
}

# SPDX-License-Identifier: Apache-2.0
