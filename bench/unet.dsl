# A U-Net of three levels: which of two classes is each pixel of?
use nn

layer two(x : T[N, H, W, C], filters : int) {
  first = nn.conv2d(x, filters, activation = relu)
  return nn.conv2d(first, filters, activation = relu)
}

layer joined(x : T[N, H, W, C], beside, filters : int) {
  up = nn.conv_transpose(x, filters, size = 2, stride = 2)
  return two(concat([up, beside], axis = 3), filters)
}

model unet(rate = 1e-3, precision = "f32") with precision = precision {
  input image : f32[B, 64, 64, 1]
  input label : i32[B, 64, 64]

  a      = two(image, 16)
  b      = two(nn.max_pool2d(a), 32)
  c      = two(nn.max_pool2d(b), 64)
  d      = joined(c, b, 32)
  y      = joined(d, a, 16)
  logits = nn.conv2d(y, 2, size = 1)

  train mean(softmax_cross_entropy(logits, label)) with adam(rate = rate)
}
