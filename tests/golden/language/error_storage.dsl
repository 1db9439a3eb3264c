# What has no storage, and what is none.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model wrong {
  input x : f32[B]
  var a : f64[] = 0 storage(bf16)
  var b : f32[] = 0 storage(i32)
  var c : f32[] = 0 storage(bf16) storage(bf16)
  var d : f32[] = 0 stored(bf16)
  state e : f32[] = 0 aggregation(mean) synchronization(on_read) storage(bf16)
  y = cast(x, bf16)
  var f : bf16[3] = zeros()
  var g : f64[2] = zeros() storage(f16)
  z = cast(x, f16)
  var h : f16[3] = zeros()
}
# CHECK: :5:21: error: what is stored in bf16 is f32 where it is read, not f64[]
# CHECK: :6:29: error: a storage is bf16, f16 or f32, not {{.*}}i32
# CHECK: :7:35: error: the storage is given twice
# CHECK: :8:21: error: a variable has an aggregation, a synchronization and a storage, and no `stored`
# CHECK: :9:66: error: copies of towers that are joined when they are read are stored in f32
# CHECK: :10:{{.*}}: error: a cast goes to an element type such as f32
# CHECK: help: `round_bf16(x)` rounds; a variable is kept in 16 bits by `storage(bf16)`
# CHECK: :11:11: error: bf16 is how numbers are stored, and no type that is computed with
# CHECK: help: declare a variable as f32, and behind its first value say `storage(bf16)`
# CHECK: :12:{{[0-9]+}}: error: what is stored in f16 is f32 where it is read, not f64[2]
# CHECK: :13:{{.*}}: error: a cast goes to an element type such as f32
# CHECK: help: `round_f16(x)` rounds; a variable is kept in 16 bits by `storage(f16)`
# CHECK: :14:11: error: f16 is how numbers are stored, and no type that is computed with
# CHECK: help: declare a variable as f32, and behind its first value say `storage(f16)`
