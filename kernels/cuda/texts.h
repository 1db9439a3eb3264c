/* The .cu files of this folder as text. Each is a program of its own, with one kernel of the file's name, and is
 * compiled for types that it names TYPE, SUM ...: definitions of these go in front. */
#ifndef DGC_KERNELS_CUDA_TEXTS_H
#define DGC_KERNELS_CUDA_TEXTS_H

#include "base/embed.h"

extern const struct embedded kernels_cuda[];

#endif
