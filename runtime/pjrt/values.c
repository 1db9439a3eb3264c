/* SPDX-License-Identifier: Apache-2.0 */
/* Values on devices: cells, what is copied to them and from them, and what is read later. */
#include "runtime/host_memory.h"
#include "runtime/pjrt/engine.h"

#include <stdlib.h>
#include <string.h>

/* --- cells --- */

void pjrt_buffer_destroy(struct pjrt_engine *e, void *buffer) {
  struct pjrt_Buffer_Destroy args = PJRT_ARGS(Buffer_Destroy, .buffer = buffer);
  if (buffer && !(e->lost && *e->lost)) pjrt_invoke(e->plugin, CALL_Buffer_Destroy, &args);
}

static void drop_parts(struct pjrt_engine *e, struct pjrt_cell *c) {
  for (int i = 0; i < c->nparts; i++) pjrt_buffer_destroy(e, c->parts[i]);
  free(c->parts);
  c->parts = NULL;
  c->nparts = 0;
}

void pjrt_cell_clear(struct pjrt_engine *e, struct pjrt_cell *c) {
  drop_parts(e, c);
  host_free(c->host);
  if (c->link) *c->link = c->next;
  if (c->link && c->next) c->next->link = c->link;
  memset(c, 0, sizeof *c);
}

static void enlist(struct pjrt_engine *e, struct pjrt_cell *c) {
  if (c->link) return;
  c->next = e->cells;
  c->link = &e->cells;
  if (c->next) c->next->link = &c->next;
  e->cells = c;
}

static bool no_host_memory(struct pjrt_engine *e, int device) {
  pjrt_fail(e, device, "copying", "no memory on the host");
  return false;
}

/* The bytes of the host, which are the cell's from now on. */
static bool cell_write(struct pjrt_engine *e, struct pjrt_cell *c, const void *data, size_t bytes) {
  drop_parts(e, c);
  if (c->host && c->bytes != bytes) {
    host_free(c->host);
    c->host = NULL;
  }
  if (!c->host) c->host = host_alloc(bytes);
  if (!c->host) return no_host_memory(e, c->device);
  enlist(e, c);
  c->bytes = bytes;
  if (bytes) memcpy(c->host, data, bytes);
  return true;
}

void pjrt_cell_hold(struct pjrt_engine *e, struct pjrt_cell *c, int device, int nparts, void *const *parts,
                    size_t bytes) {
  void **own = c->nparts == nparts ? c->parts : malloc((size_t)nparts * sizeof *own);
  if (own == c->parts)
    for (int i = 0; i < nparts; i++) pjrt_buffer_destroy(e, own[i]);
  else
    drop_parts(e, c);
  host_free(c->host);
  c->host = NULL;
  if (!own) {
    for (int i = 0; i < nparts; i++) pjrt_buffer_destroy(e, parts[i]);
    no_host_memory(e, device);
    return;
  }
  memcpy(own, parts, (size_t)nparts * sizeof *own);
  enlist(e, c);
  c->parts = own;
  c->nparts = nparts;
  c->device = device;
  c->bytes = bytes;
}

/* The copy of a buffer begins; its event is to be awaited. */
static bool begin_read(struct pjrt_engine *e, int device, void *buffer, void *to, size_t bytes,
                       void **event) {
  struct pjrt_Buffer_ToHostBuffer args =
      PJRT_ARGS(Buffer_ToHostBuffer, .src = buffer, .dst = to, .dst_size = bytes);
  bool good = PJRT(e, device, Buffer_ToHostBuffer, &args);
  *event = args.event;
  return good;
}

static bool cell_read(struct pjrt_engine *e, const struct pjrt_cell *c, void *data, size_t bytes) {
  if (c->host) {
    if (bytes) memcpy(data, c->host, bytes);
    return true;
  }
  if (!c->nparts) { /* nothing was ever written there */
    memset(data, 0, bytes);
    return true;
  }
  size_t each = c->bytes;
  bool good = true;
  for (int i = 0; good && i < c->nparts; i++) {
    void *event;
    good = begin_read(e, c->device, c->parts[i], (char *)data + (size_t)i * each, each, &event) &&
           pjrt_await(e, c->device, event);
  }
  return good;
}

static int element_type(enum dtype d) {
  switch (d) {
  case DT_F32: return PJRT_F32;
  case DT_F64: return PJRT_F64;
  case DT_I32: return PJRT_S32;
  case DT_I64: return PJRT_S64;
  case DT_U8: return PJRT_U8;
  case DT_BOOL: return PJRT_PRED;
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return 0;
}

static void *upload(struct pjrt_engine *e, const char *data, int device, const struct type *t) {
  struct pjrt_Client_BufferFromHostBuffer args = PJRT_ARGS(
      Client_BufferFromHostBuffer, .client = e->client, .data = data,
      .type = element_type((enum dtype)t->dtype), .dims = t->dim, .num_dims = (size_t)t->rank,
      .host_buffer_semantics = PJRT_IMMUTABLE_ONLY_DURING_CALL, .device = e->devices[device].device);
  if (!PJRT(e, device, Client_BufferFromHostBuffer, &args)) return NULL;
  if (!args.done_with_host_buffer || pjrt_await(e, device, args.done_with_host_buffer)) return args.buffer;
  pjrt_buffer_destroy(e, args.buffer);
  return NULL;
}

static void *send(struct pjrt_engine *e, void *buffer, int device) {
  struct pjrt_Buffer_CopyToDevice args =
      PJRT_ARGS(Buffer_CopyToDevice, .buffer = buffer, .dst_device = e->devices[device].device);
  return PJRT(e, device, Buffer_CopyToDevice, &args) ? args.dst_buffer : NULL;
}

void *pjrt_cell_buffer(struct pjrt_engine *e, struct pjrt_cell *c, int device, const struct type *t, int part,
                       int nparts, bool *own) {
  size_t bytes = (size_t)type_bytes(t);
  *own = true;
  if (c->host && c->bytes == bytes * (size_t)nparts)
    return upload(e, (const char *)c->host + bytes * (size_t)part, device, t);
  if (c->nparts == 1 && nparts == 1 && c->device != device) return send(e, c->parts[0], device);
  if (c->nparts == 1 && nparts == 1) {
    *own = false;
    return c->parts[0];
  }
  pjrt_fail(e, device, "executing", "a program reads what nothing was written to");
  return NULL;
}

/* --- the hooks --- */

/* Zeros, so that cells are empty. */
void *pjrt_alloc(void *self, int device, size_t bytes) {
  (void)self, (void)device;
  size_t size = (bytes + 63) / 64 * 64 + 64;
  return size < bytes ? NULL : calloc(1, size);
}

void pjrt_free(void *self, int device, void *data, size_t bytes) {
  struct pjrt_engine *e = self;
  (void)device;
  uintptr_t begin = (uintptr_t)data, end = begin + bytes + 64;
  for (struct pjrt_cell *c = e->cells, *next; c; c = next) {
    next = c->next;
    if ((uintptr_t)c >= begin && (uintptr_t)c < end) pjrt_cell_clear(e, c);
  }
  free(data);
}

bool pjrt_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes) {
  struct pjrt_engine *e = self;
  if (e->failed) return false;
  if (from_device < 0) {
    ((struct pjrt_cell *)to)->device = to_device;
    return cell_write(e, to, from, bytes);
  }
  if (to_device < 0) return cell_read(e, from, to, bytes);
  void *between = host_alloc(bytes);
  bool good = between ? cell_read(e, from, between, bytes) && cell_write(e, to, between, bytes)
                      : no_host_memory(e, to_device);
  host_free(between);
  return good;
}

bool pjrt_read_begin(void *self, int device, const void *from, size_t bytes, unsigned *number) {
  struct pjrt_engine *e = self;
  const struct pjrt_cell *c = from;
  unsigned i = 0;
  while (i < DEFERRED_READS && e->reads[i].taken) i++;
  *number = i;
  if (e->failed) return false;
  if (i == DEFERRED_NONE) return true;
  struct pjrt_read *r = &e->reads[i];
  *r = (struct pjrt_read){.taken = true};
  if (c->nparts == 1) return begin_read(e, device, c->parts[0], r->value, bytes, &r->event);
  return cell_read(e, c, r->value, bytes);
}

bool pjrt_read_end(void *self, int device, unsigned number, void *to, size_t bytes) {
  struct pjrt_engine *e = self;
  struct pjrt_read *r = &e->reads[number];
  r->taken = false;
  if (!pjrt_await(e, device, r->event)) return false;
  memcpy(to, r->value, bytes);
  return true;
}
