/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller has asked to be told */
#ifndef DGC_SESSION_STATE_HANDLERS_H
#define DGC_SESSION_STATE_HANDLERS_H

#include "include/dgc.h"

struct handlers {
  dgc_message_fn *message;
  void *message_user;
  dgc_pass_fn *pass;
  void *pass_user;
  dgc_progress_fn *progress;
  void *progress_user;
};

#endif
