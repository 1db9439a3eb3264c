/* SPDX-License-Identifier: Apache-2.0 */
/* What the tool prints: messages, metrics, figures. */
#include "cli.h"

#include <locale.h>
#include <math.h>
#include <string.h>

/* The shortest decimal with at most `digits` digits. The tool never calls setlocale, so printf's point is a point. */
static void put_number(FILE *f, double value, int digits) {
  fprintf(f, "%.*g", digits, cli_unsigned_nan(value));
}

void cli_print_metrics(const struct cli *c, const struct dgc_metric *m, int count, int64_t rows) {
  if (c->json) fprintf(stdout, "{\"rows\":%lld", (long long)rows);
  for (int i = 0; i < count; i++) {
    if (c->json) {
      fputc(',', stdout);
      cli_json_string(stdout, m[i].name);
      fputc(':', stdout);
      cli_json_number(stdout, m[i].value);
    } else {
      printf("%s ", m[i].name);
      put_number(stdout, m[i].value, 6);
      fputc('\n', stdout);
    }
  }
  if (c->json) cli_print_tasks_json(c->session);
  if (c->json) cli_print_diagnostics(c);
  if (c->json) fputs("}\n", stdout);
}

void cli_print_step(const struct cli *c, int64_t step, const struct dgc_metric *m, int count, int64_t rows) {
  if (c->json)
    printf("{\"step\":%lld,\"rows\":%lld", (long long)step, (long long)rows);
  else
    printf("step %lld", (long long)step);
  for (int i = 0; i < count; i++) {
    if (c->json) {
      putchar(',');
      cli_json_string(stdout, m[i].name);
      putchar(':');
      cli_json_number(stdout, m[i].value);
    } else {
      printf("  %s ", m[i].name);
      put_number(stdout, m[i].value, 6);
    }
  }
  fputs(c->json ? "}\n" : "\n", stdout);
  fflush(stdout); /* who reads it waits for the training */
}

static void json_field(const char *name, double value) {
  printf(",\"%s\":", name);
  cli_json_number(stdout, value);
}

static void json_text(const char *before, const char *text) {
  fputs(before, stdout);
  if (text)
    cli_json_string(stdout, text);
  else
    fputs("null", stdout);
}

static void profile_json(const struct dgc_bench *b) {
  fputs(",\"lines\":[", stdout);
  for (int i = 0; i < b->nlines; i++) {
    const struct dgc_bench_line *l = &b->lines[i];
    json_text(i ? ",{\"what\":" : "{\"what\":", l->what);
    json_text(",\"how\":", l->how);
    json_text(",\"where\":", l->where);
    printf(",\"depth\":%d,\"count\":%d", l->depth, l->count);
    json_field("ms", l->seconds * 1e3);
    json_field("gflop", l->flops * 1e-9);
    json_field("gb", l->traffic * 1e-9);
    json_field("threads_ms", b->line_threads[i] * 1e3);
    json_field("roof_ms", l->roof * 1e3);
    fputc('}', stdout);
  }
  fputc(']', stdout);
  if (!b->alone_seconds) return;
  json_field("alone_ms", b->alone_seconds * 1e3);
  fputs(",\"places\":[", stdout);
  for (int i = 0; i < b->nplaces; i++) {
    json_text(i ? ",{\"where\":" : "{\"where\":", b->places[i].where);
    json_field("ms", b->places[i].seconds * 1e3);
    json_field("alone_ms", b->places[i].alone * 1e3);
    fputc('}', stdout);
  }
  fputc(']', stdout);
}

static void bench_json(const struct dgc_bench *b) {
  printf("{\"batch\":%lld,\"towers\":%d,\"threads\":%d,\"steps\":%d,\"kernels\":%d,\"plan_steps\":%d,"
         "\"signals\":%d",
         (long long)b->batch, b->towers, b->threads, b->steps, b->kernels, b->plan_steps, b->signals);
  const struct {
    const char *name;
    double value;
  } numbers[] = {
      {"compile_ms", b->compile_seconds * 1e3},
      {"step_ms", b->step_seconds * 1e3},
      {"gflop", b->flops * 1e-9},
      {"gflops", b->flops / b->step_seconds * 1e-9},
      {"peak_gflops", b->peak * 1e-9},
      {"bf16_peak_gflops", b->bf16_peak * 1e-9},
      {"bandwidth_gb", b->bandwidth * 1e-9},
      {"share_of_peak", b->flops / b->step_seconds / b->peak},
      {"roof_ms", b->roof * 1e3},
      {"outside_kernels", b->outside},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    printf(",\"%s\":", numbers[i].name);
    cli_json_number(stdout, numbers[i].value);
  }
  fputs(",\"devices\":[", stdout);
  for (int i = 0; i < b->ndevices; i++) {
    printf("%s{\"name\":", i ? "," : "");
    cli_json_string(stdout, b->devices[i].name);
    printf(",\"simulated\":%s,\"arena\":%lld,\"high_water\":%lld,\"busy\":",
           b->devices[i].simulated ? "true" : "false", (long long)b->devices[i].arena,
           (long long)b->devices[i].high_water);
    cli_json_number(stdout, b->devices[i].busy);
    fputc('}', stdout);
  }
  fputs("],\"inputs\":[", stdout);
  for (int i = 0; i < b->ninputs; i++) {
    const struct dgc_bench_input *in = &b->inputs[i];
    fputs(i ? ",{\"name\":" : "{\"name\":", stdout);
    cli_json_string(stdout, in->name);
    printf(",\"given\":%s", in->given ? "true" : "false");
    if (!in->given) {
      printf(",\"low\":%lld,\"high\":%lld,\"why\":", (long long)in->low, (long long)in->high);
      cli_json_string(stdout, in->why);
    }
    fputc('}', stdout);
  }
  fputc(']', stdout);
  if (b->nlines) profile_json(b);
  fputs("}\n", stdout);
}

static const char *plural(int n) { return n == 1 ? "" : "s"; }

/* A rate in billions; what does nothing of the kind has none. */
static void print_rate(double amount, double seconds) {
  if (amount > 0 && seconds > 0)
    printf(" %9.2f", amount / seconds * 1e-9);
  else
    fputs("         -", stdout);
}

/* What took less than others is summed up where there is much of it. */
static void print_profile(const struct dgc_bench *b) {
  enum { SHOWN = 30 };
  double all = 0, rest = 0;
  bool shared = b->threads > b->ndevices; /* several threads may be at a step */
  for (int i = 0; i < b->nlines; i++) all += b->lines[i].depth ? 0 : b->lines[i].seconds;
  printf("\n        ms       %%   times%s   GFLOP/s      GB/s  of roof  what\n", shared ? "  threads" : "");
  for (int i = 0; i < b->nlines; i++) {
    const struct dgc_bench_line *l = &b->lines[i];
    if (i >= SHOWN && l->depth == 0) rest += l->seconds;
    if (i >= SHOWN) continue;
    printf("%10.4f %7.1f %7d", l->seconds * 1e3, l->seconds / all * 100, l->count);
    if (shared) printf(" %8.2f", b->line_threads[i] / l->seconds);
    print_rate(l->flops, l->seconds);
    print_rate(l->traffic, l->seconds);
    if (l->roof > 0 && b->line_threads[i] > 0)
      printf("  %5.0f %%", l->roof / b->line_threads[i] * 100);
    else
      fputs("        -", stdout);
    printf("  %*s%s %s%s%s\n", 2 * l->depth, "", l->how, l->what, l->where ? ", " : "",
           l->where ? l->where : "");
  }
  if (b->nlines > SHOWN)
    printf("%10.4f %7.1f          %d more, which --json lists\n", rest * 1e3, rest / all * 100,
           b->nlines - SHOWN);
  printf("of roof: of what one thread reaches at the peak, or at the memory's speed, which caches exceed\n");
}

/* Why several devices or threads are not as many times as fast. */
static void print_places(const struct dgc_bench *b) {
  enum { SHOWN = 5 };
  double alone = 0, here = 0;
  for (int i = 0; i < b->nplaces; i++) here += b->places[i].seconds, alone += b->places[i].alone;
  if (b->ndevices == 1)
    printf("\n%d threads take", b->threads);
  else
    printf("\n%d devices on %d thread%s take", b->ndevices, b->threads, plural(b->threads));
  printf(" %.4f ms, one alone takes %.4f ms: %.2f times as fast.\n", b->step_seconds * 1e3,
         b->alone_seconds * 1e3, b->alone_seconds / b->step_seconds);
  printf("With a look at each kernel it is %.4f ms, and %.4f ms alone. A thread's share of that is %.4f ms; "
         "it takes\n"
         "longer for:\n",
         here * 1e3, alone * 1e3, alone / b->threads * 1e3);
  for (int i = 0; i < b->nplaces && i < SHOWN; i++) {
    const struct dgc_bench_place *p = &b->places[i];
    double share = p->alone / b->threads;
    if (p->seconds <= share) break;
    printf("%10.4f ms  %s, %.4f ms instead of %.4f\n", (p->seconds - share) * 1e3,
           p->where ? p->where : "what has no line", p->seconds * 1e3, share * 1e3);
  }
}

void cli_print_bench(const struct cli *c, const struct dgc_bench *b) {
  if (c->json) {
    bench_json(b);
    return;
  }
  double rate = b->flops / b->step_seconds;
  printf("batch %lld, %d tower%s on %d device%s, %d thread%s\n", (long long)b->batch, b->towers,
         plural(b->towers), b->ndevices, plural(b->ndevices), b->threads, plural(b->threads));
  for (int i = 0; i < b->ninputs; i++) {
    const struct dgc_bench_input *in = &b->inputs[i];
    if (in->given)
      printf("input %-11s from the data\n", in->name);
    else
      printf("input %-11s made up, %lld to %lld: %s\n", in->name, (long long)in->low, (long long)in->high,
             in->why);
  }
  printf("compile          %10.2f ms   %d kernels\n", b->compile_seconds * 1e3, b->kernels);
  printf("step             %10.4f ms   median of %d; %d plan steps, %d signals\n", b->step_seconds * 1e3,
         b->steps, b->plan_steps, b->signals);
  printf("work             %10.2f GFLOP/s   %.4f GFLOP a step\n", rate * 1e-9, b->flops * 1e-9);
  printf("machine's peak   %10.2f GFLOP/s   f32, %d thread%s\n", b->peak * 1e-9, b->threads,
         plural(b->threads));
  if (b->bf16_peak > 0)
    printf("                 %10.2f GFLOP/s   bf16 added up in f32, %d thread%s\n", b->bf16_peak * 1e-9,
           b->threads, plural(b->threads));
  printf("machine's memory %10.2f GB/s      read and written, %d thread%s\n", b->bandwidth * 1e-9, b->threads,
         plural(b->threads));
  if (isnan(b->outside)) return; /* a plugin's own */
  printf("share of peak    %10.1f %%\n", rate / b->peak * 100);
  printf("share of roof    %10.1f %%    each part's work at the peak, or bytes from memory\n",
         b->roof / b->step_seconds * 100);
  printf("outside kernels  %10.1f %%    of the threads' time: executor and waiting\n", b->outside * 100);
  for (int i = 0; i < b->ndevices; i++)
    printf("arena of %-8s%10lld bytes   high-water mark %lld, busy %.1f %%%s\n", b->devices[i].name,
           (long long)b->devices[i].arena, (long long)b->devices[i].high_water, b->devices[i].busy * 100,
           b->devices[i].simulated ? ", simulated" : "");
  if (b->nlines) print_profile(b);
  if (b->alone_seconds > 0) print_places(b);
}
