/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as a page that people look at */
#ifndef DGC_SESSION_PICTURE_H
#define DGC_SESSION_PICTURE_H

#include "session/model.h"

#include "base/str.h"

/* An HTML page of one file, which needs no network: the entry's graph after each pass, its sources, and what lies in
 * each device's memory over a step. The same input gives the same bytes. */
enum dgc_status session_picture(struct dgc_session *s, enum entry_kind kind, struct str *out);

/* The same of a graph that was read, before and after these passes ("simplify,grad"; NULL or "": none). */
enum dgc_status session_picture_of(struct dgc_session *s, struct graph *g, const char *passes,
                                   struct str *out);

#endif
