# einsum: what it becomes, and what it says of operands that do not fit.
# RUN: %not %dgc check %s 2>&1 | %FileCheck %s
model einsums() {
  input x : f32[B, 3, 4]
  input z : f32[B, 5, 2]
  predict a = einsum("nij,nj->n", x, z)
  predict b = einsum("nij,nkj->nik", x, z)
  predict c = einsum("nij->nk", x)
  predict d = einsum("nii->n", x)
  predict e = einsum("nij,n->nij", x)
  predict f = einsum(x, z)
  predict g = einsum("nij,nkl,->n", x, z)
}
# CHECK: error_einsum.dsl:6:22: error: operand 2, f32[B,5,2], needs 3 letters, one for each axis, in `nij,nj->n`
# CHECK: error_einsum.dsl:7:15: error: `j` is an axis of f32[B,3,4] and of f32[B,5,2], of different sizes
# CHECK: error_einsum.dsl:8:22: error: `nij->nk` of einsum is like "ij,jk->ik"
# CHECK: error_einsum.dsl:9:15: error: axes 1 and 2 of f32[B,3,4] have one letter, and not one size
# CHECK: error_einsum.dsl:10:22: error: `nij,n->nij` of einsum is like "ij,jk->ik"
# CHECK: error_einsum.dsl:11:22: error: einsum begins with a string like "ij,jk->ik", not with
# CHECK: error_einsum.dsl:12:22: error: `nij,nkl,->n` of einsum is like "ij,jk->ik"
