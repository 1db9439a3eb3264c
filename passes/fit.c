/* Whether what was asked for goes with the strategy and with the devices. What a strategy would ignore is an error. */
#include "passes/fit.h"

#include "passes/collectives.h"

#include <string.h>

const char *device_list(struct arena *a, const struct target *t) {
  struct str s = str_make(a);
  for (int i = 0; i < t->ndevices; i++) str_printf(&s, "%s%s", i ? ", " : "", t->devices[i].text);
  return s.data;
}

static bool is(const struct strategy *s, const char *name) { return strcmp(s->name, name) == 0; }

bool strategy_known(struct arena *a, const struct config *c, struct diags *d) {
  size_t n = 0;
  while (strategies[n].name && strcmp(strategies[n].name, c->strategy) != 0) n++;
  if (strategies[n].name) return true;
  const char **names = arena_new_array(a, n + 1, const char *);
  struct str all = str_make(a);
  for (size_t i = 0; i < n; i++) {
    names[i] = strategies[i].name;
    str_printf(&all, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " and ", names[i]);
  }
  diag_error(d, c->asked.strategy, "there is no strategy '%s'", c->strategy);
  const char *close = str_closest(c->strategy, names, n);
  if (close)
    diag_help(d, LOC_NONE, "did you mean %s?", close);
  else
    diag_help(d, LOC_NONE, "strategies are %s", all.data);
  return false;
}

/* A setting as who gave it wrote it: `min_part_bytes` in a source, --min-part-bytes as an option. */
static const char *written(struct arena *a, struct loc asked, const char *setting) {
  char *name = arena_printf(a, asked.source ? "`%s`" : "--%s", setting);
  for (char *p = name; !asked.source && *p; p++)
    if (*p == '_') *p = '-';
  return name;
}

/* ---- the devices ---- */

static bool fits_devices(struct arena *a, const struct config *c, const struct cast *cast,
                         const struct strategy *s, struct diags *d) {
  if (is(s, "one_device") && cast->ncompute > 1) {
    diag_error(d, LOC_NONE, "strategy one_device runs on one device, and %d are given: %s", cast->ncompute,
               device_list(a, &c->target));
    diag_help(d, LOC_NONE, "name one device, or choose another strategy, as mirrored or central_storage");
    return false;
  }
  if (is(s, "mirrored") && cast->ntasks > 1) {
    diag_error(d, LOC_NONE, "strategy mirrored is for the devices of one task, and these belong to %d: %s",
               cast->ntasks, device_list(a, &c->target));
    diag_help(d, LOC_NONE, "use --strategy multi_worker_mirrored");
    return false;
  }
  if (is(s, "parameter_server") && !cast->nservers) {
    diag_error(d, LOC_NONE, "strategy parameter_server needs tasks of the job ps, and the devices are %s",
               device_list(a, &c->target));
    diag_help(d, LOC_NONE, "as with --cluster \"worker=2;ps=1\"");
    return false;
  }
  return true;
}

/* ---- values that no strategy knows ---- */

static bool has_values(const struct config *c, struct diags *d) {
  if (c->loss_scaling && strcmp(c->loss_scaling, "per_tower") != 0 && strcmp(c->loss_scaling, "exact") != 0) {
    diag_error(d, c->asked.loss_scaling, "there is no loss scaling '%s'", c->loss_scaling);
    diag_help(d, LOC_NONE, "it is exact, or per_tower with strategy replicate");
    return false;
  }
  if (c->balance && strcmp(c->balance, "size") != 0) {
    diag_error(d, c->asked.balance, "variables can be balanced by size, not by '%s'", c->balance);
    return false;
  }
  if (c->packs && c->bytes_per_pack) {
    struct loc at = c->asked.packs.source ? c->asked.packs : c->asked.bytes_per_pack;
    diag_error(d, at, "both packs %d and bytes_per_pack %lld are given: choose one", c->packs,
               (long long)c->bytes_per_pack);
    return false;
  }
  return cross_device_find(c, d) >= 0;
}

/* ---- settings that only some strategies know ---- */

/* "leave out --balance, or ..." */
static void leave_out(struct arena *a, struct loc asked, const char *setting, const char *otherwise,
                      struct diags *d) {
  diag_help(d, LOC_NONE, "leave out %s, or %s", written(a, asked, setting), otherwise);
}

static bool fits_servers(struct arena *a, const struct config *c, const struct strategy *s, struct diags *d) {
  static const char cluster[] = "give a cluster with the job ps";
  if (is(s, "parameter_server")) return true;
  if (c->asynchronous) {
    struct loc asked = c->asked.staleness.source ? c->asked.staleness : c->asked.asynchronous;
    diag_error(d, asked, "only strategy parameter_server trains asynchronously, not %s", s->name);
    leave_out(a, asked, "staleness", cluster, d);
    return false;
  }
  if (c->min_part_bytes) {
    diag_error(d, c->asked.min_part_bytes,
               "only strategy parameter_server cuts variables into parts: with %s they are whole", s->name);
    leave_out(a, c->asked.min_part_bytes, "min_part_bytes", cluster, d);
    return false;
  }
  if (!c->balance || is(s, "round_robin")) return true;
  diag_error(d, c->asked.balance, "strategy %s does not distribute variables: there is nothing to balance",
             s->name);
  diag_help(d, LOC_NONE, "%s is for round_robin and parameter_server",
            written(a, c->asked.balance, "balance"));
  return false;
}

static bool fits_replicate(struct arena *a, const struct config *c, const struct strategy *s,
                           struct diags *d) {
  static const char replicate[] = "use strategy replicate";
  if (is(s, "replicate")) return true;
  if (scales_per_tower(c)) {
    diag_error(d, c->asked.loss_scaling,
               "only strategy replicate scales losses per tower: with %s they are exact", s->name);
    leave_out(a, c->asked.loss_scaling, "loss_scaling", replicate, d);
    return false;
  }
  if (!c->uneven) return true;
  diag_error(d, c->asked.uneven,
             "only strategy replicate refuses uneven batches: %s gives the first towers one row more anyway",
             s->name);
  leave_out(a, c->asked.uneven, "uneven", replicate, d);
  return false;
}

/* Whether every device needs the sum of each gradient; with one device, every device is that one. */
static bool fits_sums(struct arena *a, const struct config *c, const struct cast *cast,
                      const struct strategy *s, struct diags *d) {
  if (s->mirrored || is(s, "one_device")) return true;
  const char *setting = c->packs ? "packs" : c->bytes_per_pack ? "bytes_per_pack" : NULL;
  struct loc asked = c->packs ? c->asked.packs : c->asked.bytes_per_pack;
  const char *what = setting;
  if (c->cross_device && strcmp(c->cross_device, "reduce_to_one") != 0) {
    setting = "cross_device";
    what = c->cross_device;
    asked = c->asked.cross_device;
  }
  if (!setting) return true;
  diag_error(
      d, asked,
      "%s is for sums that every device needs, and strategy %s sums each gradient where its variable is",
      what, s->name);
  leave_out(a, asked, setting,
            cast->ntasks > 1 ? "use strategy multi_worker_mirrored" : "use strategy mirrored", d);
  return false;
}

static bool fits_storage(struct arena *a, const struct config *c, const struct strategy *s, struct diags *d) {
  if (!c->parameter_device || is(s, "one_device") || is(s, "central_storage")) return true;
  diag_error(d, c->asked.parameter_device, "strategy %s %s and has no parameter device", s->name,
             s->mirrored ? "keeps variables on every device" : "chooses the devices of variables itself");
  leave_out(a, c->asked.parameter_device, "parameter_device", "use strategy central_storage", d);
  return false;
}

bool strategy_fits(struct arena *a, const struct config *c, const struct cast *cast, const struct strategy *s,
                   struct diags *d) {
  return has_values(c, d) && fits_devices(a, c, cast, s, d) && fits_storage(a, c, s, d) &&
         fits_servers(a, c, s, d) && fits_replicate(a, c, s, d) && fits_sums(a, c, cast, s, d);
}
