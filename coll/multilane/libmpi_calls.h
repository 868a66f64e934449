/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that libmpi makes into Open MPI's other libraries, handed to functions of ours. */
#ifndef COLL_MULTILANE_LIBMPI_CALLS_H
#define COLL_MULTILANE_LIBMPI_CALLS_H

#include <stdbool.h>

/* From now on libmpi calls `function` where it called the function of that name: the table is
 * changed by which the dynamic linker connects libmpi with other libraries. Calls by other
 * libraries stay as they are, and so does the function of that name. False: libmpi has no such
 * entry (both are one library, or one program), and nothing has changed. Before other threads make
 * calls of MPI. */
bool libmpi_call_set(const char *name, void (*function)(void));

#endif
