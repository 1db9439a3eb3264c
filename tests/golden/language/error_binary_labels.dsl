# What takes labels that are 0 or 1 refuses others where they are read: numbers, of integers and of floats, and words. What lies
# between stays.
# RUN: %not %dgc eval %s --backend interp --set what=0 --data y=%S/inputs/binary.csv:two 2>&1 | %FileCheck %s --check-prefixes TWO,AUC
# RUN: %not %dgc eval %s --backend interp --set what=1 --data y=%S/inputs/binary.csv:two 2>&1 | %FileCheck %s --check-prefix TWO
# RUN: %not %dgc eval %s --backend interp --set what=2 --data y=%S/inputs/binary.csv:two 2>&1 | %FileCheck %s --check-prefix TWO
# RUN: %not %dgc eval %s --backend interp --set what=3 --data y=%S/inputs/binary.csv:two 2>&1 | %FileCheck %s --check-prefix TWO
# RUN: %not %dgc eval %s --backend interp --set what=4 --data y=%S/inputs/binary.csv:two 2>&1 | %FileCheck %s --check-prefix TWO
# RUN: %not %dgc eval %s --backend interp --set what=5 --data y=%S/inputs/binary.csv:two 2>&1 | %FileCheck %s --check-prefix TWO
# RUN: %not %dgc eval %s --backend interp --set what=0 --data y=%S/inputs/binary.csv:sign 2>&1 | %FileCheck %s --check-prefix SIGN
# RUN: %not %dgc eval %s --backend interp --set what=2 --data y=%S/inputs/binary.csv:fraction 2>&1 | %FileCheck %s --check-prefix PART
# RUN: %not %dgc eval %s --backend interp --set what=2 --data y=%S/inputs/binary.csv:byte 2>&1 | %FileCheck %s --check-prefix BYTE
# RUN: %not %dgc train %s --backend interp --epochs 1 --set what=6 --data z=%S/inputs/binary.csv:kind:category 2>&1 | %FileCheck %s --check-prefix WORD
# RUN: %not %dgc train %s --backend interp --epochs 1 --set what=6 --data z=%S/inputs/binary.csv:city:category 2>&1 | %FileCheck %s --check-prefix CITY
# RUN: %dgc eval %s --backend interp --set what=0 --data y=%S/inputs/binary.csv:soft
# RUN: %dgc eval %s --backend interp --set what=2 --data y=%S/inputs/binary.csv:soft
# RUN: %dgc eval %s --backend interp --set what=7 --data z=%S/inputs/binary.csv:two | %FileCheck %s --check-prefix GOOD
# RUN: %dgc eval %s --backend interp --set what=8 --data z=%S/inputs/binary.csv:two | %FileCheck %s --check-prefix TRUE
# RUN: %dgc eval %s --backend interp --set what=9 --data z=%S/inputs/binary.csv:two | %FileCheck %s --check-prefix NAN
# RUN: %not %dgc eval %s --backend interp --set what=10 --data y=%S/inputs/binary.csv:soft 2>&1 | %FileCheck %s --check-prefix HINGE
# RUN: %not %dgc eval %s --backend interp --set what=10 --data y=%S/inputs/binary.csv:two 2>&1 | %FileCheck %s --check-prefix OVER
# RUN: %not %dgc eval %s --backend interp --set what=11 --data z=%S/inputs/binary.csv:byte 2>&1 | %FileCheck %s --check-prefix ZERO
# RUN: %dgc eval %s --backend interp --set what=10 --data y=%S/inputs/binary.csv:sign
# RUN: %dgc eval %s --backend interp --set what=11 --data z=%S/inputs/binary.csv:sign
model labels(what = 0) {
  input p : f32[B]
  input y : f32[B]
  input z : i32[B]
  if what == 0 { metric m = auc(p, y) }
  if what == 1 { metric m = auc_pr(p, cast(expand(y), f64)[:, 0], weights = p) }
  if what == 2 { metric m = mean(sigmoid_cross_entropy(p, y)) }
  if what == 3 { metric m = mean(sigmoid_focal_loss(expand(p), expand(y))) }
  if what == 4 { metric m = mean(dice_loss(expand(p), expand(y))) }
  if what == 5 { metric m = mean(contrastive_loss(p, y)) }
  if what == 7 { metric m = auc(p, cast(expect_range(z, 1, 2) - 1, f32)) }
  if what == 8 { metric m = auc(p, z == 2) }
  if what == 9 { metric m = auc(p, 2 * z) }
  if what == 10 { metric m = mean(hinge(p, y)) }
  if what == 11 { metric m = mean(squared_hinge(p, cast(z, f32))) }
  if what == 6 {
    var w : f32[1] = zeros()
    train mean(sigmoid_cross_entropy(expand(p) @ expand(w), expand(cast(z, f32)))) with sgd(0.1)
  }
  data train { p = "inputs/binary.csv:p" }
  data test { p = "inputs/binary.csv:p" }
}
# TWO: error: row 1 of {{.*}}binary.csv:two is 2, and input 'y' must be from 0 to 1
# AUC: if what == 0 { metric m = auc(p, y) }
# AUC-NEXT: {{ \| +\^~+$}}
# TWO: help: labels are 0 and 1 here: of 1 and 2 that is `y - 1`
# SIGN: error: row 0 of {{.*}}binary.csv:sign is -1, and input 'y' must be from 0 to 1
# SIGN: help: labels are 0 and 1 here: of -1 and 1 that is `cast(y > 0, f32)`
# SIGN: help: rows without a label, as 255 or -1 may mark them, count for nothing with a weight of 0: `known = clip(y, 0, 1)` and `weighted_mean(loss, cast(known == y, f32))`
# PART: error: row 1 of {{.*}}binary.csv:fraction is 1.5, and input 'y' must be from 0 to 1
# BYTE: error: row 1 of {{.*}}binary.csv:byte is 255, and input 'y' must be from 0 to 1
# BYTE-NOT: of -1 and 1
# BYTE: help: rows without a label
# WORD: error: row 1 of {{.*}}binary.csv:kind:category is 2, the word 'yes', and input 'z' must be from 0 to 1
# WORD: help: words count from 1, and 0 is none of them: `cast(expect_range(z, 1, 2) - 1, f32)` is 0 for 'no' and 1 for 'yes'
# CITY: help: words count from 1, and 0 is none of them: `cast(z == 3, f32)` is 1 for 'Zug' and 0 for the others
# GOOD: m 1
# TRUE: m 1
# NAN: m nan
# HINGE: error: row 0 of {{.*}}binary.csv:soft is 0.25, and input 'y' must be -1 or 1
# HINGE: help: labels are -1 and 1 here: of 0 and 1 that is `2 * y - 1`
# OVER: error: row 1 of {{.*}}binary.csv:two is 2, and input 'y' must be -1 or 1
# ZERO: error: row 0 of {{.*}}binary.csv:byte is 0, and input 'z' must be -1 or 1
