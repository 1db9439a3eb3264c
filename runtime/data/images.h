/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are images: a folder of PNG and JPEG files, or one such file. */
#ifndef DGC_RUNTIME_DATA_IMAGES_H
#define DGC_RUNTIME_DATA_IMAGES_H

#include "runtime/data/image.h"
#include "runtime/data/reader.h"

/* The files of a piece, and what their rows are. */
struct images {
  const char *const *paths;
  int64_t count;
  const struct file_roots *roots;
  int64_t height, width;
  int channels;
  bool resize; /* files have any size, and are scaled; else all have this one */
};

/* "photos/" and "photos/:resize": a row for each PNG or JPEG file below the folder, in the order of the bytes of their
 * paths. "photos/:label": i32, the number of the first folder below it that the file lies in, in the order of the bytes
 * of all their names, from 0 on. Headers of all images are looked at. */
bool read_images_folder(struct reader *r, const struct data_spec *spec);
/* The same of one file, "cat.png" or "cat.png:resize". */
bool read_images_file(struct reader *r, const struct data_spec *spec);
/* Decodes `count` files, from `first` on, as rows of type `to`. */
bool images_read(const struct column_piece *p, enum dtype to, int64_t first, int64_t count, uint8_t *out,
                 struct misfit *bad);

#endif
