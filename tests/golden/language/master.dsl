# A master is read and changed by what stands behind it, and begins with what the variable's first value was before it was rounded; the
# variable becomes the master, rounded. What is not stored in 16 bits has none.
# RUN: %dgc compile --emit graph %s | %FileCheck %s
# RUN: %dgc compile --emit graph --entry init %s | %FileCheck --check-prefix=INIT %s
# RUN: %dgc compile --emit graph --entry predict %s | %FileCheck --check-prefix=PREDICT %s
# RUN: %dgc verify --batch 8 --towers 3 --devices cpu:0-1 --numeric %s

# CHECK-NOT: b.master
# CHECK: w.master.value = variable {slot="w"} : f32[3]
# CHECK: {{^ *}}[[NEAR:[^ ]+]] = round_f16 w.master.value
# CHECK: {{^ *}}[[SAME:[^ ]+]] = eq {{.*}}[[NEAR]] :
# CHECK: {{^ *}}[[NOW:[^ ]+]] = select [[SAME]], w.master.value, w : f32[3]
# CHECK: {{^ *}}[[NEXT:w.sgd.variable[^ ]*]] = sub [[NOW]], {{.*}} : f32[3]
# CHECK: {{^ *}}[[ROUNDED:[^ ]+]] = round_f16 [[NEXT]] : f32[3]
# CHECK-NOT: b.master
# CHECK: {{^ *}}[[MEAN:[^ ]+]] = mul {{.*}}[[NEXT]]
# CHECK: w.average.mean.add = add {{.*}}[[MEAN]]
# CHECK: w.update = assign w, [[ROUNDED]] : f32[3]
# CHECK: w.master.value.update = assign w.master.value, [[NEXT]] : f32[3]
# INIT: assign w, w.initial.round_f16
# INIT: assign w.master.value, w.initial : f32[3]
# INIT: assign w.average.mean, w.initial.round_f16
# PREDICT-NOT: w.master
model m {
  input x : f32[B, 3]
  var w : f32[3] = random_normal(f32[3]) storage(f16)
  var b : f32[] = 0
  y = sum(x * w, axis = 1) + b
  train mean(square(y)) with [clip_by_norm(1.0), master(), sgd(1e-4), average(0.9)]
  predict p = y
}
