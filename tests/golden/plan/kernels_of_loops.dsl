# Kernels of a loop's body are shown as those around it; and a long body, which is there once, stores a chunk with all its
# lanes without a mask. Going along rows, as all of them have `b` alike, it asks for later ones.
# RUN: %dgc compile %s --batch 8 --entry predict --emit llvm | %FileCheck %s
# RUN: %dgc compile %s --batch 8 --entry predict --devices gpu:0 --emit cuda | %FileCheck --check-prefix=CUDA %s
# CHECK:      define void @next(
# CHECK:      call void @llvm.prefetch.p0(
# CHECK:      icmp eq i64 %{{[0-9]+}}, 16
# CHECK-NEXT: br i1 %{{[0-9]+}}, label %whole, label %part
# CHECK:      whole:
# CHECK-NEXT: store <16 x float> %[[H:[0-9]+]], ptr
# CHECK:      part:
# CHECK-NEXT: call void @llvm.masked.store.v16f32.p0(<16 x float> %[[H]], ptr
# CHECK:      define void @p(
# CUDA:       __global__ void {{k[0-9]+}}_next(
# CUDA:       __global__ void {{k[0-9]+}}_p(
model m {
  input x : f32[B, 40, 24]
  var w : f32[24, 24] = zeros()
  var b : f32[24] = zeros()
  h = broadcast(cast(0.0, f32), [B, 24])
  ys = scan h over x_t in x {
    next = tanh(sigmoid(x_t @ w + b + h) * tanh(h) + exp(-x_t * x_t) * sigmoid(h - x_t))
    h = next
    return next
  }
  predict p = tanh(ys)
}
