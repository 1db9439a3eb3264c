# A small MobileNet for images of 32 x 32: what channels see of places and of each other are convolutions apart.
use nn

layer block(x : T[N, H, W, C], filters : int, stride = 1) {
  a = relu(nn.batch_norm(nn.depthwise(x, stride = stride)))
  return relu(nn.batch_norm(nn.conv2d(a, filters, size = 1)))
}

model mobilenet(rate = 0.1, precision = "f32") with precision = precision {
  input image : f32[B, 32, 32, 3]
  input label : i32[B]

  x      = relu(nn.batch_norm(nn.conv2d(image, 32)))
  x      = block(x, 64)
  x      = block(x, 128, stride = 2)
  x      = block(x, 128)
  x      = block(x, 256, stride = 2)
  x      = block(x, 256)
  logits = nn.dense(mean(x, axis = [1, 2]), 10)

  train mean(softmax_cross_entropy(logits, label)) with momentum(rate = rate, mu = 0.9)
}
