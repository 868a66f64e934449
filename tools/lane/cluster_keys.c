/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of the section. */
#include "tools/lane/cluster_keys.h"

#include <string.h>

#include "common/lane/lane_keys.h"
#include "common/model/number.h"

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
                         struct model_error *why)
{
    uint64_t processes = 1;
    if (key[strlen("latency")] &&
        !number_parse_count(key + strlen("latency_"), 1, UINT32_MAX, &processes, why))
        return false;
    if (model->latency_count == CLUSTER_LATENCIES_MAX)
        return model_fail(why, "there are too many latencies");
    if (model->latency_count && processes <= model->latency[model->latency_count - 1].processes)
        return model_fail(why, "latencies stand in the order of processes");
    struct cluster_latency *latency = &model->latency[model->latency_count++];
    latency->processes = (uint32_t) processes;
    return line_read(value, &latency->line, why);
}

bool cluster_key_read(void *cluster_model, const char *name, const char *value,
                      struct model_error *why)
{
    struct cluster_model *model = cluster_model;
    const struct key *key = key_find(keys, name);
    if (!strcmp(name, "latency") || !strncmp(name, "latency_", strlen("latency_")))
        return read_latency(model, name, value, why);
    if (!key)
        return model_fail(why, "there is no such key in this section; man multilane-plan lists "
                               "them");
    if (!key_read(key, value, model, why))
        return false;
    return model->processes >= 2 || model_fail(why, "a broadcast is among 2 processes or more");
}
