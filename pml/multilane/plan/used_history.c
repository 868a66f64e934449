/* SPDX-License-Identifier: BSD-3-Clause */
/* What earlier jobs have learned, and what this one adds. */
#include "plan/used_history.h"

#include <stdio.h>
#include <string.h>

#include "base/multilane.h"
#include "base/parameters.h"
#include "common/compat/version.h"
#include "common/model/number.h"

static struct {
    char path[PROFILE_PATH_CHARS]; /* empty: none is kept */
    char story[PROFILE_PATH_CHARS + 64];
    struct history before, added;
} used;

void used_history_load(void)
{
    struct fingerprint here;
    snprintf(used.story, sizeof(used.story), "nothing from earlier jobs");
    if (!parameters.learn || (parameters.profile && strcmp(parameters.profile, "none") == 0))
        return;
    fingerprint_take(version_built, &here);
    history_path(&here, used.path);
    history_read(used.path, &used.before);
    if (used.before.start_count || used.before.way_count)
        snprintf(used.story, sizeof(used.story), "%u start%s and %u time%s of earlier jobs: %s",
                 used.before.start_count, number_plural(used.before.start_count),
                 used.before.way_count, number_plural(used.before.way_count), used.path);
}

const struct history *used_history(void)
{
    return &used.before;
}

void used_history_add_start(const struct history_start *start)
{
    history_add_start(&used.before, start);
    history_add_start(&used.added, start);
}

struct history *used_history_added(void)
{
    return &used.added;
}

const char *used_history_story(void)
{
    return used.story;
}

void used_history_end(void)
{
    struct history now;
    if (used.path[0] && multilane.me.vpid == 0 &&
        (used.added.start_count || used.added.way_count)) {
        history_read(used.path, &now);
        for (uint32_t i = 0; i < used.added.start_count; i++)
            history_add_start(&now, &used.added.starts[i]);
        for (uint32_t i = 0; i < used.added.way_count; i++)
            history_add_way(&now, &used.added.ways[i]);
        (void) history_write(used.path, &now); /* else the next job begins as this one did */
        history_free(&now);
    }
    history_free(&used.before);
    history_free(&used.added);
    memset(&used, 0, sizeof(used));
}
