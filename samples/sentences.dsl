# A classifier of sequences: which language is a line in? An LSTM reads it from both ends, as far as it goes.
use nn

model sentences(width = 16, units = 32, rate = 3e-3) {
  input line : u8[B, 48]               # "1 der Koch malt ein Lied...": language, blank, text, dots

  language = cast(line[:, 0], i32) - 48
  letter   = cast(line[:, 2:47], i32)
  length   = cast(sum(cast(letter != 46, i32), axis = 1), i32)
  h        = nn.bidirectional(nn.embedding(letter, 256, width), units, lengths = length)
  logits   = nn.dense(dropout(h, 0.2), 3)
  loss     = softmax_cross_entropy(logits, language)

  train   mean(loss) with [clip_by_global_norm(1.0), adam(rate = rate)]
  metric  accuracy    = mean(correct(logits, language))
  predict probability = softmax(logits)

  data train { line = "data/words-train.txt:48" }
  data test  { line = "data/words-test.txt:48" }
}

# SPDX-License-Identifier: Apache-2.0
