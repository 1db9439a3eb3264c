/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes: a transport over another one. Each message of the worker's has a box, with a channel and memory of its
 * own; plans have ways to it, which come and go as their addresses change. */
#include "runtime/mpi/mailbox.h"

#include "runtime/host_memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct box {
  struct box *next;
  void *channel; /* of the transport below */
  void *buffer;
  size_t bytes;
  int tag;
  bool sends, under_way;
  bool full; /* what has come is in the buffer */
};

struct mailbox {
  struct transport transport;
  const struct transport *below;
  int worker;
  struct box *boxes;
};

/* A plan's channel. */
struct way {
  const struct transport *below;
  struct box *box; /* NULL: it is not the worker's, and passed through */
  void *channel;   /* then */
  void *data;
};

static struct mailbox *mailbox_of(const struct transport *t) {
  return (struct mailbox *)((uintptr_t)t - offsetof(struct mailbox, transport));
}

/* --- boxes --- */

static struct box *find_box(const struct mailbox *m, int tag, bool sends) {
  struct box *b = m->boxes;
  while (b && (b->tag != tag || b->sends != sends)) b = b->next;
  return b;
}

static void *open_channel(const struct transport *t, void *data, size_t bytes, int peer, int tag,
                          bool sends) {
  return sends ? t->sender(t, data, bytes, peer, tag) : t->receiver(t, data, bytes, peer, tag);
}

static struct box *make_box(struct mailbox *m, size_t bytes, int tag, bool sends) {
  struct box *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  *b =
      (struct box){.next = m->boxes, .buffer = host_alloc(bytes), .bytes = bytes, .tag = tag, .sends = sends};
  if (b->buffer) b->channel = open_channel(m->below, b->buffer, bytes, m->worker, tag, sends);
  if (b->channel) return m->boxes = b;
  host_free(b->buffer);
  free(b);
  return NULL;
}

static bool take_in(const struct transport *below, struct box *b) {
  if (!b->under_way || !below->done(b->channel)) return b->full;
  b->under_way = false;
  return b->full = true;
}

/* --- ways --- */

static void *make_way(struct mailbox *m, void *data, size_t bytes, int peer, int tag, bool sends) {
  bool kept = peer == m->worker && tag >= TAG_MESSAGES;
  struct way *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  *w = (struct way){.below = m->below, .data = data};
  if (kept) w->box = find_box(m, tag, sends);
  if (kept && !w->box) w->box = make_box(m, bytes, tag, sends);
  if (!kept) w->channel = open_channel(m->below, data, bytes, peer, tag, sends);
  if (w->box || w->channel) return w;
  free(w);
  return NULL;
}

static void *sender(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  return make_way(mailbox_of(t), (void *)(uintptr_t)data, bytes, to, tag, true);
}

static void *receiver(const struct transport *t, void *data, size_t bytes, int from, int tag) {
  return make_way(mailbox_of(t), data, bytes, from, tag, false);
}

static void drop(void *way) {
  struct way *w = way;
  if (w->channel) w->below->drop(w->channel);
  free(w);
}

static void start(void *way) {
  struct way *w = way;
  struct box *b = w->box;
  if (!b) {
    w->below->start(w->channel);
  } else if (b->sends) {
    if (b->bytes) memcpy(b->buffer, w->data, b->bytes);
    b->under_way = true;
    w->below->start(b->channel);
  }
}

static bool done(void *way) {
  struct way *w = way;
  struct box *b = w->box;
  if (!b) return w->below->done(w->channel);
  if (b->sends) return true;
  if (!take_in(w->below, b)) return false;
  if (b->bytes) memcpy(w->data, b->buffer, b->bytes);
  return true;
}

/* --- what else a transport does --- */

static bool take(const struct transport *t, void *data, size_t bytes, int tag) {
  const struct transport *below = mailbox_of(t)->below;
  return below->take(below, data, bytes, tag);
}

static const char *host(const struct transport *t, int process) {
  const struct transport *below = mailbox_of(t)->below;
  return below->host(below, process);
}

static int ended(const struct transport *t) {
  const struct transport *below = mailbox_of(t)->below;
  return below->ended(below);
}

static uint64_t now(const struct transport *t) {
  const struct transport *below = mailbox_of(t)->below;
  return below->now(below);
}

/* --- mailboxes --- */

struct mailbox *mailbox_create(const struct transport *t, int worker) {
  struct mailbox *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->below = t;
  m->worker = worker;
  m->transport = *t;
  m->transport.sender = sender;
  m->transport.receiver = receiver;
  m->transport.drop = drop;
  m->transport.start = start;
  m->transport.done = done;
  m->transport.take = take;
  m->transport.host = host;
  m->transport.ended = t->ended ? ended : NULL;
  m->transport.now = t->now ? now : NULL;
  return m;
}

void mailbox_destroy(struct mailbox *m) {
  for (struct box *b = m ? m->boxes : NULL, *next; b; b = next) {
    next = b->next;
    m->below->drop(b->channel);
    host_free(b->buffer);
    free(b);
  }
  free(m);
}

const struct transport *mailbox_transport(const struct mailbox *m) { return &m->transport; }

void mailbox_begin(struct mailbox *m) {
  for (struct box *b = m->boxes; b; b = b->next) {
    b->full = false;
    if (b->sends) continue;
    b->under_way = true;
    m->below->start(b->channel);
  }
}

void mailbox_poll(struct mailbox *m) {
  for (struct box *b = m->boxes; b; b = b->next)
    if (!b->sends) take_in(m->below, b);
}

bool mailbox_has(const struct mailbox *m, int tag) {
  const struct box *b = find_box(m, tag, false);
  return b && b->full;
}

bool mailbox_end(struct mailbox *m) {
  for (struct box *b = m->boxes; b; b = b->next) {
    if (b->under_way && !transport_wait(m->below, b->channel, m->worker, "taken a variable")) return false;
    b->under_way = false;
  }
  return true;
}
