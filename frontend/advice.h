/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about arguments that fit, and are probably not what was meant. */
#ifndef DGC_FRONTEND_ADVICE_H
#define DGC_FRONTEND_ADVICE_H

#include "frontend/signature.h"

/* Of a user's call that can be done. */
void advise_arguments(struct resolver *r, const struct signature *s, const struct value *callee,
                      const struct value *args);
/* Of one whose first arguments stand the other way round; true: the error has been told. */
bool report_classes(struct resolver *r, const struct signature *s, const struct value *callee,
                    const struct value *args);
bool report_turned_round(struct resolver *r, const struct signature *s, const struct value *callee,
                         const struct value *args);
/* Where there are more arguments than parameters. */
void help_too_many(struct resolver *r, const struct signature *s, const struct value *callee);

#endif
