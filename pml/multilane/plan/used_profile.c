/* SPDX-License-Identifier: BSD-3-Clause */
/* The profile in use. Every process reads the file itself: a few KiB, in the page cache after
 * the first read; passing it on would cost more. */
#include "plan/used_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compat/version.h"
#include "base/parameters.h"

static struct {
    bool looked;
    struct lane_file *profile; /* null: none in use */
    char story[PROFILE_PATH_CHARS + 128];
    struct model_error complaint;
} measured;

/* Takes the file, if it is for this machine; else sets the story to why not. */
static enum profile_state take(const char *path, const struct fingerprint *here)
{
    struct model_error why = {"no memory for a profile"};
    struct lane_file *file = calloc(1, sizeof(*file));
    enum profile_state state = file ? profile_read(path, here, file, &why) : PROFILE_REFUSED;
    if (state == PROFILE_READ) {
        measured.profile = file;
        snprintf(measured.story, sizeof(measured.story), "profile %s of %s", path,
                 file->profile.made);
        return state;
    }
    free(file);
    snprintf(measured.story, sizeof(measured.story), "no profile: %s", why.text);
    if (state == PROFILE_REFUSED)
        measured.complaint = why;
    return state;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0 || errno != ENOENT;
}

static void look_around(const struct fingerprint *here)
{
    char path[PROFILE_PATH_CHARS];
    enum profile_state state = PROFILE_ABSENT;
    for (int i = 0; i < PROFILE_FOLDERS && state == PROFILE_ABSENT; i++) {
        profile_path((enum profile_folder) i, MULTILANE_SITE_DIR, here, path);
        if (path[0] && is_there(path))
            state = take(path, here);
    }
    if (state == PROFILE_ABSENT)
        snprintf(measured.story, sizeof(measured.story),
                 "no profile of this machine; mpirun -n 2 multilane-calibrate makes one");
}

void used_profile_load(void)
{
    struct fingerprint here;
    const char *name = parameters.profile;
    if (measured.looked)
        return;
    measured.looked = true;
    fingerprint_take(version_built, &here);
    if (!name || strcmp(name, "auto") == 0) {
        look_around(&here);
    } else if (strcmp(name, "none") == 0) {
        snprintf(measured.story, sizeof(measured.story),
                 "no profile: pml_multilane_profile is none");
    } else if (take(name, &here) == PROFILE_ABSENT) { /* a user that names a file wants it */
        model_fail(&measured.complaint, "pml_multilane_profile: %.200s: there is no such file",
                   name);
    }
}

const char *used_profile_story(void)
{
    return measured.story;
}

const char *used_profile_complaint(void)
{
    return measured.complaint.text[0] ? measured.complaint.text : NULL;
}

const struct lane_file *used_profile(void)
{
    return measured.profile;
}

bool used_profile_apply(enum profile_placement placement, struct model_lane *lane)
{
    return measured.profile && profile_apply(measured.profile, placement, lane);
}

void used_profile_fini(void)
{
    free(measured.profile);
    memset(&measured, 0, sizeof(measured));
}
