/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a profile, and a file of it. */
#include "tools/lane/profile_write.h"

#include <math.h>
#include <sys/stat.h>

#include "common/model/number.h"

static void print_real(FILE *out, const char *key, double value)
{
    /* The reader knows no infinite bandwidth; this one is the largest it takes. */
    fprintf(out, "%s = %s\n", key,
            number_real(isinf(value) ? LANE_FILE_BANDWIDTH_MOST : value).text);
}

static void print_size(FILE *out, const char *key, uint64_t value)
{
    if (value)
        fprintf(out, "%s = %s\n", key, number_size(value).text);
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
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        char key[48];
        snprintf(key, sizeof(key), "%s_%s", model_way_name(way), model_attributes[i].key);
        if (with_registration || (i != MODEL_REG_COST && i != MODEL_REG_GROWTH))
            print_real(out, key, model_attribute_of(range, i));
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

static void print_bits(FILE *out, const char *key, uint32_t bits, int count,
                       const char *(*name_of)(uint32_t bit))
{
    fprintf(out, "%s =", key);
    for (int i = 0; i < count; i++)
        if (bits >> i & 1)
            fprintf(out, " %s", name_of(UINT32_C(1) << i));
    fputc('\n', out);
}

static void print_lane(FILE *out, const struct lane_file *file, const struct model_lane *lane)
{
    fprintf(out, "\n[lane %s]\n", lane->name);
    print_bits(out, "can", lane->can, MODEL_ABILITIES, model_ability_name);
    print_bits(out, "reach", lane->reach, MODEL_MEMORIES, model_memory_name);
    if (lane->group)
        fprintf(out, "group = %s\n", file->group_names[lane->group - 1]);
    print_size(out, "short_max", lane->short_max_bytes);
    print_size(out, "copied_max", lane->copied_max_bytes);
    fprintf(out, "zcopied_max = %s\n", number_size(lane->zcopied_max_bytes).text);
    fprintf(out, "pieces_max = %u\ndistance = %u\ncard = %u\n", (unsigned) lane->pieces_max,
            (unsigned) lane->distance, (unsigned) lane->card);
    if (lane->reg_cached_s >= 0)
        print_real(out, "reg_cached", lane->reg_cached_s);
    if (lane->copy_growth_s_byte > 0)
        print_real(out, "copy_growth", lane->copy_growth_s_byte);
    if (lane->shared_bytes_s > 0)
        print_real(out, "shared", lane->shared_bytes_s);
    print_ways(out, lane, UINT64_MAX);
    for (uint64_t end = model_lane_next_end(lane, MODEL_WAYS, 1); end != UINT64_MAX;
         end = model_lane_next_end(lane, MODEL_WAYS, end + 1)) {
        fprintf(out, "[range %s %s]\n", lane->name, number_size(end).text);
        print_ways(out, lane, end);
    }
}

static void print_profile(FILE *out, const struct lane_file *file)
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
    fprintf(out, "header = %u\n", (unsigned) file->around.header_bytes);
    print_size(out, "credit", file->around.eager_max_bytes);
    fprintf(out, "registered = %s\n", file->around.registration_cached ? "yes" : "no");
    for (uint32_t i = 0; i < file->group_count; i++) {
        fprintf(out, "\n[group %s]\n", file->group_names[i]);
        print_real(out, "bandwidth", file->groups[i].bandwidth_bytes_s);
    }
    for (uint32_t i = 0; i < file->lane_count; i++)
        print_lane(out, file, &file->lanes[i]);
    fprintf(out, "\n[end]\n");
}

bool profile_can_write(const char *path, struct error_text *error)
{
    struct whole_file file;
    struct stat there;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return fail_with(error, "%.120s: is a folder", path);
    if (!whole_file_begin(&file, path, 0666, error))
        return false;
    whole_file_drop(&file);
    return true;
}

bool profile_write(const char *path, const struct lane_file *profile, struct error_text *error)
{
    struct whole_file file;
    if (!whole_file_begin(&file, path, 0666, error))
        return false;
    print_profile(file.out, profile);
    return whole_file_end(&file, error);
}
