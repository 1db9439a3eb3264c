/* SPDX-License-Identifier: Apache-2.0 */
/* Device names and lists; how towers and rows are laid out. */
#include "ir/target.h"

#include "base/map.h"

#include <stdlib.h>
#include <string.h>

static const struct device_name any_device = {.task = -1, .index = -1, .part = -1};

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* A number without sign, at most 999999999, or "*" for any. */
static const char *parse_number(const char *p, int *out) {
  if (*p == '*') {
    *out = -1;
    return p + 1;
  }
  if (*p < '0' || *p > '9') return NULL;
  int value = 0, digits = 0;
  for (; *p >= '0' && *p <= '9'; p++) {
    if (++digits > 9) return NULL;
    value = value * 10 + (*p - '0');
  }
  *out = value;
  return p;
}

/* One field at `p`, lower case: "job:worker", "task:0", "gpu:1", "gpu:1/0", "device:gpu:1", "cpu". What follows
 * it, or NULL. */
static const char *parse_field(struct arena *a, const char *p, struct device_name *out) {
  if (strncmp(p, "job:", 4) == 0) {
    const char *begin = p += 4;
    while (is_word(*p)) p++;
    if (out->job || p == begin) return NULL;
    out->job = arena_strndup(a, begin, (size_t)(p - begin));
    return p;
  }
  if (strncmp(p, "task:", 5) == 0) return out->task >= 0 ? NULL : parse_number(p + 5, &out->task);
  if (strncmp(p, "device:", 7) == 0) p += 7;
  if (out->kind) return NULL;
  static const char *const kinds[] = {"cpu", "gpu", "pjrt", "tpu"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !out->kind; i++)
    if (strncmp(p, kinds[i], strlen(kinds[i])) == 0) out->kind = kinds[i];
  if (!out->kind) return NULL;
  p += strlen(out->kind);
  if (*p != ':') return p;
  p = parse_number(p + 1, &out->index);
  bool part = p && *p == '/' && ((p[1] >= '0' && p[1] <= '9') || p[1] == '*');
  if (!part) return p;
  return strcmp(out->kind, "gpu") == 0 && out->index >= 0 ? parse_number(p + 1, &out->part) : NULL;
}

/* The fields at the start of `text`, or NULL; where they end otherwise. `text` is lower case. */
static const char *parse_fields(struct arena *a, const char *text, struct device_name *out) {
  *out = any_device;
  const char *p = *text == '/' ? text + 1 : text;
  for (;;) {
    p = parse_field(a, p, out);
    if (!p || *p != '/') return p;
    p++;
  }
}

static char *lower_case(struct arena *a, const char *text, size_t len) {
  char *out = arena_strndup(a, text, len);
  for (char *c = out; *c; c++)
    if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
  return out;
}

bool device_name_parse(struct arena *a, const char *text, struct device_name *out) {
  const char *end = parse_fields(a, lower_case(a, text, strlen(text)), out);
  return end && !*end;
}

bool target_shares_program(const struct target *t) {
  const char *kind = t->ndevices > 1 ? t->devices[0].name.kind : "";
  return strcmp(kind, "pjrt") == 0 || strcmp(kind, "tpu") == 0;
}

bool device_matches(const struct device_name *want, const struct device_name *d) {
  return (!want->job || str_same(want->job, d->job)) && (want->task < 0 || want->task == d->task) &&
         (!want->kind || str_same(want->kind, d->kind)) && (want->index < 0 || want->index == d->index) &&
         (want->part < 0 || want->part == d->part);
}

struct device_name device_name_merge(struct device_name base, struct device_name over) {
  if (over.job) base.job = over.job;
  if (over.task >= 0) base.task = over.task;
  if (over.kind) base.kind = over.kind;
  if (over.index >= 0) base.index = over.index;
  if (over.part >= 0) base.part = over.part;
  return base;
}

const char *device_name_text(struct arena *a, struct device_name n) {
  struct str s = str_make(a);
  if (n.job) str_printf(&s, "/job:%s", n.job);
  if (n.task >= 0) str_printf(&s, "/task:%d", n.task);
  if (n.kind) str_printf(&s, n.index >= 0 ? "/%s:%d" : "/%s", n.kind, n.index);
  if (n.kind && n.part >= 0) str_printf(&s, "/%d", n.part);
  return s.data;
}

static bool same_task(const struct device_name *a, const struct device_name *b) {
  return str_same(a->job, b->job) && a->task == b->task;
}

static bool is_cpu(const struct device_name *n) { return str_same(n->kind, "cpu"); }

static bool same_card(const struct device_name *a, const struct device_name *b) {
  return str_same(a->kind, "gpu") && str_same(b->kind, "gpu") && a->index == b->index && same_task(a, b);
}

static int target_usual_memory(const struct target *t, int i) {
  const struct device_name *name = &t->devices[i].name;
  for (int k = 0; k < i; k++) {
    const struct device_name *other = &t->devices[k].name;
    if ((is_cpu(name) && is_cpu(other) && same_task(name, other)) || same_card(name, other)) return k;
  }
  return i;
}

/* The devices of a task that share a memory, as a text: its CPUs, or those of one card. */
static const char *memory_key(struct arena *a, const struct device_name *n) {
  struct device_name shared = *n;
  shared.part = -1;
  if (is_cpu(n)) shared.index = -1;
  return device_name_text(a, shared);
}

const int *target_usual_memories(struct arena *a, const struct target *t) {
  int *first = arena_new_array(a, (size_t)t->ndevices, int);
  struct map seen = map_make(a);
  for (int i = 0; i < t->ndevices; i++) {
    const char *key = memory_key(a, &t->devices[i].name);
    const int *like = map_get(&seen, key);
    first[i] = like ? *like : i;
    if (!like) map_put_owned(&seen, key, &first[i]);
  }
  return first;
}

/* Tasks mostly come in the order of their numbers: then none before can be the same. */
int target_processes(const struct target *t, int *of) {
  enum { JOBS = 8 };
  const char *seen[JOBS]; /* jobs, and the last task of each */
  int last[JOBS], count = 0, jobs = 0;
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *name = &t->devices[i].name;
    int job = 0, like = i > 0 && same_task(name, &t->devices[i - 1].name) ? i - 1 : 0;
    while (job < jobs && !str_same(seen[job], name->job)) job++;
    bool later = job < jobs && name->task > last[job];
    while (!later && like < i && !same_task(name, &t->devices[like].name)) like++;
    of[i] = !later && like < i ? of[like] : count++;
    if (job == jobs && jobs < JOBS) seen[jobs] = name->job, last[jobs++] = name->task;
    if (job < jobs && name->task > last[job]) last[job] = name->task;
  }
  return count ? count : 1;
}

int target_process(const struct target *t, const int *of, const char *task) {
  const char *colon = strrchr(task, ':');
  char *end;
  size_t len = colon ? (size_t)(colon - task) : 0;
  long number = colon ? strtol(colon + 1, &end, 10) : -1;
  bool good = colon && colon[1] >= '0' && colon[1] <= '9' && !*end;
  for (int i = 0; i < t->ndevices && good; i++) {
    const struct device_name *n = &t->devices[i].name;
    if (n->job && n->task == number && strlen(n->job) == len && memcmp(n->job, task, len) == 0) return of[i];
  }
  return -1;
}

bool device_is_server(const struct device *d) { return d->name.job && strcmp(d->name.job, "ps") == 0; }

bool device_carries_towers(const struct device *d) { return !d->no_towers && !device_is_server(d); }

int target_add_cpu(struct arena *a, struct target *t, int like) {
  struct device *more = arena_new_array(a, (size_t)t->ndevices + 1, struct device);
  if (t->ndevices) memcpy(more, t->devices, sizeof *more * (size_t)t->ndevices);
  struct device_name name = t->devices[like].name;
  name.kind = "cpu";
  name.index = 0;
  name.part = -1;
  more[t->ndevices] = (struct device){.name = name, .text = device_name_text(a, name), .no_towers = true};
  t->devices = more;
  more[t->ndevices].memory = target_usual_memory(t, t->ndevices);
  return t->ndevices++;
}

/* A list while it is read. */
struct device_list {
  struct arena *arena;
  struct target *t;
  int cap;
  struct map texts;    /* of all devices */
  struct map memories; /* by memory_key: int *, its first device */
  struct diags *d;
  struct loc loc;
};

/* Whether it is a card that is listed in parts, or a part of one that is listed whole. */
static bool is_split_card(const struct device_list *l, const struct device_name *name, const char *text) {
  const struct target *t = l->t;
  for (int i = 0; !is_cpu(name) && i < t->ndevices; i++) {
    const struct device_name *other = &t->devices[i].name;
    if (!same_card(name, other) || (name->part >= 0 && other->part >= 0)) continue;
    diag_error(l->d, l->loc, "%s is a part of %s: list the whole card or its parts",
               name->part < 0 ? t->devices[i].text : text, name->part < 0 ? text : t->devices[i].text);
    return true;
  }
  return false;
}

static bool target_add(struct device_list *l, struct device_name name) {
  struct target *t = l->t;
  const char *text = device_name_text(l->arena, name);
  if (map_get(&l->texts, text)) {
    diag_error(l->d, l->loc, "device %s is listed twice", text);
    return false;
  }
  if (is_split_card(l, &name, text)) return false;
  if (t->ndevices == MAX_TARGET_DEVICES) {
    diag_error(l->d, l->loc, "more than %d devices", MAX_TARGET_DEVICES);
    return false;
  }
  if (t->ndevices == l->cap) {
    l->cap = l->cap ? 2 * l->cap : 16;
    struct device *more = arena_new_array(l->arena, (size_t)l->cap, struct device);
    if (t->ndevices) memcpy(more, t->devices, sizeof *more * (size_t)t->ndevices);
    t->devices = more;
  }
  const char *memory = memory_key(l->arena, &name);
  int *first = map_get(&l->memories, memory);
  if (!first) {
    first = arena_copy(l->arena, &t->ndevices, sizeof *first);
    map_put_owned(&l->memories, memory, first);
  }
  t->devices[t->ndevices++] = (struct device){.name = name, .text = text, .memory = *first};
  map_put_owned(&l->texts, text, (void *)(uintptr_t)text);
  return true;
}

/* What others call devices: "cuda:1", "2". */
static void help_device(struct device_list *l, const char *entry) {
  size_t digits = strspn(entry, "0123456789");
  long count = digits && digits < 4 && !entry[digits] ? strtol(entry, NULL, 10) : 0;
  if (strncmp(entry, "cuda", 4) == 0 || strncmp(entry, "GPU", 3) == 0)
    diag_help(l->d, l->loc, "NVIDIA's are gpu:0, gpu:1 and so on");
  else if (count > 1)
    diag_help(l->d, l->loc, "%ld of them are cpu:0-%ld, or gpu:0-%ld", count, count - 1, count - 1);
}

/* One entry of a list: a device, or a range of indices or of parts. */
static bool target_add_entry(struct device_list *l, const char *entry) {
  struct device_name name;
  const char *end = parse_fields(l->arena, entry, &name);
  int *number = name.part >= 0 ? &name.part : &name.index, last = *number;
  if (end && *end == '-') end = parse_number(end + 1, &last);
  if (!end || *end || !name.kind || *number < 0 || (end[-1] == '*')) {
    diag_error(l->d, l->loc,
               "'%s' is not a device: expected something like cpu:0, gpu:0-3, gpu:0/1 or "
               "/job:worker/task:0/cpu:0",
               entry);
    help_device(l, entry);
    return false;
  }
  if (last < *number) {
    diag_error(l->d, l->loc, "the range of '%s' is empty", entry);
    return false;
  }
  for (; *number <= last; ++*number)
    if (!target_add(l, name)) return false;
  return true;
}

bool target_parse(struct arena *a, const char *list, struct target *out, struct diags *d, struct loc loc) {
  struct device_list l = {.arena = a, .t = out, .d = d, .loc = loc};
  *out = (struct target){0};
  l.texts = map_make(a);
  l.memories = map_make(a);
  for (const char *p = list;; p++) {
    while (*p == ' ') p++;
    const char *begin = p;
    p += strcspn(p, ",");
    size_t len = (size_t)(p - begin);
    while (len && begin[len - 1] == ' ') len--;
    if (!target_add_entry(&l, lower_case(a, begin, len))) return false;
    if (!*p) return true;
  }
}

struct target target_copy(struct arena *a, const struct target *t) {
  struct target out = *t;
  out.devices = arena_copy(a, t->devices, sizeof *t->devices * (size_t)t->ndevices);
  for (int i = 0; i < t->ndevices; i++) {
    struct device *d = &out.devices[i];
    d->text = arena_strdup(a, d->text);
    if (d->name.job) d->name.job = arena_strdup(a, d->name.job);
  }
  return out;
}

int tower_device(int tower, int towers, int ndevices) {
  if (towers == ndevices) return tower; /* in large clusters, which ask for each */
  int each = towers / ndevices, more = towers % ndevices;
  if (tower < more * (each + 1)) return tower / (each + 1);
  return more + (tower - more * (each + 1)) / each;
}

int64_t tower_rows(int tower, int towers, int64_t rows) { return rows / towers + (tower < rows % towers); }

int64_t tower_first_row(int tower, int towers, int64_t rows) {
  int64_t more = rows % towers;
  return tower * (rows / towers) + (tower < more ? tower : more);
}

int tower_cut(int towers) {
  int half = 1;
  while (2 * half < towers) half *= 2;
  return half;
}
