# Rows of half as many numbers as there are lanes: of a chunk that has so many nothing is masked when it is stored.
# RUN: %dgc compile %s --batch 8 --entry predict --emit llvm | %FileCheck %s
# CHECK:      masked:
# CHECK:      %[[ROW:[0-9]+]] = fmul <16 x float>
# CHECK:      icmp eq i64 %{{[0-9]+}}, 8
# CHECK-NEXT: br i1 %{{[0-9]+}}, label %whole, label %part
# CHECK:      whole:
# CHECK-NEXT: %[[HALF:[0-9]+]] = shufflevector <16 x float> %[[ROW]], <16 x float> {{.*}}, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
# CHECK-NEXT: store <8 x float> %[[HALF]], ptr
# CHECK:      part:
# CHECK-NEXT: call void @llvm.masked.store.v16f32.p0(
model m {
  input x : f32[B, 40, 16]
  predict p = concat([x[:, :, 8:16] * 2.0, x[:, :, 0:8]], axis = 2)
}
