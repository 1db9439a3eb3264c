/* From the configuration to devices: REPLICATION.md's table of strategies, as far as it is one device index each. */
#include "passes/strategy.h"

#include <string.h>

static const char *const names[] = {"one_device", "central_storage", "mirrored"};

static const char *device_list(struct arena *a, const struct target *t) {
  struct str s = str_make(a);
  for (int i = 0; i < t->ndevices; i++) str_printf(&s, "%s%s", i ? ", " : "", t->devices[i].text);
  return s.data;
}

/* The device the user named, or -1 after an error. */
static int find_device(struct arena *a, const struct target *t, const char *text, const char *what,
                       struct diags *d) {
  struct device_name want;
  if (!device_name_parse(a, text, &want)) {
    diag_error(d, LOC_NONE, "'%s' is no device name", text);
    diag_help(d, LOC_NONE, "names look like /cpu:0 or /job:worker/task:0/gpu:1");
    return -1;
  }
  for (int i = 0; i < t->ndevices; i++)
    if (device_matches(&want, &t->devices[i].name)) return i;
  diag_error(d, LOC_NONE, "the %s device %s is not among the devices: %s", what, text, device_list(a, t));
  return -1;
}

static int first_cpu(const struct target *t) {
  for (int i = 0; i < t->ndevices; i++)
    if (strcmp(t->devices[i].name.kind, "cpu") == 0) return i;
  return -1;
}

/* /cpu:0 of the first device's task, which every machine has. */
static int add_cpu(struct arena *a, struct target *t) {
  struct target one;
  struct diags silent;
  diags_init(&silent, a);
  struct device_name name = t->devices[0].name;
  name.kind = "cpu";
  name.index = 0;
  if (!target_parse(a, device_name_text(a, name), &one, &silent, LOC_NONE)) return -1;
  struct device *more = arena_new_array(a, (size_t)t->ndevices + 1, struct device);
  memcpy(more, t->devices, sizeof *more * (size_t)t->ndevices);
  more[t->ndevices] = one.devices[0];
  more[t->ndevices].memory = t->ndevices;
  t->devices = more;
  return t->ndevices++;
}

bool strategy_resolve(struct arena *a, struct config *c, struct strategy *out, struct diags *d) {
  if (c->target.ndevices == 0 && !target_parse(a, "cpu:0", &c->target, d, LOC_NONE)) return false;
  int compute = c->target.ndevices;
  if (c->towers == 0) c->towers = c->strategy && strcmp(c->strategy, "one_device") == 0 ? 1 : compute;
  if (c->towers < 0 || c->towers > 1024) {
    diag_error(d, LOC_NONE, "%d towers: there may be 1 to 1024", c->towers);
    return false;
  }
  if (!c->strategy) c->strategy = compute == 1 ? "one_device" : "mirrored";
  bool known = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) known |= strcmp(names[i], c->strategy) == 0;
  if (!known) {
    const char *close = str_closest(c->strategy, names, sizeof names / sizeof *names);
    diag_error(d, LOC_NONE, "there is no strategy '%s'", c->strategy);
    if (close)
      diag_help(d, LOC_NONE, "did you mean %s?", close);
    else
      diag_help(d, LOC_NONE, "strategies are one_device, central_storage and mirrored");
    return false;
  }
  bool one = strcmp(c->strategy, "one_device") == 0;
  if (one && compute > 1) {
    diag_error(d, LOC_NONE, "strategy one_device runs on one device, and %d are given: %s", compute,
               device_list(a, &c->target));
    diag_help(d, LOC_NONE, "name one device, or choose mirrored or central_storage");
    return false;
  }
  *out = (struct strategy){.name = c->strategy,
                           .towers = c->towers,
                           .ndevices = c->towers < compute ? c->towers : compute,
                           .mirrored = strcmp(c->strategy, "mirrored") == 0};
  if (out->mirrored) {
    if (c->parameter_device) {
      diag_error(d, LOC_NONE,
                 "strategy mirrored keeps variables on every device and has no parameter device");
      diag_help(d, LOC_NONE, "use --strategy central_storage, or leave out --parameter-device");
      return false;
    }
  } else if (c->parameter_device) {
    out->parameter = find_device(a, &c->target, c->parameter_device, "parameter", d);
  } else if (!one && compute > 1) {
    out->parameter = first_cpu(&c->target);
    if (out->parameter < 0) out->parameter = add_cpu(a, &c->target);
    c->parameter_device = c->target.devices[out->parameter].text;
  }
  if (c->consolidation_device) {
    out->consolidation = find_device(a, &c->target, c->consolidation_device, "consolidation", d);
  } else {
    int cpu = first_cpu(&c->target);
    out->consolidation = cpu < 0 ? 0 : cpu;
  }
  return out->parameter >= 0 && out->consolidation >= 0;
}
