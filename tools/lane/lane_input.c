/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads lane files for the tools. */
#include "tools/lane/lane_input.h"

#include <stdlib.h>
#include <string.h>

#include "common/file/whole_file.h"
#include "common/lane/lane_keys.h"
#include "common/model/number.h"

/* --- the section [cluster] -------------------------------------------------------------------- */

static const struct key keys[] = {
    {"processes", KEY_COUNT, offsetof(struct cluster_model, processes)},
    {"packet", KEY_SIZE, offsetof(struct cluster_model, packet_bytes)},
    {"send_overhead", KEY_LINE, offsetof(struct cluster_model, send_overhead)},
    {"send_gap", KEY_LINE, offsetof(struct cluster_model, send_gap)},
    {"receive_gap", KEY_LINE, offsetof(struct cluster_model, receive_gap)},
    {"receive_overhead", KEY_LINE, offsetof(struct cluster_model, receive_overhead)},
    {"user_overhead", KEY_LINE, offsetof(struct cluster_model, user_overhead)},
    {"copy_cache_memory", KEY_LINE, offsetof(struct cluster_model, copy)},
    {.name = NULL}};

/* "latency" for any number of processes, "latency_16" for 16; the numbers must grow. */
static bool read_latency(struct cluster_model *model, const char *key, const char *value,
                         struct error_text *why)
{
    uint64_t processes = 1;
    if (key[strlen("latency")] &&
        !number_parse_count(key + strlen("latency_"), 1, UINT32_MAX, &processes, why))
        return false;
    if (model->latency_count == CLUSTER_LATENCIES_MAX)
        return fail_with(why, "there are too many latencies");
    if (model->latency_count && processes <= model->latency[model->latency_count - 1].processes)
        return fail_with(why, "latencies stand in the order of processes");
    struct cluster_latency *latency = &model->latency[model->latency_count++];
    latency->processes = (uint32_t) processes;
    return line_read(value, &latency->line, why);
}

static bool cluster_key_read(void *cluster_model, const char *name, const char *value,
                             struct error_text *why)
{
    struct cluster_model *model = cluster_model;
    const struct key *key = key_find(keys, name);
    if (!strcmp(name, "latency") || !strncmp(name, "latency_", strlen("latency_")))
        return read_latency(model, name, value, why);
    if (!key)
        return fail_with(why, "there is no such key in this section; man multilane-plan lists "
                              "them");
    if (!key_read(key, value, model, why))
        return false;
    return model->processes >= 2 || fail_with(why, "a broadcast is among 2 processes or more");
}

/* --- the whole -------------------------------------------------------------------------------- */

bool lane_input_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                      struct cluster_model *cluster, struct error_text *error)
{
    *cluster = (struct cluster_model){.packet_bytes = UINT64_MAX, .processes = 2};
    if (!lane_file_parse(name, text, length, file, cluster_key_read, cluster, error))
        return false;
    return !file->has_cluster || (cluster->latency_count && cluster->packet_bytes) ||
           fail_with(error, "%.80s: [cluster]: %s", name,
                     cluster->latency_count ? "a packet of 0 bytes carries no message"
                                            : "latency, L, is missing");
}

bool lane_input_read(const char *name, struct lane_file *file, struct cluster_model *cluster,
                     struct error_text *error)
{
    size_t length;
    char *text = whole_file_read(name, LANE_FILE_BYTES_MAX, WHOLE_FILE_INPUT, &length, NULL, error);
    bool is_good =
        text && lane_input_parse(whole_file_input_name(name), text, length, file, cluster, error);
    free(text);
    return is_good;
}
