# ResNet-20 for CIFAR-10: three groups of three blocks, of 16, 32 and 64 channels.
use nn

layer block(x : T[N, H, W, C], filters : int, stride = 1) {
  a = relu(nn.batch_norm(nn.conv2d(x, filters, stride = stride)))
  b = nn.batch_norm(nn.conv2d(a, filters))
  short = nn.conv2d(x, filters, size = 1, stride = stride) if stride > 1 else x
  return relu(b + short)
}

model resnet(rate = 0.1, precision = "f32") with precision = precision {
  input image : f32[B, 32, 32, 3]
  input label : i32[B]

  x = relu(nn.batch_norm(nn.conv2d(image, 16)))
  for filters in [16, 32, 64] {
    for i in 0..3 { x = block(x, filters, stride = 2 if i == 0 and filters > 16 else 1) }
  }
  logits = nn.dense(mean(x, axis = [1, 2]), 10)
  loss   = softmax_cross_entropy(logits, label)

  train   mean(loss) with momentum(rate = rate, mu = 0.9)
  metric  accuracy    = mean(correct(logits, label))
  predict probability = softmax(logits)
}
