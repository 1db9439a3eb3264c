# Functions of the library take numbers that are known when a model is compiled, and give such.
# RUN: %dgc compile %s --emit graph --entry predict | %FileCheck %s
model known(six = 6) {
  input n : i64[B]
  input x : f64[B]
  predict divided = n + floor_div(7, 2) + 100 * floor_div(-7, 2) + 10000 * floor_div(-8, 2)
  predict left = n + floor_mod(7, 2) + 100 * floor_mod(-7, 2) + 10000 * floor_mod(7, -2)
  predict bits = n + bit_and(six, 3) + 100 * bit_or(six, 3) + 10000 * bit_xor(six, 3)
  predict chosen = x + select(six > 5, 1, 2.5) + select(six > 7, 1, 2)
  predict gamma = x * lgamma(3) + lgamma(0.25)
  predict slope = x * digamma(3) + digamma(0.25)
  predict others = x * sinc(0.5) + logit(0.25)
  predict inverse = x * erfinv(0.5) + erfinv(-0.25) + log_cosh(1.5, 1.0)
  predict large = n + floor_mod(32, 9223372036854775807) + (floor_mod(-2, 9223372036854775807) - 9223372036854775706)
  predict shares = x + ratio(2.0, 4) + 100 * ratio(six, 3) + 10000 * ratio(six, 0) + 1e6 * ratio(2.5, 0)
  predict halves = ratio(x, 2) + ratio(x, 0)
  predict shape_of = x * lgamma(x) + floor_div(8, six - 4)
}
# CHECK: divided.constant = constant {value=3} : i64[]
# CHECK: constant {value=-400} : i64[]
# CHECK: constant {value=-40000} : i64[]
# CHECK: left.constant = constant {value=1} : i64[]
# CHECK: constant {value=100} : i64[]
# CHECK: constant {value=-10000} : i64[]
# CHECK: bits.constant = constant {value=2} : i64[]
# CHECK: constant {value=700} : i64[]
# CHECK: constant {value=50000} : i64[]
# CHECK: chosen.constant = constant {value=1.0} : f64[]
# CHECK: constant {value=2.0} : f64[]
# CHECK: gamma.constant = constant {value=0.69314718055994{{.*}}} : f64[]
# CHECK: constant {value=1.288022524698077{{.*}}} : f64[]
# CHECK: slope.constant = constant {value=0.92278433509846{{.*}}} : f64[]
# CHECK: constant {value=-4.227453533376265{{.*}}} : f64[]
# CHECK: others.constant = constant {value=0.63661977236758{{.*}}} : f64[]
# CHECK: constant {value=-1.09861228866810{{.*}}} : f64[]
# CHECK: inverse.constant = constant {value=0.476936276204{{.*}}} : f64[]
# CHECK: constant {value=-0.2253120550121{{.*}}} : f64[]
# CHECK: constant {value=0.120114506958{{.*}}} : f64[]
# CHECK: large.constant = constant {value=32} : i64[]
# CHECK: constant {value=99} : i64[]
# CHECK: shares.constant = constant {value=0.5} : f64[]
# CHECK: constant {value=200.0} : f64[]
# CHECK: constant {value=0.0} : f64[]
# CHECK: shape_of = add {{.*}} : f64[B]
