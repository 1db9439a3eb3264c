/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting diagnostics and showing them as clang and rustc do. What comes from the source is never trusted: control
 * characters and bytes that are no UTF-8 print as '.', long lines and long messages are cut. */
#include "base/diag.h"

#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
  MAX_MESSAGE = 600, /* bytes of a message that are shown */
  USUAL = 100,       /* columns of a source line that are shown where no screen is known, */
  LEAST = 20,        /* and of one that is narrow */
};

void diags_init(struct diags *d, struct arena *a) {
  *d = (struct diags){.arena = a, .max_errors = 20};
  d->tail = d->told = &d->first;
}

static void add(struct diags *d, enum severity severity, struct loc loc, const char *fmt, va_list ap) {
  if (severity == DIAG_ERROR) d->dropped = ++d->nerrors > d->max_errors;
  if (severity == DIAG_WARNING) d->dropped = false;
  if (d->dropped) return;
  struct diag *new = arena_new(d->arena, struct diag);
  *new = (struct diag){.severity = severity, .loc = loc, .message = arena_vprintf(d->arena, fmt, ap)};
  *d->tail = new;
  d->tail = &new->next;
}

#define DEFINE(function, severity)                                       \
  void function(struct diags *d, struct loc loc, const char *fmt, ...) { \
    va_list ap;                                                          \
    va_start(ap, fmt);                                                   \
    add(d, severity, loc, fmt, ap);                                      \
    va_end(ap);                                                          \
  }
DEFINE(diag_error, DIAG_ERROR)
DEFINE(diag_warning, DIAG_WARNING)
DEFINE(diag_note, DIAG_NOTE)
DEFINE(diag_help, DIAG_HELP)
#undef DEFINE

void diag_meant(struct diags *d, struct loc loc, const char *word, const char *meant, char quote) {
  struct diag **last = d->tail;
  diag_help(d, loc, "did you mean %c%s%c?", quote, meant, quote);
  if (!*last) return; /* of an error that is not shown */
  (*last)->wrong = arena_strdup(d->arena, word);
  (*last)->meant = arena_strdup(d->arena, meant);
}

void diag_closest(struct diags *d, struct loc loc, const char *word, const char *const *names, size_t count,
                  const char *otherwise) {
  if (d->nerrors > d->max_errors) return;
  const char *closest = str_closest(word, names, count);
  if (closest)
    diag_meant(d, loc, word, closest, '\'');
  else if (otherwise && count)
    diag_help(d, loc, "%s %s", otherwise, str_join(d->arena, names, count));
}

void diag_failure(struct diags *d, struct loc loc, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(d, DIAG_ERROR, loc, fmt, ap);
  va_end(ap);
  d->failure = true;
}

void source_position(const struct source *s, uint32_t offset, int *line, int *column) {
  if (offset > s->len) offset = (uint32_t)s->len;
  uint32_t begin = 0;
  if (s->lines) {
    uint32_t low = 0, high = s->nlines; /* lines[low] <= offset < lines[high] */
    while (high - low > 1) {
      uint32_t middle = low + (high - low) / 2;
      if (s->lines[middle] <= offset)
        low = middle;
      else
        high = middle;
    }
    begin = s->lines[low];
    *line = (int)low + 1;
  } else {
    *line = 1;
    for (uint32_t i = 0; i < offset; i++)
      if (s->text[i] == '\n') begin = i + 1, ++*line;
  }
  *column = (int)(offset - begin) + 1;
}

struct loc loc_join(struct loc a, struct loc b) {
  if (!a.source) return b;
  if (a.source == b.source && b.end > a.end) a.end = b.end;
  return a;
}

/* One character as it is shown: a `bad` one (a control character, a byte that is no UTF-8) becomes a '.'. */
struct glyph {
  size_t bytes;
  int columns;
  bool bad;
};

static int columns_of(uint32_t c) {
  static const uint32_t wide[][2] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                     {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                     {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
  if ((c >= 0x300 && c <= 0x36f) || (c >= 0xfe00 && c <= 0xfe0f)) return 0;
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    if (c >= wide[i][0] && c <= wide[i][1]) return 2;
  return 1;
}

static struct glyph glyph_at(const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text;
  if (p[0] < 0x80) return (struct glyph){1, 1, p[0] < 0x20 || p[0] == 0x7f};
  size_t bytes = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  uint32_t c = p[0] & (0x7fu >> bytes);
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  for (size_t i = 1; i < bytes && i < n; i++) {
    if ((p[i] & 0xc0) != 0x80) return (struct glyph){1, 1, true};
    c = c << 6 | (p[i] & 0x3f);
  }
  bool whole = p[0] >= 0xc0 && p[0] < 0xf8 && bytes <= n && c >= least[bytes] && c <= 0x10ffff;
  if (!whole || (c >= 0xd800 && c <= 0xdfff)) return (struct glyph){1, 1, true};
  /* Controls, and the marks that reorder text: a terminal must not obey them. */
  bool obeyed = c < 0xa0 || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return (struct glyph){bytes, obeyed ? 1 : columns_of(c), obeyed};
}

static void put_glyph(struct str *out, const char *p, struct glyph g) {
  if (g.bad)
    str_putc(out, '.');
  else
    str_putn(out, p, g.bytes);
}

static void put_message(struct str *out, const char *message) {
  size_t len = strlen(message), shown = 0;
  while (shown < len && shown < MAX_MESSAGE) {
    struct glyph g = glyph_at(message + shown, len - shown);
    if (message[shown] == '\n')
      str_putc(out, '\n');
    else
      put_glyph(out, message + shown, g);
    shown += g.bytes;
  }
  if (shown < len) str_put(out, "...");
}

/* Of a source line, beside its number and what says that it is cut. */
static int columns_beside(int line, int screen) {
  int number = line < 1000 ? 3 : snprintf(NULL, 0, "%d", line);
  int left = screen - number - (int)strlen(" | ...");
  return !screen ? USUAL : left < LEAST ? LEAST : left;
}

/* The line that `loc` begins in, and carets under the part of the range that lies on it. What is far to the right is
 * shown with some of what is in front of it. */
static void put_source(struct str *out, struct loc loc, int line, int most, const char *caret_color,
                       const char *plain) {
  const struct source *s = loc.source;
  size_t at = loc.begin < s->len ? loc.begin : s->len;
  const char *before = at ? memrchr(s->text, '\n', at) : NULL;
  size_t begin = before ? (size_t)(before - s->text) + 1 : 0;
  const char *behind = memchr(s->text + at, '\n', s->len - at);
  size_t end = behind ? (size_t)(behind - s->text) : s->len;
  if (end > begin && s->text[end - 1] == '\r' && end > at) end--;
  size_t range_end = loc.end < end ? loc.end : end;

  size_t from = begin;
  if (at - begin > (size_t)most * 4 / 5) {
    from = at - (size_t)most * 2 / 5;
    while (from < at && ((unsigned char)s->text[from] & 0xc0) == 0x80) from++;
  }
  str_printf(out, "%3d | %s", line, from > begin ? "..." : "");
  int columns = from > begin ? 3 : 0, indent = 0, carets = 0;
  size_t p = from;
  for (; p < end && columns < most;) {
    struct glyph g = glyph_at(s->text + p, end - p);
    size_t start = p;
    p += g.bytes;
    if (start <= at) indent = columns;
    if (s->text[start] == '\t') {
      str_put(out, "    ");
      g.columns = 4;
    } else {
      put_glyph(out, s->text + start, g);
    }
    columns += g.columns;
    if (p > at && (start < range_end || !carets)) carets = columns - indent;
  }
  if (p < end) str_put(out, "...");
  if (p <= at) indent = columns;
  str_putc(out, '\n');

  int width = line < 1000 ? 3 : snprintf(NULL, 0, "%d", line);
  str_printf(out, "%*s | %*s%s^", width, "", indent, "", caret_color);
  for (int i = 1; i < carets; i++) str_putc(out, '~');
  str_printf(out, "%s\n", plain);
}

const char *diags_text(const struct diags *d, bool color) { return diags_text_on(d, color, 0); }

const char *diags_text_on(const struct diags *d, bool color, int screen) {
  static const struct {
    const char *name, *color;
  } kinds[] = {
      [DIAG_ERROR] = {"error", "\033[1;31m"},
      [DIAG_WARNING] = {"warning", "\033[1;35m"},
      [DIAG_NOTE] = {"note", "\033[1;36m"},
      [DIAG_HELP] = {"help", "\033[1;32m"},
  };
  const char *bold = color ? "\033[1m" : "", *green = color ? "\033[1;32m" : "";
  const char *plain = color ? "\033[0m" : "";
  struct str out = str_make(d->arena);
  for (const struct diag *g = *d->told; g; g = g->next) {
    int line = 0, column = 0;
    if (g->loc.source) {
      source_position(g->loc.source, g->loc.begin, &line, &column);
      str_put(&out, bold);
      put_message(&out, g->loc.source->name);
      str_printf(&out, ":%d:%d: ", line, column);
    }
    str_printf(&out, "%s%s:%s %s", color ? kinds[g->severity].color : "", kinds[g->severity].name, plain,
               bold);
    put_message(&out, g->message);
    str_printf(&out, "%s\n", plain);
    if (g->loc.source && !g->loc.source->hidden)
      put_source(&out, g->loc, line, columns_beside(line, screen), green, plain);
  }
  int more = d->nerrors - d->max_errors;
  if (more > 0) str_printf(&out, "%d more %s not shown\n", more, more == 1 ? "error is" : "errors are");
  return out.data;
}

/* Takes `text`, which lives in the arena and has a NUL behind it. */
static struct source *make(struct arena *a, const char *name, const char *text, size_t len) {
  struct source *s = arena_new(a, struct source);
  uint32_t nlines = 1;
  for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))); p++) nlines++;
  uint32_t *lines = arena_new_array(a, nlines, uint32_t), n = 1;
  for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))); p++)
    lines[n++] = (uint32_t)(p - text) + 1;
  *s = (struct source){
      .name = arena_strdup(a, name), .text = text, .len = len, .lines = lines, .nlines = nlines};
  return s;
}

struct source *source_make(struct arena *a, const char *name, const char *text, size_t len) {
  if (len > UINT32_MAX - 1) len = UINT32_MAX - 1;
  return make(a, name, arena_strndup(a, text, len), len);
}

/* "digits", where there is digits.dsl. */
static void help_with_suffix(struct diags *d, const char *path, int error) {
  static const char *const suffixes[] = {".dsl", ".dg"};
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && error == ENOENT; i++) {
    const char *meant = arena_printf(d->arena, "%s%s", path, suffixes[i]);
    if (access(meant, F_OK) != 0) continue;
    diag_help(d, LOC_NONE, "there is %s", meant);
    return;
  }
}

/* "cannot VERB 'PATH': CAUSE"; gives NULL back. */
static struct source *unread(struct diags *d, const char *verb, const char *path, const char *cause,
                             int error) {
  if (file_system_failed(error))
    diag_failure(d, LOC_NONE, "cannot %s '%s': %s", verb, path, cause);
  else
    diag_error(d, LOC_NONE, "cannot %s '%s': %s", verb, path, cause);
  help_with_suffix(d, path, error);
  return NULL;
}

/* Reads on to the end of the file, or to a byte more than the limit. */
static bool read_on(struct arena *a, int fd, size_t limit, size_t cap, char **text, size_t *len) {
  while (*len <= limit) {
    if (*len == cap) {
      char *more = arena_alloc(a, 2 * cap + 1);
      memcpy(more, *text, *len);
      *text = more;
      cap *= 2;
    }
    ssize_t got = read(fd, *text + *len, cap - *len);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) return true;
    *len += (size_t)got;
  }
  return true;
}

static void undo_open(void *fd) { close(*(int *)fd); }

static struct source *read_whole(struct arena *a, const struct file_roots *roots, const char *path,
                                 size_t limit, struct diags *d) {
  bool is_stdin = !roots && strcmp(path, "-") == 0;
  int64_t size = 0;
  const char *cause;
  if (limit > UINT32_MAX - 1) limit = UINT32_MAX - 1;
  int fd = is_stdin ? STDIN_FILENO : file_open_within(roots, path, &size, &cause);
  if (fd < 0) return unread(d, "open", path, cause, errno);
  struct arena_guard guard; /* memory may run out */
  if (!is_stdin) arena_guard(&guard, undo_open, &fd);
  size_t cap = size > 0 && (uintmax_t)size <= limit ? (size_t)size + 1 : 4096, len = 0;
  char *text = arena_alloc(a, cap + 1);
  bool good = read_on(a, fd, limit, cap, &text, &len);
  int error = errno;
  bool hidden = !is_stdin && !file_is_source(fd);
  if (!is_stdin) {
    arena_unguard(&guard);
    close(fd);
  }
  if (!good) return unread(d, "read", path, strerror(error), error);
  if (len > limit) {
    diag_error(d, LOC_NONE, "'%s' is larger than %zu bytes", path, limit);
    return NULL;
  }
  text[len] = 0;
  struct source *s = make(a, path, text, len);
  s->is_file = !is_stdin;
  s->hidden = hidden;
  return s;
}

struct source *source_read(struct arena *a, const char *path, size_t limit, struct diags *d) {
  return read_whole(a, NULL, path, limit, d);
}

struct source *source_read_within(struct arena *a, const struct file_roots *roots, const char *path,
                                  size_t limit, struct diags *d) {
  struct source *s = read_whole(a, roots, path, limit, d);
  if (!s || !s->hidden) return s;
  diag_error(d, LOC_NONE, "'%s' is not a source: the name of its file does not end in .dsl", path);
  return NULL;
}
