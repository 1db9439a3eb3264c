# Reads a text of which it is not said what stands where (CTC, Graves et al. 2006). Each of twelve letters is heard as a tone that lasts
# two or three steps, in noise; the steps' classes are letters, or nothing, and letters are what is left without repeats and nothings.
use nn

model tones(units = 48, rate = 3e-3) {
  input text : u8[B, 12]

  letter = cast(text, i32)                                            # bytes; class 0 is nothing
  last   = cast(floor(random_uniform(f32[B, 12], 2, 4)), i32)         # how long each one is heard
  until  = cumsum(last, axis = 1)
  step   = iota(i32[36])
  heard  = cast(sum(cast(expand(until, 1) <= reshape(step, [1, 36, 1]), i32), axis = 2), i32)   # which letter stands at the step
  sound  = take_along(concat([letter, broadcast(cast(0, i32), [B, 24])], axis = 1), min(heard, 12), 1)
  tone   = sin(expand(cast(sound, f32)) * (0.3 + 0.37 * cast(iota(i32[16]), f32)))
  x      = tone + 0.2 * random_normal(type(tone))
  steps  = until[:, -1]
  h      = nn.bidirectional(x, units, cell = nn.gru, sequence = true, lengths = steps)
  logits = nn.dense(h, 128)
  loss   = ctc_loss(logits, letter, lengths = steps)

  # Reading: the best class of each step; where it is another than before, and something, it is the next letter.
  best   = select(step < expand(steps), argmax(logits, axis = 2), 0)
  before = concat([broadcast(cast(0, i32), [B, 1]), best[:, 0:35]], axis = 1)
  new    = best != 0 and best != before
  place  = select(new, cumsum(cast(new, i32), axis = 1) - 1, -1)
  read   = add_along(broadcast(cast(0, i32), [B, 36]), place, best, 1)

  # Letters to be put in, left out or replaced: one row of the table for each letter that was read (Levenshtein 1966).
  ahead  = broadcast(iota(i32[13]), [B, 13])
  row    = ahead
  scan row over r in read {
    swap  = row[:, 0:12] + cast(letter != expand(r), i32)
    begin = concat([row[:, 0:1] + 1, min(row[:, 1:] + 1, swap)], axis = 1)
    row   = select(expand(r) != 0, cummin(begin - ahead, axis = 1) + ahead, row)
  }
  errors = cast(row[:, 12], f32)

  train   mean(loss) with [clip_by_global_norm(1.0), adam(rate = rate)]
  metric  error_rate = mean(errors) / 12
  metric  all_right  = mean(errors == 0)
  predict written    = cast(read[:, 0:12], u8)

  data train { text = "data/words-train.txt:12/3" }
  data test  { text = "data/words-test.txt:12/3" }
}

# SPDX-License-Identifier: Apache-2.0
