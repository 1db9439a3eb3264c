/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_cases SUITE [--only CASE] [--nodes]: cases one after the other on standard output. */
#include "tests/oracle/case.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  struct asked q = {NULL, false};
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--nodes") == 0)
      q.nodes = true;
    else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      q.only = argv[++i];
  }
  if (argc > 1 && strcmp(argv[1], "ops") == 0)
    write_ops(&q);
  else if (argc > 1 && strcmp(argv[1], "samples") == 0)
    write_samples(&q);
  else if (argc > 1 && strcmp(argv[1], "gradients") == 0)
    write_op_gradients(&q), write_kinks(&q), write_gradients(&q);
  else
    return fprintf(stderr, "usage: oracle_cases ops|samples|gradients [--only CASE] [--nodes]\n"), 2;
  return 0;
}
