/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses settings that the strategy or the devices do not support: what a strategy would ignore is an error. */
#include "passes/strategy/fit.h"

#include <string.h>

/* A setting as who gave it wrote it: `min_part_bytes` in a source, --min-part-bytes as an option. */
static const char *written(struct arena *a, struct loc asked, const char *setting) {
  char *name = arena_printf(a, asked.source ? "`%s`" : "--%s", setting);
  for (char *p = name; !asked.source && *p; p++)
    if (*p == '_') *p = '-';
  return name;
}

/* ---- the devices ---- */

/* The first device that computes and is no plugin's; NULL: there is none. */
static const struct device *foreign(const struct config *c, const struct device_roles *roles) {
  for (int i = 0; i < roles->ncompute; i++) {
    const struct device *d = &c->target.devices[roles->compute[i]];
    if (strcmp(d->name.kind, "pjrt") != 0 && strcmp(d->name.kind, "tpu") != 0) return d;
  }
  return NULL;
}

static bool fits_devices(struct arena *a, const struct config *c, const struct device_roles *roles,
                         const struct strategy *s, struct diags *d) {
  const struct strategy_info *info = s->info;
  if (info->reach == REACH_DEVICE && roles->ncompute > 1) {
    diag_error(d, LOC_NONE, "strategy %s runs on one device, and %d are given: %s", info->name,
               roles->ncompute, device_list(a, &c->target));
    diag_help(d, LOC_NONE, "name one device, or choose another strategy, as mirrored or central_storage");
    return false;
  }
  if (info->reach == REACH_TASK && roles->ntasks > 1) {
    diag_error(d, LOC_NONE, "strategy %s is for the devices of one task, and these belong to %d: %s",
               info->name, roles->ntasks, device_list(a, &c->target));
    diag_help(d, LOC_NONE, "use --strategy %s", strategy_default(DEFAULT_FOR_SEVERAL_TASKS)->name);
    return false;
  }
  const struct device *other = info->reach == REACH_PLUGIN ? foreign(c, roles) : NULL;
  if (other) {
    diag_error(d, LOC_NONE, "strategy %s is for the devices of a PJRT plugin, as tpu:0-7, and %s is none",
               info->name, other->text);
    diag_help(d, LOC_NONE, "mirrored does the same on devices of other kinds");
    return false;
  }
  if (info->storage == STORAGE_SERVERS && !roles->nservers) {
    diag_error(d, LOC_NONE, "strategy %s needs tasks of the job ps, and the devices are %s", info->name,
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
    diag_help(d, LOC_NONE, "it is exact, or per_tower with strategy %s",
              strategies_taking(d->arena, TAKES_LOSS_SCALING));
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

/* A setting that is given, in the order in which they are looked for. */
struct setting {
  uint32_t takes;
  bool given;
  const char *name;
  struct loc asked;
  const char *what, *why; /* "only strategy parameter_server <what>: with mirrored <why>" */
};

static bool fits_settings(struct arena *a, const struct config *c, const struct strategy *s,
                          struct diags *d) {
  const struct config_asked *at = &c->asked;
  const struct setting settings[] = {
      {TAKES_PARAMETER_DEVICE, c->parameter_device != NULL, "parameter_device", at->parameter_device,
       "has a parameter device",
       s->mirrored ? "variables are on every device"
                   : "the strategy chooses the devices of variables itself"},
      {TAKES_STALENESS, c->asynchronous, "staleness", at->staleness.source ? at->staleness : at->asynchronous,
       "trains asynchronously", "workers wait for each other"},
      {TAKES_PARTS, c->min_part_bytes != 0, "min_part_bytes", at->min_part_bytes, "cuts variables into parts",
       "they are whole"},
      {TAKES_BALANCE, c->balance != NULL, "balance", at->balance, "distributes variables",
       "there is nothing to balance"},
      {TAKES_LOSS_SCALING, scales_per_tower(c), "loss_scaling", at->loss_scaling, "scales losses per tower",
       "they are exact"},
      {TAKES_UNEVEN, c->uneven, "uneven", at->uneven, "refuses uneven batches",
       "the first towers get one row more anyway"},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    const struct setting *set = &settings[i];
    if (!set->given || (s->info->settings & set->takes)) continue;
    const char *others = strategies_taking(a, set->takes);
    diag_error(d, set->asked, "only strategy %s %s: with %s %s", others, set->what, s->info->name, set->why);
    diag_help(d, LOC_NONE, "leave out %s, or use strategy %s%s", written(a, set->asked, set->name), others,
              strcmp(others, strategy_default(DEFAULT_FOR_SERVERS)->name) == 0
                  ? ", with a job ps in the cluster"
                  : "");
    return false;
  }
  return true;
}

/* Whether every device needs the sum of each gradient; with one device, every device is that one. */
static bool fits_sums(struct arena *a, const struct config *c, const struct device_roles *roles,
                      const struct strategy *s, struct diags *d) {
  if (s->info->settings & TAKES_SUMS) return true;
  const char *setting = c->packs ? "packs" : c->bytes_per_pack ? "bytes_per_pack" : NULL;
  struct loc asked = c->packs ? c->asked.packs : c->asked.bytes_per_pack;
  const char *what = setting;
  if (cross_device_number(c->cross_device) != CROSS_DEVICE_reduce_to_one) {
    setting = "cross_device";
    what = c->cross_device;
    asked = c->asked.cross_device;
  }
  if (!setting) return true;
  diag_error(
      d, asked,
      "%s is for sums that every device needs, and strategy %s sums each gradient where its variable is",
      what, s->info->name);
  enum default_for devices = roles->ntasks > 1 ? DEFAULT_FOR_SEVERAL_TASKS : DEFAULT_FOR_DEVICES;
  diag_help(d, LOC_NONE, "leave out %s, or use strategy %s", written(a, asked, setting),
            strategy_default(devices)->name);
  return false;
}

bool strategy_fits(struct arena *a, const struct config *c, const struct device_roles *roles,
                   const struct strategy *s, struct diags *d) {
  return has_values(c, d) && fits_devices(a, c, roles, s, d) && fits_settings(a, c, s, d) &&
         fits_sums(a, c, roles, s, d);
}
