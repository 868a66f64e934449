/* SPDX-License-Identifier: BSD-3-Clause */
/* Which libraries this process has loaded. */
#ifndef COMMON_MEMORY_LOADED_H
#define COMMON_MEMORY_LOADED_H

#include <stdbool.h>

/* One whose file's name begins so. Unlike dlopen, which looks through all folders of libraries,
 * with a hundred system calls, before it says that one is not loaded. */
bool loaded_library(const char *file);

#endif
