# A chain of three convolutions, norms and relus in less memory. What the first norm makes is computed again for the gradient
# of the next kernel, out of the convolution's result, which is kept; in still less so is the second convolution's, of that.
# RUN: %dgc compile %s --batch 16 --emit memory | %FileCheck --check-prefix=KEPT %s
# RUN: %dgc compile %s --batch 16 --emit memory --memory-limit 2900000 | %FileCheck --check-prefix=BOOKS %s
# RUN: %dgc compile %s --batch 16 --emit plan --verify-each --memory-limit 2500000 | %FileCheck --check-prefix=PLAN %s
# RUN: not %dgc compile %s --batch 16 --emit plan --memory-limit 1000000 2>&1 | %FileCheck --check-prefix=LESS %s

# KEPT-LABEL: memory chain.train
# KEPT-NEXT: /cpu:0: 34{{[0-9]+}} bytes
# KEPT-NOT: computed again

# BOOKS-LABEL: memory chain.train
# BOOKS-NEXT: /cpu:0: 28{{[0-9]+}} bytes
# BOOKS: 524288 computed again, 1 value, by {{[0-9]+}} operations
# BOOKS-NEXT: 524288 a.again

# PLAN: kernel a [[K:k[0-9]+]] 4096x32 : a.x.x.conv@
# PLAN: conv b.x.x.conv 16x16x16x32
# PLAN: conv {{ *}}c.conv2d.kernel.grad
# PLAN: kernel a.again [[K]] 4096x32 : a.x.x.conv@
# PLAN: conv b.x.x.conv.again 16x16x16x32 3x3x32 low 1,1 high 1,1 : a.again@
# PLAN: conv {{ *}}b.conv2d.kernel.grad {{.*}} of kernel : a.again@

# LESS: error: memory-limit: a training step needs {{[0-9]+}} bytes on /cpu:0, and 1000000 are allowed
# LESS-NEXT: note: that is with {{[0-9]+}} activations computed again; with all kept it is {{[0-9]+}} bytes
# LESS-NEXT: note: {{[0-9]+}} of it are variables and what optimizers keep, {{[0-9]+}} the most that is alive of a step
# LESS-NEXT: help: a smaller --batch needs less
use nn

model chain {
  input image : f32[B, 16, 16, 8]
  input label : f32[B]
  a = relu(nn.batch_norm(nn.conv2d(image, 32)))
  b = relu(nn.batch_norm(nn.conv2d(a, 32)))
  c = relu(nn.batch_norm(nn.conv2d(b, 32)))
  train mean(square(mean(c, axis = [1, 2, 3]) - label)) with sgd(rate = 0.1)
}
