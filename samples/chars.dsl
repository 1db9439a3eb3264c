# A transformer of characters: trained to say what comes next, it goes on with what it is given. In prediction a loop asks it for one
# character after the other; keys and values of those before are kept.
use nn

model chars(length = 48, width = 64, blocks = 2, heads = 4, count = 96, temperature = 0.5, k = 10, rate = 3e-3) {
  input text : u8[B, length]
  input next : u8[B, length]              # the same, one character later

  embed  = nn.embedding.new(256, width)
  reader = nn.transformer_encoder.new(blocks, heads, 4 * width, causal = true, rotate = true)
  x      = embed(text)
  h      = reader(x)
  logits = h @ transpose(embed.table)
  loss   = softmax_cross_entropy(logits, next)

  # It reads what is given once more, step by step, and writes `count` characters.
  letter = cast(text[:, 0], i32)
  cache  = broadcast(cast(0.0, f32), [B, blocks, 2, length, width])
  place  = broadcast(iota(i32[length + count]), [B, length + count])
  given  = concat([cast(text[:, 1:], i32), cast(next[:, length - 1:], i32), broadcast(cast(-1, i32), [B, count])], axis = 1)
  noise  = random_gumbel(f32[B, length + count, 256])
  all = scan letter, cache over p in place, c in given, g in noise {
    step, cache = reader(expand(embed(letter), 1), cache = cache, place = p)
    guess  = random_categorical(squeeze(step, 1) @ transpose(embed.table), temperature, k, noise = g)
    letter = select(c < 0, guess, c)
    return letter
  }

  train   mean(loss) with [clip_by_global_norm(1.0), adam(rate = rate)]
  metric  accuracy = mean(correct(logits, next))
  predict written  = cast(all[:, length:], u8)

  data train {
    text = "data/words-train.txt:48/5"
    next = "data/words-train.txt:48/5+1"
  }
  data test {
    text = "data/words-test.txt:48/5"
    next = "data/words-test.txt:48/5+1"
  }
}

# SPDX-License-Identifier: Apache-2.0
