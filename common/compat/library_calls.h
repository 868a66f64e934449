/* SPDX-License-Identifier: BSD-3-Clause */
/* What libraries use of other libraries, exchanged for functions and variables of ours. */
#ifndef MULTILANE_COMPAT_LIBRARY_CALLS_H
#define MULTILANE_COMPAT_LIBRARY_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on each loaded library whose file name begins with `file` uses what is at `address`
 * where it used the function or variable of that name: its entry is changed in the table by which
 * the dynamic linker connects it with others. What other libraries use stays as it is. False: none
 * has such an entry (both are in one library, or in the program), and nothing has changed. While no
 * other thread uses them. */
bool library_entry_set(const char *file, const char *name, uintptr_t address);

#endif
