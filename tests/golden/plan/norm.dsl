# A convolution, batch norm and relu: what passes over an activation (4096x32). Forward: one row of each image, both statistics
# at once, with all that is made of them, and the result with bias, scale, shift and relu in it. Backward: all sums of what relu lets pass, and what the norm makes
# of it, with the sum that is the gradient of the bias.
# RUN: %dgc compile %s --batch 16 --emit plan --verify-each | %FileCheck %s

# CHECK:      conv   x.x.x.conv 16x16x16x8 3x3x32
# CHECK:      kernel x.x.center.select {{k[0-9]+}} 32/16x16 : x.x.x.conv@{{[0-9]+}}+16384,
# CHECK:      kernel x.x.rsqrt {{k[0-9]+}} 32/4096 in 16 : x.x.x.conv@{{.*}} -> x.x.rsqrt@{{.*}}, x.x.center@{{.*}}, x.moving_mean@{{.*}}, x.moving_variance@
# CHECK-NEXT: kernel x {{k[0-9]+}} 4096x32 : x.x.x.conv@{{.*}} -> x@
# CHECK-NEXT: conv   y.x.x.conv

# CHECK:      kernel x.x.center.reduce_sum.square.grad {{k[0-9]+}} 32/4096 in 16 : x.x.x.conv@{{.*}}, x.grad@
# CHECK-NOT:  4096
# CHECK:      kernel x.conv2d.bias.grad {{k[0-9]+}} 32/4096 in 16 : {{.*}}, x.grad@{{.*}}, x.x.x.conv@[[D:[0-9]+]], {{.*}} -> {{.*}}, x.x.x.conv@[[D]]{{$}}
# CHECK-NOT:  4096
# CHECK:      conv   x.conv2d.kernel.grad
use nn

model norm {
  input image : f32[B, 16, 16, 8]
  input label : f32[B]
  x = relu(nn.batch_norm(nn.conv2d(image, 32)))
  y = relu(nn.batch_norm(nn.conv2d(x, 32)))
  train mean(square(mean(y, axis = [1, 2, 3]) - label)) with sgd(rate = 0.1)
}
