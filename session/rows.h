/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that the caller has, in place of files */
#ifndef DGC_SESSION_ROWS_H
#define DGC_SESSION_ROWS_H

#include "runtime/data/data.h"
#include "session/session.h"

/* Of the option data, or of eval-data: what the input reads, as a specification that lives as long as the session; NULL
 * where the caller has given none. */
const struct data_spec *rows_given(const struct dgc_session *s, bool eval, const char *input);
/* Whether there are any of this option. */
bool rows_any(const struct dgc_session *s, bool eval);
/* The inputs that have some, the first from 0 on; NULL behind the last one. */
const char *rows_input(const struct dgc_session *s, int index);

#endif
