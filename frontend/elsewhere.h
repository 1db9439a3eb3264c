/* SPDX-License-Identifier: Apache-2.0 */
/* What other languages and libraries call things: the rows of elsewhere.def, for errors and for `dgc doc`. */
#ifndef DGC_FRONTEND_ELSEWHERE_H
#define DGC_FRONTEND_ELSEWHERE_H

#include <stddef.h>

struct arena;

/* The one of `names` that is called `word` elsewhere, as a type or a parameter; NULL: none. */
const char *elsewhere_name(const char *word, const char *const *names, size_t count);
/* How a function or a layer that is called `word` elsewhere is written here, "select(c, a, b)"; NULL: not known. */
const char *elsewhere_call(const char *word);
/* What to do instead of such a call, where there is none; NULL: not known. */
const char *elsewhere_instead(const char *word, size_t len);
/* What to do instead of a parameter, "embedding.mask_zero" or of whatever call "clipnorm"; NULL: not known. */
const char *elsewhere_parameter(const char *word);
/* What is said of a name, a call or a parameter that is called `word` elsewhere and is none here; NULL: nothing. */
const char *elsewhere_help(struct arena *a, const char *word);
/* All that a type, value or parameter which is called `word` elsewhere is here, "`units` or `filters`"; NULL: none. */
const char *elsewhere_names(struct arena *a, const char *word);
/* What to write instead of a statement that begins with the `len` letters at `word`; NULL: not known. */
const char *elsewhere_statement(const char *word, size_t len);

#endif
