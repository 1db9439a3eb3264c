/* SPDX-License-Identifier: Apache-2.0 */
/* What other tools call options. */
#include "include/dgc.h"

#include <string.h>

enum { MOST = 40 };

/* Words, the option here, of the library or of the command line alone (NULL: it is none), and how it is written. */
static const struct {
  const char *theirs, *name, *here;
} elsewhere[] = {
    {"batch-size batchsize bs", "batch", "--batch N"},
    {"lr learning-rate", "set", "--set rate=X, if the model has a parameter `rate`"},
    {"num-epochs max-epochs", "epochs", "--epochs N"},
    {"max-steps num-steps max-iters num-iters iterations", "steps", "--steps N"},
    {"lr-scheduler scheduler lr-schedule", NULL,
     "the rate in the model as a function of the step: `adam(cosine_decay(1e-3, 1000))`"},
    {"num-towers num-replicas replicas", "towers", "--towers N"},
    {"ckpt ckpt-path model-path", "checkpoint", "--checkpoint FILE"},
    {"out", "output", "--output NAME=FILE"},
    {"out", "file", "-o FILE"},
    {"stat numstat shortstat", NULL, "nothing: the last line says how many nodes differ"},
    {"device", "devices", "--devices cpu:0-1, or gpu:0"},
    {"gpus num-gpus", "devices", "--devices gpu, or gpu:0-3"},
    {"validation-data val-data", "eval-data", "--eval-data NAME=FILE"},
    {"validation-split val-split", "eval-rows", "--rows 0:8000 --eval-rows 8000:10000"},
    {"early-stopping", "patience", "--patience N"},
    {"load pretrained weights", "init-from", "--init-from FILE, or to go on --resume=FILE"},
    {"save-best", "keep-best", "--keep-best FILE"},
    {"tensorboard", "log-dir", "--log-dir DIR"},
    {"workers num-workers", "cluster", "--cluster worker=N, or of one process --threads N"},
    {"verbose", "log-every", "--log-every N"},
    {"amp fp16 bf16 mixed-precision", "set",
     "--set precision=bf16, if the model has a parameter `precision`"},
    {"precision", "set", "--set precision=bf16, if the model has a parameter `precision`"},
    {"dtype", NULL, "types in the model, as `input x : f32[B, 8]`"},
    {"optimizer optim", NULL, "the optimizer in the model: `train loss with adam(1e-3)`"},
    {"test-data", "eval-data", "--eval-data NAME=FILE"},
    {"test-rows val-rows validation-rows", "eval-rows", "--eval-rows 8000:10000"},
    {"restore", "resume", "--resume=FILE to go on, --init-from FILE to begin with its variables"},
    {"load-weights", "init-from", "--init-from FILE, or to go on --resume=FILE"},
    {"load-weights load pretrained weights restore", "checkpoint", "--checkpoint FILE"},
    {"shuffle", "no-shuffle", "nothing: rows are shuffled in each epoch, and --no-shuffle keeps their order"},
    {"save output-dir", "checkpoint", "--checkpoint FILE"}};

/* Whether it is one of the words, `_` being `-`. */
static bool is_one(const char *words, const char *word) {
  size_t len = strlen(word);
  char same[MOST] = "";
  if (!len || len >= sizeof same) return false;
  for (size_t i = 0; i < len; i++) same[i] = word[i] == '_' ? '-' : word[i];
  for (const char *p = words; (p = strstr(p, same)); p += len)
    if ((p == words || p[-1] == ' ') && (p[len] == ' ' || !p[len])) return true;
  return false;
}

bool dgc_option_elsewhere(const char *word, int index, const char **option, const char **here) {
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
    if (!is_one(elsewhere[i].theirs, word) || index--) continue;
    *option = elsewhere[i].name;
    *here = elsewhere[i].here;
    return true;
  }
  return false;
}
