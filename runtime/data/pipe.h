/* SPDX-License-Identifier: Apache-2.0 */
/* What comes through pipes. It is read once, to its end, and kept, so that it may be read as often as a file: as many
 * bytes as DGC_DATA_MEMORY says in memory, more than that in a file without a name, in TMPDIR or /tmp. */
#ifndef DGC_RUNTIME_DATA_PIPE_H
#define DGC_RUNTIME_DATA_PIPE_H

#include "runtime/data/content.h"

#include <stdatomic.h>

struct pipes;

/* None so far. `stop`: asks those who wait to give up. */
struct pipes *pipes_make(struct arena *a, const atomic_bool *stop);
/* NULL is allowed. */
void pipes_close(struct pipes *p);
/* "-", standard input, or the name of a FIFO. */
bool is_pipe(const char *path);
/* What came through it, `memory` bytes of it in memory; the caller closes the content. An error where standard input is
 * a terminal, where nobody opens a FIFO to write within ten seconds, and where nothing comes. */
bool pipe_content(struct pipes *p, const char *path, int64_t memory, struct content *out, struct loc loc,
                  struct diags *d);

#endif
