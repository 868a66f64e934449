/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, reads and applies profiles. */
#include "common/lane/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/lane/lane_file.h"
#include "common/model/number.h"

const char *profile_placement_name(enum profile_placement placement)
{
    static const char *const names[PROFILE_PLACEMENTS] = {"cache", "node", "host"};
    return placement < PROFILE_PLACEMENTS ? names[placement] : "unknown";
}

/* --- where it is ------------------------------------------------------------------------------ */

void profile_path(enum profile_folder folder, const char *site_folder,
                  const struct fingerprint *machine, char path[PROFILE_PATH_CHARS])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    uint64_t number = fingerprint_number(machine);
    int length = 0;
    if (folder == PROFILE_OF_SITE && site_folder && site_folder[0] == '/')
        length = snprintf(path, PROFILE_PATH_CHARS, "%s/profile-%016" PRIx64, site_folder, number);
    else if (folder == PROFILE_OF_USER && cache && cache[0] == '/')
        length =
            snprintf(path, PROFILE_PATH_CHARS, "%s/multilane/profile-%016" PRIx64, cache, number);
    else if (folder == PROFILE_OF_USER && home && home[0] == '/')
        length = snprintf(path, PROFILE_PATH_CHARS, "%s/.cache/multilane/profile-%016" PRIx64, home,
                          number);
    if (length <= 0 || length >= PROFILE_PATH_CHARS)
        path[0] = '\0';
}

/* --- reading ---------------------------------------------------------------------------------- */

enum profile_state profile_read(const char *path, const struct fingerprint *here, bool is_own,
                                struct lane_file *file, struct error_text *error)
{
    struct error_text why;
    size_t length;
    bool absent;
    char *text = whole_file_read(path, LANE_FILE_BYTES_MAX, is_own ? WHOLE_FILE_OWN : WHOLE_FILE,
                                 &length, &absent, error);
    if (!text)
        return absent ? PROFILE_ABSENT : PROFILE_REFUSED;
    bool good = lane_file_parse(path, text, length, file, NULL, NULL, error);
    free(text);
    if (good && !file->has_profile)
        good = fail_with(error,
                         "%.120s: it has no section [profile], so multilane-calibrate did not "
                         "write it",
                         path);
    if (good && !fingerprint_matches(&file->profile.machine, here, &why))
        good = fail_with(error, "%.80s: %.230s", path, why.text);
    return good ? PROFILE_READ : PROFILE_REFUSED;
}

/* --- using it --------------------------------------------------------------------------------- */

static const struct model_lane *find_lane(const struct lane_file *profile, const char *name,
                                          enum profile_placement placement)
{
    return lane_file_find(profile, words_of("%s@%s", name, profile_placement_name(placement)).text);
}

/* At this placement, or at the other one inside a node, which resembles it. */
static const struct model_lane *find_nearest(const struct lane_file *profile, const char *name,
                                             enum profile_placement placement)
{
    const struct model_lane *found = find_lane(profile, name, placement);
    if (found || placement == PROFILE_HOST)
        return found;
    return find_lane(profile, name, placement == PROFILE_CACHE ? PROFILE_NODE : PROFILE_CACHE);
}

bool profile_apply(const struct lane_file *profile, enum profile_placement placement,
                   struct model_lane *lane)
{
    const struct model_lane *measured = find_nearest(profile, lane->name, placement);
    if (!measured)
        return false;
    for (int way = 0; way < MODEL_WAYS; way++)
        if (measured->cost[way].range_count &&
            (lane->cost[way].range_count || way == MODEL_BY_BOTH)) {
            lane->cost[way] = measured->cost[way];
            model_lane_set_source(lane, (enum model_way) way, MODEL_ATTRIBUTES,
                                  MODEL_SOURCE_PROFILE);
        }
    lane->use = measured->use; /* both, unless someone has written another one */
    if (measured->reg_cached_s >= 0)
        lane->reg_cached_s = measured->reg_cached_s;
    /* Sends that were measured without the choice have the copy in them. */
    if (measured->cost[MODEL_BY_SEND].range_count && lane->copy_growth_s_byte > 0)
        lane->copy_growth_s_byte = measured->copy_growth_s_byte;
    return true;
}

double profile_together(const struct lane_file *profile, enum profile_placement placement)
{
    const char *name = profile_placement_name(placement);
    for (uint32_t i = 0; i < profile->group_count; i++)
        if (strcmp(profile->group_names[i], name) == 0)
            return profile->groups[i].bandwidth_bytes_s;
    return 0;
}

uint32_t profile_group(const struct model_group *group, enum profile_placement placement)
{
    return placement != PROFILE_HOST || group->bandwidth_bytes_s > 0 ? PROFILE_GROUP : 0;
}

uint32_t profile_lanes(const struct lane_file *profile, enum profile_placement placement,
                       struct model_lane lanes[MODEL_LANES_MAX], struct model_group *group)
{
    uint32_t count = 0;
    *group = (struct model_group){PROFILE_GROUP, profile_together(profile, placement)};
    for (uint32_t i = 0; i < profile->lane_count; i++) {
        const char *name = profile->lanes[i].name, *at = strrchr(name, '@');
        if (!at || strcmp(at + 1, profile_placement_name(placement)) != 0)
            continue;
        lanes[count] = profile->lanes[i];
        lanes[count].name[at - name] = '\0';
        lanes[count].group = profile_group(group, placement);
        count++;
    }
    return count;
}
