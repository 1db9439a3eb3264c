/* SPDX-License-Identifier: Apache-2.0 */
/* include/dgc.hpp: owners end, move, throw, and structs say their size. */
#include <dgc.hpp>

#include <cstdio>
#include <cstring>
#include <utility>

static const char model[] =
    "model line { input x : f32[4, B]; var w : f32[] = zeros(); train sum(w * w) with sgd() }";

int main() {
  dgc::session s;
  bool thrown = false;
  try {
    s.check(dgc_load_text(s, "line", model, sizeof model - 1));
  } catch (const dgc::error &e) {
    thrown = e.status == DGC_INPUT && std::strstr(e.what(), "line:1:");
  }
  if (!thrown) return std::puts("a mistake in a model is not thrown"), 1;
  try {
    s.set("no-such-option", "1");
    return std::puts("a wrong option is not thrown"), 1;
  } catch (const dgc::error &e) {
    if (e.status != DGC_USAGE) return std::puts(e.what()), 1;
  }
  dgc::session t = std::move(s);
  if (static_cast<dgc_session *>(s) || !static_cast<dgc_session *>(t))
    return std::puts("it was not moved"), 1;
  auto machine = dgc::sized<struct dgc_machine>();
  t.check(dgc_machine(t, &machine));
  return machine.cores > 0 ? 0 : 1;
}
