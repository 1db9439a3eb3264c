model m { input x : f32[B, 1]; predict y = cast(x, f32) + cast(cast(x, i32) / 0, f32) }
