# SPDX-License-Identifier: Apache-2.0
# A transformer of characters that learns the works of Shakespeare: tinyshakespeare.txt, its first 1,003,854 bytes as train.txt, the
# last 111,540 as val.txt. In 451 processor seconds of one thread (two cores of a Xeon with AMX, 2026-11-24): 1.4715 nats a
# character of val.txt, 1.253 of train.txt's first 111,360; 500 characters take 0.8 processor seconds.
#   dgc train bench/shakespeare.dsl --batch 8 --steps 5500 --epochs 12 --seed 1 --threads 1 --checkpoint s.st \
#     --data text=train.txt:256/moving --data next=train.txt:256/moving+1
#   dgc eval bench/shakespeare.dsl --batch 8 --checkpoint s.st --data text=val.txt:256 --data next=val.txt:256+1
#   dgc predict bench/shakespeare.dsl --batch 1 --rows 0:1 --checkpoint s.st --data text=val.txt:256 --data next=val.txt:256+1 \
#     --output written=written.txt
# Before, with windows of 64 characters, a batch of 32 and no dropout, it came to 1.519.
use nn

model shakespeare(length = 256, width = 128, blocks = 4, heads = 4, steps = 5500, rate = 4e-3, drop = 0.1, decay = 0.1,
                  precision = "bf16", count = 500, temperature = 0.8, k = 20) with precision = precision {
  input text : u8[B, length]
  input next : u8[B, length]              # the same, one character later

  embed  = nn.embedding.new(128, width)
  reader = nn.transformer_encoder.new(blocks, heads, 4 * width, causal = true, rotate = true, rate = drop)
  h      = reader(dropout(embed(cast(text, i32)), drop))
  logits = h @ transpose(embed.table)
  loss   = softmax_cross_entropy(logits, cast(next, i32))
  train mean(loss) with [clip_by_global_norm(1.0), adamw(one_cycle(rate, steps, rise = 0.1), decay = decay)]

  # It reads what is given once more, step by step, and writes `count` characters.
  if not training {
    letter = cast(text[:, 0], i32)
    cache  = broadcast(cast(0.0, f32), [B, blocks, 2, length, width])
    place  = broadcast(iota(i32[length + count]), [B, length + count])
    given  = concat([cast(text[:, 1:], i32), cast(next[:, length - 1:], i32), broadcast(cast(-1, i32), [B, count])], axis = 1)
    noise  = random_gumbel(f32[B, length + count, 128])
    all = scan letter, cache over p in place, c in given, g in noise {
      step, cache = reader(expand(embed(letter), 1), cache = cache, place = p)
      guess  = random_categorical(squeeze(step, 1) @ transpose(embed.table), temperature, k, noise = g)
      letter = select(c < 0, guess, c)
      return letter
    }
    predict written = cast(all[:, length:], u8)
  }
}
