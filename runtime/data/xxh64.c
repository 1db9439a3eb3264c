/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64: four lanes of 64 bits, 32 bytes a round; what is left at the end is mixed in word by word. */
#include "runtime/data/xxh64.h"

#include <string.h>

#define P1 UINT64_C(0x9E3779B185EBCA87)
#define P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define P3 UINT64_C(0x165667B19E3779F9)
#define P4 UINT64_C(0x85EBCA77C2B2AE63)
#define P5 UINT64_C(0x27D4EB2F165667C5)

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t step(uint64_t lane, uint64_t word) { return rotate(lane + word * P2, 31) * P1; }

static uint64_t load64(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static void add_stripe(struct xxh64 *h, const uint8_t *p) {
  for (int i = 0; i < 4; i++) h->lane[i] = step(h->lane[i], load64(p + 8 * i));
}

void xxh64_init(struct xxh64 *h) { *h = (struct xxh64){.lane = {P1 + P2, P2, 0, 0 - P1}}; }

void xxh64_add(struct xxh64 *h, const void *data, size_t len) {
  const uint8_t *p = data;
  if (len == 0) return;
  size_t held = h->len % 32;
  h->len += len;
  if (held) {
    size_t take = len < 32 - held ? len : 32 - held;
    memcpy(h->pending + held, p, take);
    p += take, len -= take;
    if (held + take < 32) return;
    add_stripe(h, h->pending);
  }
  for (; len >= 32; p += 32, len -= 32) add_stripe(h, p);
  if (len) memcpy(h->pending, p, len);
}

uint64_t xxh64_end(const struct xxh64 *h) {
  const uint64_t *v = h->lane;
  uint64_t x = P5;
  if (h->len >= 32) {
    x = rotate(v[0], 1) + rotate(v[1], 7) + rotate(v[2], 12) + rotate(v[3], 18);
    for (int i = 0; i < 4; i++) x = (x ^ step(0, v[i])) * P1 + P4;
  }
  x += h->len;
  const uint8_t *p = h->pending, *end = p + h->len % 32;
  for (; end - p >= 8; p += 8) x = rotate(x ^ step(0, load64(p)), 27) * P1 + P4;
  if (end - p >= 4) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    x = rotate(x ^ word * P1, 23) * P2 + P3;
    p += 4;
  }
  for (; p < end; p++) x = rotate(x ^ *p * P5, 11) * P1;
  x = (x ^ x >> 33) * P2;
  x = (x ^ x >> 29) * P3;
  return x ^ x >> 32;
}
