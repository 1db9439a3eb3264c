/* SPDX-License-Identifier: Apache-2.0 */
/* The files of this folder as text. A .cu is, behind leaf.cuh, a program of its own with one kernel of the file's name,
 * which takes pointers to operands and result, then a struct of numbers by value. It is compiled for one type of
 * elements, TYPE, and the one in which they are added, SUM: definitions of these go in front. It does its work with any
 * number of blocks of 256 threads. */
#ifndef DGC_KERNELS_CUDA_TEXTS_H
#define DGC_KERNELS_CUDA_TEXTS_H

#include "base/embed.h"

extern const struct embedded kernels_cuda[];

#endif
