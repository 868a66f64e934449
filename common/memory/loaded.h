/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out which libraries this process has already. */
#ifndef COMMON_MEMORY_LOADED_H
#define COMMON_MEMORY_LOADED_H

/* The path of the one whose file name begins so; null: there is none. Looks at no file, where
 * dlopen with RTLD_NOLOAD looks for the library in each folder of the search path. */
const char *library_loaded(const char *file);

#endif
