# Lengths of sequences that cannot be are refused when the data is read, as labels are; computed ones are what the layer's text says.
# RUN: %dgc train %s --data n=%S/inputs/lengths.csv:n --set cell=0 --backend interp --epochs 1 --quiet
# RUN: %not %dgc train %s --data n=%S/inputs/lengths.csv:far --set cell=0 --backend interp 2>&1 | %FileCheck %s
# RUN: %not %dgc train %s --data n=%S/inputs/lengths.csv:far --set cell=1 --backend interp 2>&1 | %FileCheck %s
# RUN: %not %dgc train %s --data n=%S/inputs/lengths.csv:far --set cell=2 --backend interp 2>&1 | %FileCheck %s
# RUN: %not %dgc train %s --data n=%S/inputs/lengths.csv:far --set cell=3 --backend interp 2>&1 | %FileCheck %s
# RUN: %not %dgc train %s --data n=%S/inputs/lengths.csv:far --set cell=4 --backend interp 2>&1 | %FileCheck %s
# RUN: %not %dgc train %s --data n=%S/inputs/lengths.csv:far --set cell=5 --backend interp 2>&1 | %FileCheck %s
# RUN: %not %dgc train %s --data n=%S/inputs/lengths.csv:below --set cell=5 --backend interp 2>&1 | %FileCheck %s --check-prefix BELOW
# RUN: %dgc train %s --data n=%S/inputs/lengths.csv:far --set cell=6 --backend interp --epochs 1 --quiet
use nn
model lengths(cell = 0) {
  input n : i32[B]
  x = broadcast(expand(expand(cast(n, f32), 1), 2), [B, 5, 2])
  y = (nn.rnn(x, 2, lengths = n) if cell == 0
      else nn.gru(x, 2, lengths = n) if cell == 1
      else nn.lstm(x, 2, lengths = n) if cell == 2
      else nn.bidirectional(x, 2, lengths = n) if cell == 3
      else nn.stacked(x, [2, 2], lengths = cast(n, i64)) if cell == 4
      else nn.multi_head_attention(x, heads = 1, mask = nn.length_mask(n, 5)) if cell == 5
      else nn.rnn(x, 2, lengths = clip(n, 0, 5)))
  train mean(square(y)) with adam()
}
# CHECK: error: row 1 of {{.*}}lengths.csv:far is 6, and input 'n' must be from 0 to 5
# BELOW: error: row 2 of {{.*}}lengths.csv:below is -1, and input 'n' must be from 0 to 5
