# What is NaN of numbers is the usual NaN, whatever sign a processor's own has.
# RUN: %dgc compile %s --entry predict --emit graph | %FileCheck %s
model nan() {
  input x : f32[B]
  predict y = stack([x * (inf - inf), x * sqrt(-1.0), x * (0.0 / 0), x * log(-1)], axis = 1)
  predict z = x * -cast(inf - inf, f32)
}
# CHECK-NOT: 0xff
# CHECK: y.constant = constant {value=nan} : f32[]
# CHECK-NOT: 0xff
# CHECK: z.constant = constant {value=nan(0xffc00000)} : f32[]
