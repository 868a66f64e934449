/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a job asked for a component: installed components do nothing in jobs that did not. */
#ifndef MULTILANE_COMPAT_NAMED_H
#define MULTILANE_COMPAT_NAMED_H

#include <stdbool.h>

/* True if the selection of `framework` names `component`, or, for a BTL, if the job's PML is
 * multilane and the selection does not leave the BTL out. */
bool named_is_wanted(const char *framework, const char *component);

/* The same for a BTL of ours, in its init; says so in Open MPI's verbose output where it is not. */
bool named_btl_is_wanted(const char *component);

/* Whether the selection of BTLs lets this one in, ours or not, so that a lane of it can be
 * expected. */
bool named_btl_is_listed(const char *component);

/* Whether the selection of BTLs names this one, and does not only not leave it out. */
bool named_btl_is_asked_for(const char *component);

/* The rule itself: `selection` and `pml` are what the user gave for the two, NULL for nothing. */
bool named_in_selection(const char *selection, const char *component);
bool named_excluded(const char *selection, const char *component);

#endif
