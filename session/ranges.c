/* SPDX-License-Identifier: Apache-2.0 */
/* What is said where the data of an input has a number that the model cannot use: class numbers, labels of two
 * kinds. */
#include "session/ranges.h"

#include "runtime/data/vocabulary.h"
#include "session/model.h"

#include <string.h>

/* Whether the input is limited by this text of the library. */
static bool is_limited_by(const struct model_input *input, const char *text) {
  const struct loc *l = &input->limited;
  size_t length = strlen(text);
  return l->source && l->begin + length <= l->source->len &&
         strncmp(l->source->text + l->begin, text, length) == 0;
}

/* Labels that are 0 or 1, or between, as of sigmoid_cross_entropy. */
static void help_binary(struct dgc_session *s, const struct vocabulary *words, const char *name,
                        double wrong) {
  if (words && words->count == 2)
    diag_help(&s->diags, LOC_NONE,
              "words count from 1, and 0 is none of them: `cast(expect_range(%s, 1, 2) - 1, f32)` is 0 for "
              "'%.100s' and 1 for '%.100s'",
              name, words->words[0], words->words[1]);
  else if (words)
    diag_help(&s->diags, LOC_NONE,
              "words count from 1, and 0 is none of them: `cast(%s == %d, f32)` is 1 for '%.100s' and 0 for "
              "the others",
              name, words->count, words->words[words->count - 1]);
  else if (wrong == 2)
    diag_help(&s->diags, LOC_NONE, "labels are 0 and 1 here: of 1 and 2 that is `%s - 1`", name);
  else if (wrong == -1)
    diag_help(&s->diags, LOC_NONE, "labels are 0 and 1 here: of -1 and 1 that is `cast(%s > 0, f32)`", name);
  if (!words && wrong != 2)
    diag_help(
        &s->diags, LOC_NONE,
        "rows without a label, as 255 or -1 may mark them, count for nothing with a weight of 0: "
        "`known = clip(%s, 0, 1)` and `weighted_mean(loss, cast(known == %s, f32))`, so for metrics, too",
        name, name);
}

/* Labels that are numbers of classes, as of softmax_cross_entropy. */
static void help_classes(struct dgc_session *s, const char *name, long long high, double wrong) {
  if (wrong > (double)high && wrong != 255)
    diag_help(
        &s->diags, LOC_NONE,
        "classes are numbered from 0: class %.0f needs %.0f logits, and there %s %lld, which the layer "
        "makes that gives them: write %.0f for its `units`; of classes that count from 1 write `%s - 1`",
        wrong, wrong + 1, high ? "are" : "is", high + 1, wrong + 1, name);
  else
    diag_help(
        &s->diags, LOC_NONE,
        "rows without a class, as 255 or -1 may mark them, count for nothing with a weight of 0: `known = "
        "clip(%s, 0, %lld)` and `weighted_mean(softmax_cross_entropy(logits, known), cast(known == %s, "
        "f32))`, so for metrics, too",
        name, high, name);
}

void session_say_limited(struct dgc_session *s, const struct dataset *ds, const struct model_input *input,
                         double wrong) {
  const struct vocabulary *words = dataset_find(ds, input->name)->words;
  diag_note(&s->diags, input->asked, "the model can use no other values");
  if (is_limited_by(input, "expect_range(label, 0, 1)") || is_limited_by(input, "expect_range(same, 0, 1)"))
    help_binary(s, words, input->name, wrong);
  else if (is_limited_by(input, "expect_either(label, -1, 1)"))
    diag_help(&s->diags, LOC_NONE, "labels are -1 and 1 here: of 0 and 1 that is `2 * %s - 1`%s", input->name,
              words ? ", of two words `2 * y - 3`" : "");
  else if (words && wrong)
    diag_help(
        &s->diags, LOC_NONE,
        "words count from 1, and 0 is none of them: of these %d words the model needs %d numbers, or %d with "
        "`%s - 1`",
        words->count, words->count + 1, words->count, input->name);
  else if (!words && is_limited_by(input, "gather(") && wrong > (double)input->high)
    diag_help(
        &s->diags, LOC_NONE,
        "rows of a table are numbered from 0: row %.0f needs %.0f of them, as the `size` of an embedding is, "
        "and there are %lld",
        wrong, wrong + 1, (long long)input->high + 1);
  else if (!words && is_limited_by(input, "expect_range(label, 0, classes - 1)"))
    help_classes(s, input->name, (long long)input->high, wrong);
}
