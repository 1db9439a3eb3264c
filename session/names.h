/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints whose variables have other names than the model's: they are read by a file of lines `old = new`. */
#ifndef DGC_SESSION_NAMES_H
#define DGC_SESSION_NAMES_H

#include "session/session.h"

struct checkpoint;
struct model_variable;

/* Renames what c holds as the file of option `names` says, if there is one: `old = new` a line, of which `old` is a
 * name, or the first parts of names, up to a dot; the longest that fits counts. `old = new [1, 0]`: axis 0 of the new
 * tensor is axis 1 of the old one, as numpy's transpose has it. `#` begins a comment. An error names the line; a
 * warning names what lies as PyTorch's weights may, where no order of axes is said. */
enum dgc_status names_apply(struct dgc_session *s, struct checkpoint *c, const char *path);

/* Help where c lacks some of `all`: lines for such a file, made of what it holds by names that the model has not. */
void names_help(struct dgc_session *s, const struct checkpoint *c, const struct model_variable *all,
                int count);

#endif
