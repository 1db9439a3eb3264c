/* SPDX-License-Identifier: Apache-2.0 */
/* One hostile text: what dgc makes of it. */
#ifndef TESTS_OPS_HOSTILE_TEXT_H
#define TESTS_OPS_HOSTILE_TEXT_H

struct attack {
  int texts, refused, taken;
};

/* Fails the test unless `text` is refused with a message that says where, or is a graph that reads back and that all
 * passes and the evaluator take or refuse with a word; counts it. */
void survives(struct attack *t, const char *text);

#endif
