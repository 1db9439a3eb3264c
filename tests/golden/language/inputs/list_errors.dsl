model lists() {
  input x : f32[B, 3]
  input n : i32[B]
  predict a = n * [1.5]
  predict b = x - [1, 2]
  predict c = x - [[1, 2, 3], 4]
  predict d = x + [x]
  predict e = [1, 2] * [3, 4]
  predict f = exp([1.0])
  predict g = stack([1.0, 2.0], 0)
  predict h = x @ [[1], [2], [3]]
  predict i = x - constant([1.0])
}
