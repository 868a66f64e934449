/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, reads, writes and applies profiles. */
#include "common/lane/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* All of a regular file; null with a sentence. Never waits, as opening a pipe would. */
static char *read_text(const char *path, size_t *length, bool *absent, struct model_error *error)
{
    struct stat status;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *absent = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    *length = 0;
    if (fd < 0 || fstat(fd, &status) != 0)
        model_fail(error, "%.120s: cannot be read: %s", path, strerror(errno));
    else if (!S_ISREG(status.st_mode))
        model_fail(error, "%.120s: it is not a file", path);
    else if (status.st_size > (off_t) LANE_FILE_BYTES_MAX)
        model_fail(error, "%.120s: it is larger than 1 MiB, so it is no profile", path);
    else if (!(text = malloc(LANE_FILE_BYTES_MAX)))
        model_fail(error, "%.120s: no memory to read it", path);
    for (ssize_t got = 1; text && got > 0 && *length < LANE_FILE_BYTES_MAX;) {
        got = read(fd, text + *length, LANE_FILE_BYTES_MAX - *length);
        if (got > 0)
            *length += (size_t) got;
        if (got < 0) {
            model_fail(error, "%.120s: cannot be read: %s", path, strerror(errno));
            free(text);
            text = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return text;
}

enum profile_state profile_read(const char *path, const struct fingerprint *here,
                                struct lane_file *file, struct model_error *error)
{
    struct model_error why;
    size_t length;
    bool absent;
    char *text = read_text(path, &length, &absent, error);
    if (!text)
        return absent ? PROFILE_ABSENT : PROFILE_REFUSED;
    bool good = lane_file_parse(path, text, length, file, error);
    free(text);
    if (good && !file->has_profile)
        good = model_fail(error,
                          "%.120s: it has no section [profile], so multilane-calibrate did not "
                          "write it",
                          path);
    if (good && !fingerprint_matches(&file->profile.machine, here, &why))
        good = model_fail(error, "%.80s: %.230s", path, why.text);
    return good ? PROFILE_READ : PROFILE_REFUSED;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void print_real(FILE *out, const char *key, double value)
{
    char text[NUMBER_REAL_CHARS];
    /* The reader knows no infinite bandwidth; this one is the largest it takes. */
    fprintf(out, "%s = %s\n", key,
            number_print_real(isinf(value) ? LANE_FILE_BANDWIDTH_MOST : value, text));
}

static void print_size(FILE *out, const char *key, uint64_t value)
{
    char text[NUMBER_SIZE_CHARS];
    if (value)
        fprintf(out, "%s = %s\n", key, number_print_size(value, text));
}

static bool registers(const struct model_lane *lane)
{
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++)
            if (lane->cost[way].ranges[i].reg_cost_s > 0 ||
                lane->cost[way].ranges[i].reg_growth_s_byte > 0)
                return true;
    return false;
}

/* Every value, also 0: what a range does not say it would take over from the lane. */
static void print_way(FILE *out, enum model_way way, const struct model_lane_range *range,
                      bool with_registration)
{
    const double values[MODEL_ATTRIBUTES] = {[MODEL_LATENCY] = range->latency_s,
                                             [MODEL_BANDWIDTH] = range->bandwidth_bytes_s,
                                             [MODEL_OVERHEAD_SEND] = range->overhead_send_s,
                                             [MODEL_OVERHEAD_RECEIVE] = range->overhead_receive_s,
                                             [MODEL_REG_COST] = range->reg_cost_s,
                                             [MODEL_REG_GROWTH] = range->reg_growth_s_byte};
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        char key[48];
        snprintf(key, sizeof(key), "%s_%s", model_way_name(way),
                 model_attribute_name((enum model_attribute) i));
        if (with_registration || (i != MODEL_REG_COST && i != MODEL_REG_GROWTH))
            print_real(out, key, values[i]);
    }
}

static void print_ways(FILE *out, const struct model_lane *lane, uint64_t bytes)
{
    bool with_registration = registers(lane);
    for (int way = 0; way < MODEL_WAYS; way++) {
        const struct model_lane_range *range =
            model_lane_range_at(lane, (enum model_way) way, bytes);
        if (range)
            print_way(out, (enum model_way) way, range, with_registration);
    }
}

/* The next end of a range of any way, from `bytes` on. */
static uint64_t next_end(const struct model_lane *lane, uint64_t bytes)
{
    uint64_t end = UINT64_MAX;
    for (int way = 0; way < MODEL_WAYS; way++) {
        const struct model_lane_range *range =
            model_lane_range_at(lane, (enum model_way) way, bytes);
        if (range && range->largest_bytes < end)
            end = range->largest_bytes;
    }
    return end;
}

static void print_bits(FILE *out, const char *key, uint32_t bits, int count,
                       const char *(*name_of)(uint32_t bit))
{
    fprintf(out, "%s =", key);
    for (int i = 0; i < count; i++)
        if (bits >> i & 1)
            fprintf(out, " %s", name_of(UINT32_C(1) << i));
    fputc('\n', out);
}

static const char *ability_name(uint32_t bit)
{
    return model_ability_name((enum model_ability) bit);
}

static const char *memory_name(uint32_t bit)
{
    return model_memory_name((enum model_memory) bit);
}

static void print_lane(FILE *out, const struct lane_file *file, const struct model_lane *lane)
{
    char size[NUMBER_SIZE_CHARS];
    fprintf(out, "\n[lane %s]\n", lane->name);
    print_bits(out, "can", lane->can, MODEL_ABILITIES, ability_name);
    print_bits(out, "reach", lane->reach, MODEL_MEMORIES, memory_name);
    if (lane->group)
        fprintf(out, "group = %s\n", file->group_names[lane->group - 1].name);
    print_size(out, "short_max", lane->short_max_bytes);
    print_size(out, "copied_max", lane->copied_max_bytes);
    fprintf(out, "zcopied_max = %s\n", number_print_size(lane->zcopied_max_bytes, size));
    print_size(out, "piece_min", lane->piece_min_bytes);
    if (lane->reg_cached_s >= 0)
        print_real(out, "reg_cached", lane->reg_cached_s);
    print_ways(out, lane, UINT64_MAX);
    for (uint64_t end = next_end(lane, 1); end != UINT64_MAX; end = next_end(lane, end + 1)) {
        fprintf(out, "[range %s %s]\n", lane->name, number_print_size(end, size));
        print_ways(out, lane, end);
    }
}

static void print_line(FILE *out, const char *key, const struct cost_line *line)
{
    char fixed[NUMBER_REAL_CHARS], growth[NUMBER_REAL_CHARS];
    fprintf(out, "%s = %s %s\n", key, number_print_real(line->fixed_s, fixed),
            number_print_real(line->growth_s_byte, growth));
}

static void print_cluster(FILE *out, const struct cluster_model *model, uint32_t processes)
{
    char key[32];
    fprintf(out, "\n[cluster]\nprocesses = %u\n", (unsigned) processes);
    print_size(out, "packet", model->packet_bytes);
    print_size(out, "buffer", model->buffer_bytes);
    print_line(out, "send_overhead", &model->send_overhead);
    print_line(out, "send_gap", &model->send_gap);
    print_line(out, "receive_gap", &model->receive_gap);
    print_line(out, "receive_overhead", &model->receive_overhead);
    print_line(out, "user_overhead", &model->user_overhead);
    print_line(out, "copy_cache_cache", &model->copy[CLUSTER_CACHE_TO_CACHE]);
    print_line(out, "copy_cache_memory", &model->copy[CLUSTER_CACHE_TO_MEMORY]);
    print_line(out, "copy_memory_memory", &model->copy[CLUSTER_MEMORY_TO_MEMORY]);
    for (uint32_t i = 0; i < model->latency_count; i++) {
        snprintf(key, sizeof(key), "latency_%u", (unsigned) model->latency[i].processes);
        print_line(out, key, &model->latency[i].line);
    }
}

void profile_print(FILE *out, const struct lane_file *file)
{
    const struct fingerprint *machine = &file->profile.machine;
    fprintf(
        out,
        "# A profile of this machine's lanes, measured by multilane-calibrate. Times in seconds,\n"
        "# bandwidths in bytes a second; man multilane-plan says what the keys mean.\n"
        "[profile]\nschema = %d\nmade = %s\nprocessor = %s\nprocessors = %s\nkernel = %s\n"
        "open_mpi = %s\nmultilane = %s\n",
        LANE_FILE_SCHEMA, file->profile.made, machine->processor, machine->processors,
        machine->kernel, machine->open_mpi, machine->multilane);
    for (uint32_t i = 0; i < file->group_count; i++) {
        fprintf(out, "\n[group %s]\n", file->group_names[file->groups[i].id - 1].name);
        print_real(out, "bandwidth", file->groups[i].bandwidth_bytes_s);
    }
    for (uint32_t i = 0; i < file->lane_count; i++)
        print_lane(out, file, &file->lanes[i]);
    if (file->has_cluster)
        print_cluster(out, &file->cluster, file->cluster_processes);
    fprintf(out, "\n[end]\n");
}

/* Makes the folders in which `path` is. */
static bool make_folders(const char *path, struct model_error *error)
{
    char folder[PROFILE_PATH_CHARS];
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return model_fail(error, "%.120s: the folder cannot be made: %s", folder,
                              strerror(errno));
        *at = '/';
    }
    return true;
}

/* A new file beside `path`, whose name replaces `name`; below 0 with a sentence. */
static int temporary_make(const char *path, char name[PROFILE_PATH_CHARS + 16],
                          struct model_error *error)
{
    if (!make_folders(path, error))
        return -1;
    snprintf(name, PROFILE_PATH_CHARS + 16, "%.*s.XXXXXX", PROFILE_PATH_CHARS - 1, path);
    int fd = mkstemp(name);
    if (fd < 0)
        model_fail(error, "%.120s: cannot be written: %s", path, strerror(errno));
    return fd;
}

bool profile_can_write(const char *path, struct model_error *error)
{
    char name[PROFILE_PATH_CHARS + 16];
    int fd = temporary_make(path, name, error);
    if (fd < 0)
        return false;
    close(fd);
    unlink(name);
    return true;
}

bool profile_write(const char *path, const struct lane_file *file, struct model_error *error)
{
    char name[PROFILE_PATH_CHARS + 16];
    int fd = temporary_make(path, name, error);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd < 0)
        return false;
    if (!out) {
        close(fd);
        unlink(name);
        return model_fail(error, "%.120s: no memory to write it", path);
    }
    profile_print(out, file);
    bool written = !ferror(out) && fchmod(fd, 0644) == 0;
    written = fclose(out) == 0 && written;
    if (written && rename(name, path) == 0)
        return true;
    int why = errno;
    unlink(name);
    return model_fail(error, "%.120s: cannot be written: %s", path, strerror(why));
}

/* --- using it --------------------------------------------------------------------------------- */

static const struct model_lane *find_lane(const struct lane_file *profile, const char *name,
                                          enum profile_placement placement)
{
    char key[sizeof(profile->lanes[0].name) + 16];
    snprintf(key, sizeof(key), "%s@%s", name, profile_placement_name(placement));
    for (uint32_t i = 0; i < profile->lane_count; i++)
        if (strcmp(profile->lanes[i].name, key) == 0)
            return &profile->lanes[i];
    return NULL;
}

/* At this placement, or at the other one inside a node, which resembles it. */
static const struct model_lane *find_nearest(const struct lane_file *profile, const char *name,
                                             enum profile_placement placement)
{
    const struct model_lane *found = find_lane(profile, name, placement);
    if (!found && placement == PROFILE_CACHE)
        found = find_lane(profile, name, PROFILE_NODE);
    if (!found && placement == PROFILE_NODE)
        found = find_lane(profile, name, PROFILE_CACHE);
    return found;
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
    if (measured->reg_cached_s >= 0)
        lane->reg_cached_s = measured->reg_cached_s;
    return true;
}

double profile_together(const struct lane_file *profile, enum profile_placement placement)
{
    const char *name = profile_placement_name(placement);
    for (uint32_t i = 0; i < profile->group_count; i++)
        if (strcmp(profile->group_names[profile->groups[i].id - 1].name, name) == 0)
            return profile->groups[i].bandwidth_bytes_s;
    return 0;
}
