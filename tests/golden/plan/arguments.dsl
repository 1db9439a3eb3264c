# A long sum is in segments, whatever is fused with it, and how many arguments its kernel has.
# RUN: %dgc compile %s --entry predict --batch 2 --emit plan | %FileCheck %s
model arguments() {
  input x0 : f32[B, 65536]
  input x1 : f32[B, 65536]
  input x2 : f32[B, 65536]
  input x3 : f32[B, 65536]
  input x4 : f32[B, 65536]
  input x5 : f32[B, 65536]
  input x6 : f32[B, 65536]
  input x7 : f32[B, 65536]
  input x8 : f32[B, 65536]
  input x9 : f32[B, 65536]
  input x10 : f32[B, 65536]
  input x11 : f32[B, 65536]
  input x12 : f32[B, 65536]
  input x13 : f32[B, 65536]
  input x14 : f32[B, 65536]
  input x15 : f32[B, 65536]
  input x16 : f32[B, 65536]
  input x17 : f32[B, 65536]
  input x18 : f32[B, 65536]
  input x19 : f32[B, 65536]
  input x20 : f32[B, 65536]
  input x21 : f32[B, 65536]
  input x22 : f32[B, 65536]
  predict few = sum(x0 * x1 * x2 * x3 * x4 * x5 * x6 * x7, axis = 1)
  predict many = sum(x0 * x1 * x2 * x3 * x4 * x5 * x6 * x7 * x8 * x9 * x10 * x11 * x12 * x13 * x14 * x15 * x16 * x17 * x18 * x19 * x20 * x21 * x22, axis = 1)
}
# CHECK: kernel many {{k[0-9]+}} 2/65536 in 16 : x7@{{.*}}, x6@{{.*}}, x8@{{[0-9]+}} -> many@{{[0-9]+}}, few@{{[0-9]+$}}
