/* SPDX-License-Identifier: Apache-2.0 */
/* Devices by what they are: the words of --devices. */
#ifndef DGC_SESSION_DEVICE_WORDS_H
#define DGC_SESSION_DEVICE_WORDS_H

#include "session/session.h"

/* Puts devices of this machine in the place of the words in the option: `gpu`, every GPU; `cpu`, cpu:0; `all`, both. An
 * error where there is no GPU, but for `all`. */
enum dgc_status session_name_devices(struct dgc_session *s);

#endif
