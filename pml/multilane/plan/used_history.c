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
    struct startup_costs start; /* that this job adds */
    bool has_start, is_crowded;
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
    uint32_t starts = used.before.starts[0].count + used.before.starts[1].count;
    if (starts || used.before.way_count)
        snprintf(used.story, sizeof(used.story), "%u start%s and %u time%s of earlier jobs: %s",
                 starts, number_plural(starts), used.before.way_count,
                 number_plural(used.before.way_count), used.path);
}

const struct history *used_history(void)
{
    return &used.before;
}

void used_history_add_start(bool is_crowded, const struct startup_costs *costs)
{
    history_add_start(&used.before.starts[is_crowded], costs);
    used.start = *costs;
    used.is_crowded = is_crowded;
    used.has_start = true;
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
    if (used.path[0] && multilane.me.vpid == 0 && (used.has_start || used.added.way_count)) {
        history_read(used.path, &now);
        if (used.has_start)
            history_add_start(&now.starts[used.is_crowded], &used.start);
        for (uint32_t i = 0; i < used.added.way_count; i++)
            history_add_way(&now, &used.added.ways[i]);
        (void) history_write(used.path, &now); /* else the next job begins as this one did */
        history_free(&now);
    }
    history_free(&used.before);
    history_free(&used.added);
    memset(&used, 0, sizeof(used));
}
