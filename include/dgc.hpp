/* SPDX-License-Identifier: Apache-2.0 */
/* dgc.h for C++11 and later: a session that has an owner, and exceptions in place of statuses.
 *
 *   dgc::session s;
 *   s.set("devices", "cpu:0-1");
 *   s.check(dgc_load(s, "digits.dsl"));
 *   s.check(dgc_train(s));
 *
 * All functions of dgc.h take a session as it is. */
#ifndef DGC_HPP
#define DGC_HPP

#include "dgc.h"

#include <memory>
#include <new>
#include <stdexcept>

namespace dgc {

/* What a call has returned, and the messages of it. */
struct error : std::runtime_error {
  dgc_status status;
  error(dgc_status status, const char *message) : std::runtime_error(message), status(status) {}
};

/* It can be moved, and not copied; it ends with its owner. */
class session {
  struct destroy {
    void operator()(dgc_session *s) const { dgc_destroy(s); }
  };
  std::unique_ptr<dgc_session, destroy> own;

public:
  session() : own(dgc_create()) {
    if (!own) throw std::bad_alloc();
  }
  operator dgc_session *() const { return own.get(); }
  void check(dgc_status status) const {
    if (status != DGC_OK) throw error(status, dgc_message(own.get()));
  }
  void set(const char *option, const char *value) { check(dgc_set(own.get(), option, value)); }
};

/* A struct that a call fills in, with its size: auto machine = dgc::sized<dgc_machine>(). The C function of that name
 * hides it in C++; `struct dgc_machine` is the struct. */
template <class T> T sized() {
  T it = T();
  it.size = sizeof it;
  return it;
}

} /* namespace dgc */

#endif
