/* SPDX-License-Identifier: Apache-2.0 */
/* Describes what a checkpoint or a data file holds; writes a text to a file. */
#include "session/checkpoint.h"
#include "session/files.h"

#include "base/file.h"
#include "runtime/checkpoint.h"
#include "runtime/data/atomic.h"
#include "runtime/data/data.h"
#include "runtime/data/json.h"

#include <string.h>
#include <unistd.h>

/* One tensor: "name : f32[784,512]", or a JSON object. `text` is its type as the file has it. */
static void inspect_tensor(struct str *out, bool json, const char *name, const struct type *t,
                           const char *text) {
  if (!json) {
    str_printf(out, "%s : %s\n", name, text);
    return;
  }
  str_put(out, "{\"name\":");
  json_quote(out, name);
  str_printf(out, ",\"dtype\":\"%.*s\",\"shape\":[", (int)strcspn(text, "["), text);
  for (int i = 0; i < t->rank; i++) str_printf(out, "%s%lld", i ? "," : "", (long long)t->dim[i]);
  str_put(out, "]}");
}

static void inspect_checkpoint(struct arena *a, struct str *out, bool json, const struct checkpoint *c) {
  checkpoint_print_texts(out, json, c);
  for (int i = 0; i < c->count; i++) {
    const struct checkpoint_entry *e = &c->entries[i];
    if (json && i) str_putc(out, ',');
    inspect_tensor(out, json, e->name, &e->type, checkpoint_type_text(a, e));
  }
  if (json) str_put(out, "]}\n");
}

/* A data file is one tensor: rows, then the row's own shape. */
static bool inspect_data(struct dgc_session *s, struct str *out, bool json, const char *path) {
  struct data_spec spec = {.name = "data", .path = path};
  struct dataset *ds = dataset_open(s->call, NULL, &spec, 1, NULL, &s->diags);
  if (!ds) return false;
  struct type t = ds->columns[0].row;
  if (t.rank < MAX_RANK) {
    memmove(t.dim + 1, t.dim, (size_t)t.rank * sizeof *t.dim);
    t.dim[0] = ds->rows;
    t.rank++;
  }
  if (json) str_put(out, "{\"texts\":{},\"tensors\":[");
  inspect_tensor(out, json, path, &t, type_text(s->call, &t));
  if (json) str_put(out, "]}\n");
  dataset_close(ds);
  return true;
}

/* A safetensors file: eight bytes of length, then JSON. */
static bool is_checkpoint(const char *path) {
  unsigned char head[9] = {0};
  int64_t size;
  const char *cause;
  int fd = file_open(path, &size, &cause);
  bool is = fd >= 0 && file_read(fd, head, sizeof head, 0) == sizeof head && head[8] == '{' && !head[7];
  if (fd >= 0) close(fd);
  return is;
}

static enum dgc_status inspect(struct dgc_session *s, const char *path, bool json, const char **text) {
  struct str out = session_text(s);
  bool done;
  if (is_checkpoint(path)) {
    struct checkpoint *c = checkpoint_load(s->call, path, &s->diags);
    done = c != NULL;
    if (c) inspect_checkpoint(s->call, &out, json, c);
  } else
    done = inspect_data(s, &out, json, path);
  *text = out.data;
  return done ? DGC_OK : session_unread(s);
}

enum dgc_status dgc_inspect(struct dgc_session *s, const char *path, bool json, const char **text) {
  CALL(s, inspect(s, path, json, text));
}

static enum dgc_status write_file(struct dgc_session *s, const char *path, const char *text) {
  struct atomic_file f;
  enum dgc_status status = session_may_write(s, "what is to be written", path);
  if (status) return status;
  if (!atomic_open(&f, s->call, path, &s->diags)) return DGC_RUNTIME;
  if (!atomic_write(&f, text, strlen(text), &s->diags)) {
    atomic_discard(&f);
    return DGC_RUNTIME;
  }
  return atomic_commit(&f, &s->diags) ? DGC_OK : DGC_RUNTIME;
}

enum dgc_status dgc_write_file(struct dgc_session *s, const char *path, const char *text) {
  CALL(s, write_file(s, path, text));
}
