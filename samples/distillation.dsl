# A large teacher learns digits by their labels; a small student learns from the probabilities that the teacher gives, softened.
use nn

layer classifier(x, units : int) { return nn.dense(nn.dense(x, units, relu), 10) }

model distillation(teacher_units = 256, student_units = 16, heat = 3.0, rate = 1e-3) {
  input image : u8[B, 28, 28]
  input label : u8[B]

  x       = flatten(cast(image, f32) / 255)
  teacher = classifier.new(teacher_units)
  student = classifier.new(student_units)
  taught  = teacher(dropout(x, 0.2))
  target  = softmax(stop_gradient(teacher(x)) / heat)             # without noise: the same weights
  guess   = student(x)

  train   lesson  = mean(softmax_cross_entropy(taught, label)) with adam(rate = rate) over teacher
  train   studies = mean(softmax_cross_entropy(guess / heat, target)) * heat ^ 2 with adam(rate = rate) over student
  metric  teacher_accuracy = mean(correct(teacher(x), label))
  metric  student_accuracy = mean(correct(guess, label))
  predict probability = softmax(guess)

  data train {
    image = "data/train-images.idx"
    label = "data/train-labels.idx"
  }
  data test {
    image = "data/test-images.idx"
    label = "data/test-labels.idx"
  }
}

# SPDX-License-Identifier: Apache-2.0
