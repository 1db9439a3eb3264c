/* SPDX-License-Identifier: Apache-2.0 */
/* A PJRT plugin that computes nothing: it makes devices, reads from a module what goes in and out, and gives back
 * zeros, or for a result that may have an argument's memory what the argument holds. It fails as DGC_SIMULATED_PJRT
 * says: "major", "short", "start", "compile", "memory", "execute", "lost" (behind the third execution), "slow" (that
 * never ends). With "option" it is one for CPUs that does not know an option of XLA's, with "stale" it takes no program
 * that was compiled before, with "forgetful" it cannot say what a program is.
 *
 * It counts what is given to the other side, and says at the end what did not come back. */
#include "runtime/pjrt/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 4, MOST = 512 };

static int objects; /* given, and not given back */

static bool fails(const char *how) {
  const char *wanted = getenv("DGC_SIMULATED_PJRT");
  return wanted && strcmp(wanted, how) == 0;
}

static void *give(size_t size) {
  objects++;
  return calloc(1, size);
}

static void take_back(void *object) {
  objects--;
  free(object);
}

/* --- errors and events --- */

struct error {
  char text[128];
};

static void *error(const char *text) {
  struct error *e = give(sizeof *e);
  snprintf(e->text, sizeof e->text, "%s", text);
  return e;
}

struct event {
  bool never;
  const char *failure;
};

static void *event(bool never, const char *failure) {
  struct event *e = give(sizeof *e);
  *e = (struct event){never, failure};
  return e;
}

#define TAKES(name) static void *call_##name(struct pjrt_##name *a)

TAKES(Error_Destroy) {
  take_back(a->error);
  return NULL;
}
TAKES(Error_Message) {
  a->message = ((const struct error *)a->error)->text;
  a->message_size = strlen(a->message);
  return NULL;
}
TAKES(Error_GetCode) {
  a->code = 13;
  return NULL;
}
TAKES(Plugin_Initialize) {
  (void)a;
  return NULL;
}
TAKES(Event_Destroy) {
  take_back(a->event);
  return NULL;
}
TAKES(Event_IsReady) {
  a->is_ready = !((const struct event *)a->event)->never;
  return NULL;
}
TAKES(Event_Error) {
  const struct event *e = a->event;
  return e->failure ? error(e->failure) : NULL;
}
TAKES(Event_Await) {
  const struct event *e = a->event;
  while (e->never) pause();
  return e->failure ? error(e->failure) : NULL;
}

/* --- clients and devices --- */

static struct device { int number; } all[DEVICES] = {{0}, {1}, {2}, {3}};
static void *listed[DEVICES] = {&all[0], &all[1], &all[2], &all[3]};

TAKES(Client_Create) {
  if (fails("start")) return error("no device is attached to this machine");
  a->client = give(1);
  return NULL;
}
TAKES(Client_Destroy) {
  take_back(a->client);
  if (objects) fprintf(stderr, "simulated plugin: %d objects did not come back\n", objects);
  return NULL;
}
TAKES(Client_PlatformName) {
  a->platform_name = fails("option") ? "cpu" : "simulated";
  a->platform_name_size = strlen(a->platform_name);
  return NULL;
}
TAKES(Client_PlatformVersion) {
  a->platform_version = "1";
  a->platform_version_size = 1;
  return NULL;
}
TAKES(Client_AddressableDevices) {
  a->addressable_devices = listed;
  a->num_addressable_devices = DEVICES;
  return NULL;
}
TAKES(DeviceDescription_Id) {
  a->id = ((const struct device *)a->device_description)->number;
  return NULL;
}
TAKES(DeviceDescription_Kind) {
  a->device_kind = "simulated core";
  a->device_kind_size = strlen(a->device_kind);
  return NULL;
}
TAKES(Device_GetDescription) {
  a->device_description = a->device;
  return NULL;
}
TAKES(Device_MemoryStats) {
  (void)a;
  return error("not known");
}

/* --- buffers --- */

struct buffer {
  size_t bytes;
  char *data;
};

static void *buffer(size_t bytes, const void *data) {
  struct buffer *b = give(sizeof *b);
  *b = (struct buffer){bytes, calloc(1, bytes + 1)};
  if (data) memcpy(b->data, data, bytes);
  return b;
}

static size_t element(int type) {
  return type == PJRT_F64 || type == PJRT_S64 ? 8 : type == PJRT_F32 || type == PJRT_S32 ? 4 : 1;
}

TAKES(Client_BufferFromHostBuffer) {
  size_t bytes = element(a->type);
  for (size_t i = 0; i < a->num_dims; i++) bytes *= (size_t)a->dims[i];
  if (fails("memory")) return error("RESOURCE_EXHAUSTED: there is no room for a buffer");
  a->buffer = buffer(bytes, a->data);
  a->done_with_host_buffer = event(false, NULL);
  return NULL;
}
TAKES(Buffer_Destroy) {
  free(((struct buffer *)a->buffer)->data);
  take_back(a->buffer);
  return NULL;
}
TAKES(Buffer_CopyToDevice) {
  const struct buffer *b = a->buffer;
  a->dst_buffer = buffer(b->bytes, b->data);
  return NULL;
}
TAKES(Buffer_ToHostBuffer) {
  const struct buffer *b = a->src;
  if (a->dst_size < b->bytes) return error("the place is too small");
  memcpy(a->dst, b->data, b->bytes);
  a->event = event(false, NULL);
  return NULL;
}

/* --- modules --- */

struct executable {
  int arguments, results;
  int from[MOST];     /* by result: the argument whose memory it may have, or -1 */
  size_t bytes[MOST]; /* by result */
};

/* "tensor<64x784xf32>" */
static size_t tensor_bytes(const char *text) {
  size_t bytes = 1;
  const char *p = text + strlen("tensor<");
  for (char *end; *p >= '0' && *p <= '9'; p = end + 1) bytes *= strtoul(p, &end, 10);
  return bytes * (strncmp(p, "f64", 3) == 0 || strncmp(p, "i64", 3) == 0   ? 8
                  : strncmp(p, "f32", 3) == 0 || strncmp(p, "i32", 3) == 0 ? 4
                                                                           : 1);
}

/* What stands between "@main"( and the end of its line: arguments, then results. */
static bool read_signature(const char *text, size_t length, struct executable *e) {
  static const char alias[] = "tf.aliasing_output = ";
  char *copy = strndup(text, length), *line = strstr(copy, "@\"main\"("),
       *end = line ? strstr(line, ") {\n") : NULL;
  char *arrow = line ? strstr(line, ") -> (") : NULL;
  for (int i = 0; i < MOST; i++) e->from[i] = -1;
  if (end) *end = 0;
  for (char *p = line; end && p && (p = strstr(p, "tensor<")); p++) {
    if (p > arrow) {
      e->bytes[e->results++] = tensor_bytes(p);
      continue;
    }
    char *next = strstr(p, "%arg"), *gives = strstr(p, alias);
    if (gives && gives < arrow && (!next || gives < next))
      e->from[atoi(gives + strlen(alias))] = e->arguments;
    e->arguments++;
  }
  free(copy);
  return end && arrow;
}

/* What is not known of XLA's options is an error. */
static bool asks_for_extremes(const struct pjrt_Client_Compile *a) {
  static const char name[] = "xla_cpu_enable_fast_min_max";
  const char *options = a->compile_options;
  for (size_t i = 0; i + sizeof name <= a->compile_options_size; i++)
    if (memcmp(options + i, name, sizeof name - 1) == 0) return true;
  return false;
}

TAKES(Client_Compile) {
  if (fails("option") && asks_for_extremes(a))
    return error("INVALID_ARGUMENT: No such compile option: 'xla_cpu_enable_fast_min_max'");
  struct executable *e = give(sizeof *e);
  if (!fails("compile") && read_signature(a->program->code, a->program->code_size, e)) {
    a->executable = e;
    return NULL;
  }
  take_back(e);
  return error("INVALID_ARGUMENT: the module\nis not understood");
}
TAKES(Executable_Destroy) {
  (void)a;
  return NULL;
}
TAKES(Executable_Serialize) {
  if (fails("forgetful")) return error("UNIMPLEMENTED: a program is not bytes here");
  struct executable *copy = give(sizeof *copy);
  memcpy(copy, a->executable, sizeof *copy);
  a->serialized_executable = copy;
  a->serialized_bytes = (const char *)copy;
  a->serialized_bytes_size = sizeof *copy;
  a->serialized_executable_deleter = take_back;
  return NULL;
}
TAKES(Executable_DeserializeAndLoad) {
  if (fails("stale") || a->serialized_executable_size != sizeof(struct executable))
    return error("INVALID_ARGUMENT: the program is of another version");
  a->loaded_executable = give(sizeof(struct executable));
  memcpy(a->loaded_executable, a->serialized_executable, sizeof(struct executable));
  return NULL;
}
TAKES(LoadedExecutable_Destroy) {
  take_back(a->executable);
  return NULL;
}
TAKES(LoadedExecutable_GetExecutable) {
  a->executable = a->loaded_executable;
  return NULL;
}
TAKES(Executable_GetCompiledMemoryStats) {
  const struct executable *e = a->executable;
  for (int i = 0; i < e->results; i++) a->output_size_in_bytes += (int64_t)e->bytes[i];
  return NULL;
}
TAKES(LoadedExecutable_Execute) {
  static int runs;
  const struct executable *e = a->executable;
  runs++;
  if (fails("execute")) return error("INTERNAL: a core has stopped");
  if ((int)a->num_args != e->arguments) return error("another number of arguments");
  for (size_t d = 0; d < a->num_devices; d++) {
    for (int i = 0; i < e->results; i++) {
      const struct buffer *old = e->from[i] < 0 ? NULL : a->argument_lists[d][e->from[i]];
      a->output_lists[d][i] = buffer(e->bytes[i], old ? old->data : NULL);
    }
    a->device_complete_events[d] =
        event(fails("slow"), fails("lost") && runs > 3 ? "UNAVAILABLE: the device is lost" : NULL);
  }
  return NULL;
}

/* --- the table --- */

enum { PLACES = CALL_Executable_GetCompiledMemoryStats + 1 };

static union {
  struct pjrt_table table;
  char room[sizeof(struct pjrt_table) + PLACES * sizeof(void *)];
} given;

__attribute__((visibility("default"))) const struct pjrt_table *GetPjrtApi(void);

const struct pjrt_table *GetPjrtApi(void) {
  given.table.struct_size = fails("short") ? sizeof given.table + 20 * sizeof(void *) : sizeof given;
  given.table.version.major_version = fails("major") ? PJRT_MAJOR + 1 : PJRT_MAJOR;
  given.table.version.minor_version = 90;
#define CALL(place, name, fields)                          \
  {                                                        \
    void *(*call)(struct pjrt_##name *) = call_##name;     \
    memcpy(&given.table.calls[place], &call, sizeof call); \
  }
#include "runtime/pjrt/calls.def"
#undef CALL
  return &given.table;
}
