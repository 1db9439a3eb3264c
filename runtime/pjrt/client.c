/* SPDX-License-Identifier: Apache-2.0 */
/* Clients: the plugin's own, and the devices that it has. */
#include "runtime/pjrt/engine.h"

#include <stdlib.h>
#include <string.h>

void pjrt_error_drop(const struct pjrt_plugin *p, void *error) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  pjrt_error_text(a, p, error);
  arena_destroy_guarded(a, &guard);
}

void pjrt_client_destroy(const struct pjrt_plugin *p, void *client) {
  struct pjrt_Client_Destroy args = PJRT_ARGS(Client_Destroy, .client = client);
  void *error = client ? pjrt_invoke(p, CALL_Client_Destroy, &args) : NULL;
  if (error) pjrt_error_drop(p, error);
}

static void *failed(const struct pjrt_plugin *p, const char *what, void *error, struct diags *d) {
  diag_error(d, LOC_NONE, "PJRT plugin %s %s: %s", p->file, what, pjrt_error_text(d->arena, p, error));
  return NULL;
}

static void *create(const struct pjrt_plugin *p, const struct pjrt_option *options, size_t count,
                    struct diags *d) {
  struct pjrt_Client_Create args = PJRT_ARGS(Client_Create, .create_options = options, .num_options = count);
  void *error = pjrt_invoke(p, CALL_Client_Create, &args);
  return error ? failed(p, "does not start", error, d) : args.client;
}

static const char *platform(struct arena *a, const struct pjrt_plugin *p, void *client) {
  struct pjrt_Client_PlatformName args = PJRT_ARGS(Client_PlatformName, .client = client);
  void *error = pjrt_invoke(p, CALL_Client_PlatformName, &args);
  if (error) pjrt_error_drop(p, error);
  return error ? "" : arena_strndup(a, args.platform_name, args.platform_name_size);
}

static bool describe(struct arena *a, const struct pjrt_plugin *p, void *device, int *id, const char **kind,
                     struct diags *d) {
  struct pjrt_Device_GetDescription get = PJRT_ARGS(Device_GetDescription, .device = device);
  void *error = pjrt_invoke(p, CALL_Device_GetDescription, &get);
  struct pjrt_DeviceDescription_Id number =
      PJRT_ARGS(DeviceDescription_Id, .device_description = get.device_description);
  struct pjrt_DeviceDescription_Kind name =
      PJRT_ARGS(DeviceDescription_Kind, .device_description = get.device_description);
  if (!error) error = pjrt_invoke(p, CALL_DeviceDescription_Id, &number);
  if (!error) error = pjrt_invoke(p, CALL_DeviceDescription_Kind, &name);
  if (error) return failed(p, "says nothing of its devices", error, d);
  *id = number.id;
  *kind = arena_strndup(a, name.device_kind, name.device_kind_size);
  return true;
}

static bool list(struct arena *a, const struct pjrt_plugin *p, void *client, struct pjrt_listed *out,
                 struct diags *d) {
  struct pjrt_Client_AddressableDevices args = PJRT_ARGS(Client_AddressableDevices, .client = client);
  void *error = pjrt_invoke(p, CALL_Client_AddressableDevices, &args);
  if (error) return failed(p, "does not list its devices", error, d);
  *out = (struct pjrt_listed){.platform = platform(a, p, client), .count = (int)args.num_addressable_devices};
  out->devices = args.addressable_devices;
  out->ids = arena_new_array(a, args.num_addressable_devices + 1, int);
  out->kinds = arena_new_array(a, args.num_addressable_devices + 1, const char *);
  for (int i = 0; i < out->count; i++)
    if (!describe(a, p, out->devices[i], &out->ids[i], &out->kinds[i], d)) return false;
  return true;
}

/* A client for CPUs has one device unless it is told how many to make. */
void *pjrt_client_create(struct arena *a, const struct pjrt_plugin *p, int wanted, struct pjrt_listed *out,
                         struct diags *d) {
  static const char name[] = "cpu_device_count";
  const struct pjrt_option count = {.struct_size = sizeof count,
                                    .name = name,
                                    .name_size = sizeof name - 1,
                                    .type = PJRT_INT64,
                                    .value.int64 = wanted,
                                    .value_size = 1};
  void *client = create(p, NULL, 0, d);
  if (client && list(a, p, client, out, d) && (out->count >= wanted || strcmp(out->platform, "cpu") != 0))
    return client;
  bool again = client && out->count > 0 && out->count < wanted;
  pjrt_client_destroy(p, client);
  client = again ? create(p, &count, 1, d) : NULL;
  if (client && list(a, p, client, out, d)) return client;
  pjrt_client_destroy(p, client);
  return NULL;
}
