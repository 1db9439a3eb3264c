# A variable that is stored in bf16 or f16 is f32 in the graph, and all that it is given is rounded: its first value, the optimizer's and
# `<-`; so are moments that say so. It is read as it is: nothing is rounded twice. f32 changes nothing.
# RUN: %dgc compile --emit graph %s | %FileCheck %s
# RUN: %dgc compile --emit graph --entry init %s | %FileCheck --check-prefix=INIT %s
# RUN: %dgc compile --emit graph --set storage=f16 %s | %FileCheck --check-prefix=F16 %s
# RUN: %dgc compile --emit graph --entry init --set storage=f16 %s | %FileCheck --check-prefix=F16_INIT %s
# RUN: %dgc compile --emit graph --set storage=f32 %s | %FileCheck --check-prefix=NONE %s

# CHECK-DAG: w = variable {trainable=1, storage="bf16"} : f32[4,3]
# CHECK-DAG: y = matmul {{.*}}, w {precision="bf16"} : f32[B,3]
# CHECK-DAG: seen = variable {storage="bf16"} : f32[]
# CHECK-DAG: w.adam.m = variable {slot="w", storage="bf16"} : f32[4,3]
# CHECK-DAG: w.adam.v = variable {slot="w"} : f32[4,3]
# CHECK-DAG: seen.update = assign seen, {{.*}}round_bf16
# CHECK-DAG: w.adam.m.update = assign w.adam.m, w.adam.m.round_bf16
# CHECK-DAG: w.update = assign w, {{.*}}round_bf16
# INIT: w.initial.round_bf16 = round_bf16 w.initial
# INIT: assign w, w.initial.round_bf16
# F16-DAG: w = variable {trainable=1, storage="f16"} : f32[4,3]
# F16-DAG: [[W:y.round_bf16.w]] = round_bf16 w : f32[4,3]
# F16-DAG: y = matmul {{.*}}, [[W]] {precision="bf16"} : f32[B,3]
# F16-DAG: seen = variable {storage="f16"} : f32[]
# F16-DAG: w.adam.m = variable {slot="w", storage="f16"} : f32[4,3]
# F16-DAG: seen.update = assign seen, {{.*}}round_f16
# F16-DAG: w.adam.m.update = assign w.adam.m, w.adam.m.round_f16
# F16-DAG: w.update = assign w, {{.*}}round_f16
# F16_INIT: w.initial.round_f16 = round_f16 w.initial
# F16_INIT: assign w, w.initial.round_f16
# NONE-NOT: storage=
model linear(storage = bf16) with precision = bf16 {
  input x : f32[B, 4]
  var w      : f32[4, 3] = glorot_uniform() storage(storage)
  state seen : f32[]     = 0 storage(storage)
  y = x @ w
  seen += sum(y)
  train sum(square(y)) with adam(0.1, storage = storage)
}
