/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as the tests take them that go over all of them: without most of the layers that are alike. */
#ifndef TESTS_SUPPORT_SMALL_H
#define TESTS_SUPPORT_SMALL_H

/* "groups=2", ...: values for the parameters of the model in this file, and how many there are. */
const char *const *small_sets(const char *path, int *count);

#endif
