/* SPDX-License-Identifier: Apache-2.0 */
/* dgc new: a first model in a folder of its own: data, a model that learns it, and what it is to learn, as a test. */
#include "cli.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRAINED = 400, TESTED = 100, FILES = 5 };

/* NAME stands for the name of the model. */
static const char model[] =
    "# A first model: two numbers, and whether the point that they are lies inside of a ring.\n"
    "#\n"
    "#   dgc check NAME.dsl                                       what is wrong with it\n"
    "#   dgc train NAME.dsl --epochs 60 --checkpoint NAME.safetensors   learns\n"
    "#   dgc eval NAME.dsl --checkpoint NAME.safetensors          how well\n"
    "#   dgc predict NAME.dsl --checkpoint NAME.safetensors --output inside=-\n"
    "#   dgc test NAME.dsl                                        whether what the lines below say still "
    "holds\n"
    "#   dgc compile NAME.dsl --emit html -o NAME.html            a picture, for a browser\n"
    "#\n"
    "# RUN: dgc compile --emit graph %s | FileCheck %s\n"
    "# CHECK: h.matmul = matmul x, h.kernel : f32[B,16]\n"
    "# EXPECT accuracy at least 0.9 after 60 epochs\n"
    "use nn\n"
    "\n"
    "model NAME(hidden = 16, rate = 0.02) {\n"
    "  input x     : f32[B, 2]\n"
    "  input label : u8[B]\n"
    "\n"
    "  h      = nn.dense(x, units = hidden, activation = tanh)\n"
    "  logits = nn.dense(h, units = 2)\n"
    "  loss   = softmax_cross_entropy(logits, label)\n"
    "\n"
    "  train   mean(loss) with adam(rate = rate)\n"
    "  metric  accuracy = mean(correct(logits, label))\n"
    "  predict inside   = softmax(logits)\n"
    "\n"
    "  data train {\n"
    "    x     = \"train-x.csv\"\n"
    "    label = \"train-label.csv\"\n"
    "  }\n"
    "  data test {\n"
    "    x     = \"test-x.csv\"\n"
    "    label = \"test-label.csv\"\n"
    "  }\n"
    "}\n";
static const char *const data_files[FILES - 1] = {"train-x.csv", "train-label.csv", "test-x.csv",
                                                  "test-label.csv"};

static char *model_named(const char *name) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  for (const char *p = model; *p;)
    if (strncmp(p, "NAME", 4) == 0) {
      fputs(name, f);
      p += 4;
    } else
      fputc(*p++, f);
  return fclose(f) == 0 ? text : NULL;
}

/* Thousandths from -1500 to 1500, the same on every machine: Knuth's linear congruential generator. */
static int next(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((*state >> 33) % 3001) - 1500;
}

static void put_thousandths(FILE *f, int value) {
  fprintf(f, "%s%d.%03d", value < 0 ? "-" : "", abs(value) / 1000, abs(value) % 1000);
}

/* Both columns of data, a row for each point. */
static bool make_data(char **points, char **labels, int rows, uint64_t *state) {
  size_t size[2];
  FILE *x = open_memstream(points, &size[0]), *label = open_memstream(labels, &size[1]);
  for (int i = 0; x && label && i < rows; i++) {
    int a = next(state), b = next(state);
    put_thousandths(x, a);
    fputc(',', x);
    put_thousandths(x, b);
    fputc('\n', x);
    fputs(a * a + b * b < 1000 * 1000 ? "1\n" : "0\n", label);
  }
  bool made = x && label;
  if (x) made &= fclose(x) == 0;
  if (label) made &= fclose(label) == 0;
  return made;
}

static bool is_word(const char *name) {
  size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  return len && !name[len] && !(*name >= '0' && *name <= '9') && len < 100;
}

/* All of it, or nothing. */
static int write_all(struct cli *c, const char *folder, const char *name) {
  char *texts[FILES] = {model_named(name)}, path[4096];
  uint64_t state = 1;
  bool made = texts[0] && make_data(&texts[1], &texts[2], TRAINED, &state) &&
              make_data(&texts[3], &texts[4], TESTED, &state);
  int code = made ? DGC_OK : DGC_RUNTIME, written = 0;
  for (; !code && written < FILES; written++) {
    snprintf(path, sizeof path, "%s/%s%s", folder, written ? data_files[written - 1] : name,
             written ? "" : ".dsl");
    code = cli_status(c, dgc_write_file(c->session, path, texts[written]));
  }
  for (int i = 0; i < FILES; i++) {
    snprintf(path, sizeof path, "%s/%s%s", folder, i ? data_files[i - 1] : name, i ? "" : ".dsl");
    if (code && i < written) unlink(path);
    free(texts[i]);
  }
  if (code) rmdir(folder);
  return code;
}

int cli_new(struct cli *c) {
  const char *folder = c->words[0], *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
  if (!is_word(name) || strlen(folder) > 3000)
    return cli_usage(c, "'%s' is no name for a model: letters, digits and _, not a digit first", name);
  if (mkdir(folder, 0777) < 0) {
    int error = errno; /* printing changes it */
    cli_usage(c, "cannot make the folder %s: %s", folder, strerror(error));
    return error == EEXIST ? DGC_USAGE : DGC_RUNTIME;
  }
  int code = write_all(c, folder, name);
  if (!code && !c->json)
    printf("%s/%s.dsl, with data and a test. Next:\n  cd %s\n  dgc train %s.dsl --epochs 60 --checkpoint "
           "%s.safetensors\n  dgc test .\n",
           folder, name, folder, name, name);
  return code;
}
