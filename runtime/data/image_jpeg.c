/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes JPEG by means of libjpeg-turbo: nothing else uses it. */
#include "runtime/data/image.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
  SCANS = 100,      /* a progressive file has some ten; each further one takes the time of a whole image */
  MEMORY = 1 << 29, /* for the coefficients of a progressive one */
};

struct jpeg_decoder {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf back;
  char *cause;
};

static void stop(j_common_ptr jpeg) {
  struct jpeg_decoder *d = jpeg->client_data;
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  snprintf(d->cause, IMAGE_CAUSE, "%.150s", text);
  longjmp(d->back, 1);
}

/* Of what is damaged libjpeg makes grey, and warns. Bytes that it skips between markers are common, and do no harm. */
static void warn(j_common_ptr jpeg, int level) {
  int code = jpeg->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR)
    stop(jpeg);
}

static void say_nothing(j_common_ptr jpeg) { (void)jpeg; }

static void limit_scans(j_common_ptr jpeg) {
  struct jpeg_decoder *d = jpeg->client_data;
  if (d->jpeg.input_scan_number <= SCANS) return;
  snprintf(d->cause, IMAGE_CAUSE, "it has more than %d scans", SCANS);
  longjmp(d->back, 1);
}

static void set_up(struct jpeg_decoder *d, const struct content *b) {
  d->jpeg.err = jpeg_std_error(&d->errors);
  d->jpeg.client_data = d;
  d->errors.error_exit = stop;
  d->errors.emit_message = warn;
  d->errors.output_message = say_nothing;
  d->progress.progress_monitor = limit_scans;
  jpeg_create_decompress(&d->jpeg); /* clears all but err and client_data */
  d->jpeg.progress = &d->progress;
  d->jpeg.mem->max_memory_to_use = MEMORY;
  jpeg_mem_src(&d->jpeg, b->bytes, (unsigned long)b->len);
}

static bool read_rows(struct jpeg_decoder *d, const struct image *expected, uint8_t *out) {
  struct jpeg_decompress_struct *j = &d->jpeg;
  jpeg_read_header(j, TRUE);
  int64_t height = expected->turn < 5 ? expected->height : expected->width;
  int64_t width = expected->turn < 5 ? expected->width : expected->height;
  if (j->image_height != height || j->image_width != width) {
    snprintf(d->cause, IMAGE_CAUSE, "its header is damaged");
    return false;
  }
  j->out_color_space = JCS_EXT_RGBA;
  j->dct_method = JDCT_ISLOW; /* the exact one: the same bits on every machine */
  jpeg_start_decompress(j);
  while (j->output_scanline < j->output_height) {
    JSAMPROW row = out + (int64_t)j->output_scanline * width * 4;
    jpeg_read_scanlines(j, &row, 1);
  }
  jpeg_finish_decompress(j);
  return true;
}

bool jpeg_decode(const struct content *b, const struct image *expected, uint8_t *out,
                 char cause[IMAGE_CAUSE]) {
  struct jpeg_decoder d = {.cause = cause};
  volatile bool good = false;
  if (setjmp(d.back) == 0) {
    set_up(&d, b);
    good = read_rows(&d, expected, out);
  }
  jpeg_destroy_decompress(&d.jpeg);
  return good;
}
