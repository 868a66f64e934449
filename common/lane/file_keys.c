/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a lane file that are not a lane's: surroundings, groups, copies, the cluster model,
 * of what machine a profile is. */
#include "common/lane/lane_reader.h"

#include <stdio.h>
#include <string.h>

#include "common/model/number.h"

/* --- keys of the other sections --------------------------------------------------------------- */

static bool read_bias(struct reader *reader, const char *value, const struct key *key)
{
    double read;
    if (!reader_read_real(reader, value, key, &read))
        return false;
    if (!(read > 0 && read <= 100))
        return reader_refuse_value(reader, key->name, value, "it is above 0 and at most 100");
    reader->file->around.bias = read;
    return true;
}

static bool read_file_count(struct reader *reader, const char *value, const struct key *key)
{
    uint32_t read;
    if (!reader_read_count(reader, value, key, 0, 1000000, &read))
        return false;
    memcpy((char *) reader->file + key->offset, &read, sizeof read);
    return true;
}

static bool read_file_size(struct reader *reader, const char *value, const struct key *key)
{
    uint64_t read;
    if (!reader_read_size(reader, value, key, &read))
        return false;
    memcpy((char *) reader->file + key->offset, &read, sizeof read);
    return true;
}

const struct key reader_top_keys[] = {
    {"bias", read_bias, 0},
    {"eager_lanes", read_file_count, offsetof(struct lane_file, most_eager_lanes)},
    {"rndv_lanes", read_file_count, offsetof(struct lane_file, most_rndv_lanes)},
    {"header", read_file_count, offsetof(struct lane_file, around.header_bytes)},
    {"eager_max", read_file_size, offsetof(struct lane_file, around.eager_max_bytes)},
    {"stage", read_file_size, offsetof(struct lane_file, around.stage_bytes)},
    {NULL, NULL, 0}};

static bool read_group_bandwidth(struct reader *reader, const char *value, const struct key *key)
{
    struct model_error why;
    double read;
    if (!reader_read_real(reader, value, key, &read))
        return false;
    if (!model_attribute_check(MODEL_BANDWIDTH, read, &why))
        return reader_refuse_value(reader, key->name, value, why.text);
    reader->file->groups[reader->file->group_count++] =
        (struct model_group){reader->group + 1, read};
    return true;
}

const struct key reader_group_keys[] = {{"bandwidth", read_group_bandwidth, 0}, {NULL, NULL, 0}};

static bool read_copy(struct reader *reader, const char *value, const struct key *key)
{
    struct model_copy *copy = &reader->file->around.copy[reader->copy];
    return reader_read_real(reader, value, key,
                            !strcmp(key->name, "cost") ? &copy->fixed_s : &copy->s_byte);
}

const struct key reader_copy_keys[] = {
    {"cost", read_copy, 0}, {"growth", read_copy, 0}, {NULL, NULL, 0}};

/* "FIXED" or "FIXED GROWTH" */
static bool read_line(struct reader *reader, const char *value, const struct key *key,
                      struct cost_line *line)
{
    char copy[LINE_CHARS_MAX];
    struct model_error why;
    snprintf(copy, sizeof copy, "%s", value);
    char *rest;
    const char *fixed = strtok_r(copy, " \t", &rest), *growth = strtok_r(NULL, " \t", &rest);
    line->growth_s_byte = 0;
    if (!fixed || strtok_r(NULL, " \t", &rest))
        return reader_refuse_value(reader, key->name, value, "it is seconds, then seconds a byte");
    if (!number_parse_real(fixed, &line->fixed_s, &why) ||
        (growth && !number_parse_real(growth, &line->growth_s_byte, &why)))
        return reader_refuse_value(reader, key->name, value, why.text);
    return true;
}

static bool read_cluster_line(struct reader *reader, const char *value, const struct key *key)
{
    struct cost_line line;
    if (!read_line(reader, value, key, &line))
        return false;
    memcpy((char *) reader->file + key->offset, &line, sizeof line);
    return true;
}

/* "latency" for any number of processes, "latency_16" for 16; the numbers must grow. */
bool reader_read_cluster_latency(struct reader *reader, const char *value, const struct key *key)
{
    struct cluster_model *model = &reader->file->cluster;
    struct model_error why;
    uint64_t processes = 1;
    if (key->name[strlen("latency")] &&
        !number_parse_count(key->name + strlen("latency_"), 1, UINT32_MAX, &processes, &why))
        return reader_refuse_value(reader, key->name, value, why.text);
    if (model->latency_count == CLUSTER_LATENCIES_MAX)
        return reader_refuse_value(reader, key->name, value, "there are too many latencies");
    if (model->latency_count && processes <= model->latency[model->latency_count - 1].processes)
        return reader_refuse_value(reader, key->name, value,
                                   "latencies stand in the order of processes");
    struct cluster_latency *latency = &model->latency[model->latency_count++];
    latency->processes = (uint32_t) processes;
    return read_line(reader, value, key, &latency->line);
}

static bool read_processes(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_count(reader, value, key, 2, 1 << 24, &reader->file->cluster_processes);
}

#define CLUSTER_LINE(member) read_cluster_line, offsetof(struct lane_file, cluster.member)

const struct key reader_cluster_keys[] = {
    {"send_overhead", CLUSTER_LINE(send_overhead)},
    {"send_gap", CLUSTER_LINE(send_gap)},
    {"receive_gap", CLUSTER_LINE(receive_gap)},
    {"receive_overhead", CLUSTER_LINE(receive_overhead)},
    {"user_overhead", CLUSTER_LINE(user_overhead)},
    {"copy_cache_cache", CLUSTER_LINE(copy[CLUSTER_CACHE_TO_CACHE])},
    {"copy_cache_memory", CLUSTER_LINE(copy[CLUSTER_CACHE_TO_MEMORY])},
    {"copy_memory_memory", CLUSTER_LINE(copy[CLUSTER_MEMORY_TO_MEMORY])},
    {"packet", read_file_size, offsetof(struct lane_file, cluster.packet_bytes)},
    {"buffer", read_file_size, offsetof(struct lane_file, cluster.buffer_bytes)},
    {"processes", read_processes, 0},
    {NULL, NULL, 0}};

/* --- of what a profile is ------------------------------------------------------------------------
 */

/* At once: what another schema means by what follows, nobody here knows. */
static bool read_schema(struct reader *reader, const char *value, const struct key *key)
{
    struct model_error why;
    uint64_t read;
    if (!number_parse_count(value, 1, UINT32_MAX, &read, &why))
        return reader_refuse_value(reader, key->name, value, why.text);
    if (read != LANE_FILE_SCHEMA)
        return reader_refuse_value(
            reader, key->name, value,
            "this Multilane reads schema 1; measure anew by multilane-calibrate");
    reader->file->profile.schema = (uint32_t) read;
    return true;
}

static bool read_profile_text(struct reader *reader, const char *value, const struct key *key)
{
    char *text = (char *) reader->file + key->offset;
    if (strlen(value) >= LANE_FILE_TEXT_CHARS)
        return reader_refuse_value(reader, key->name, value, "it is too long");
    snprintf(text, LANE_FILE_TEXT_CHARS, "%s", value);
    return true;
}

#define PROFILE_TEXT(member) read_profile_text, offsetof(struct lane_file, profile.member)

const struct key reader_profile_keys[] = {{"schema", read_schema, 0},
                                          {"made", PROFILE_TEXT(made)},
                                          {"processor", PROFILE_TEXT(machine.processor)},
                                          {"processors", PROFILE_TEXT(machine.processors)},
                                          {"kernel", PROFILE_TEXT(machine.kernel)},
                                          {"open_mpi", PROFILE_TEXT(machine.open_mpi)},
                                          {"multilane", PROFILE_TEXT(machine.multilane)},
                                          {NULL, NULL, 0}};

const struct key reader_no_keys[] = {{NULL, NULL, 0}};
