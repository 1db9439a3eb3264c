/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: the backend that is to run the devices */
#ifndef DGC_SESSION_DEVICES_H
#define DGC_SESSION_DEVICES_H

#include "runtime/backend.h"
#include "session/session.h"

/* The backend of the option, or the default: an error if there is none of the name, or no device for it. */
enum dgc_status session_backend(struct dgc_session *s, const struct backend **out);

#endif
