# Words of a table count from 1: what is said where the model has no place for the last of them, or for none.
# RUN: %not %dgc train %s --data y=%S/inputs/words.csv:kind:category --backend interp 2>&1 | %FileCheck %s
# RUN: %not %dgc train %s --data y=%S/inputs/words.csv:kind:category --backend interp --set from=1 --set classes=3 2>&1 | %FileCheck %s --check-prefix NONE
# RUN: %not %dgc train %s --data y=%S/inputs/words.csv:grade --backend interp 2>&1 | %FileCheck %s --check-prefix POINT
# RUN: %dgc train %s --data y=%S/inputs/words.csv:kind:category --backend interp --set classes=3 --epochs 1 --quiet
# RUN: %dgc train %s --data y=%S/inputs/words.csv:kind:category --backend interp --set minus=1 --rows 0:2 --epochs 1 --quiet
use nn
model words(classes = 2, from = 0, minus = 0) {
  input age : f32[B]
  input y : i32[B]
  logits = nn.dense(expand(age / 50, 1), classes)
  train mean(softmax_cross_entropy(logits, expect_range(y, from, 9) - minus)) with adam()
  data train { age = "inputs/words.csv:age" }
}
# CHECK: error: row 1 of {{.*}}words.csv:kind:category is 2, the word 'yes', and input 'y' must be from 0 to 1
# CHECK: help: words count from 1, and 0 is none of them: of these 2 words the model needs 3 numbers, or 2 with `y - 1`
# NONE: error: row 2 of {{.*}}words.csv:kind:category is 0, no word or an unknown one, and input 'y' must be from 1 to 2
# NONE-NOT: help:
# POINT: error: {{.*}}words.csv:grade holds f64, which does not become the i32 of input 'y' without loss
# POINT: help: declare `input y : f32[B]`, and write `cast(y, i32)`, or write whole numbers without a point to the file
