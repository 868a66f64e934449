/* SPDX-License-Identifier: BSD-3-Clause */
/* What libraries use of other libraries, exchanged for functions and variables of ours. */
#ifndef MULTILANE_COMPAT_LIBRARY_CALLS_H
#define MULTILANE_COMPAT_LIBRARY_CALLS_H

#include <stdbool.h>

typedef void library_function(void);

/* From now on each loaded library whose file name begins with `file` calls `function` where it
 * called the one of that name: its entry is changed in the table by which the dynamic linker
 * connects it with others. Calls by other libraries stay as they are. False: none has such an entry
 * (both are in one library, or in the program), and nothing has changed. While no other thread
 * calls them. */
bool library_call_set(const char *file, const char *name, library_function *function);
/* The same for a variable. */
bool library_variable_set(const char *file, const char *name, const void *variable);

#endif
