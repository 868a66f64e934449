/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured of this machine's lanes: by multilane-calibrate, in a profile, or else by this
 * process when it met its first peer. */
#ifndef MULTILANE_USED_PROFILE_H
#define MULTILANE_USED_PROFILE_H

#include "common/lane/profile.h"

/* Looks for the profile that pml_multilane_profile means. Says nothing: it runs in jobs that do not
 * use Multilane too. */
void used_profile_load(void);

/* Where the profile is and of when, or why there is none: for reports, one line. */
const char *used_profile_story(void);

/* The complaint about a profile that was found and does not fit; null: there is none. */
const char *used_profile_complaint(void);

/* The profile in use, or null. */
const struct lane_file *used_profile(void);

/* Replaces what was measured in `lane`, and names the source. */
void used_profile_apply(enum profile_placement placement, struct model_lane *lane);

void used_profile_fini(void);

#endif
