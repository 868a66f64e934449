/* SPDX-License-Identifier: BSD-3-Clause */
/* One table of the keys, for the reader and for the writer. */
#include "tools/lane/cluster_keys.h"

#include <stddef.h>
#include <string.h>

#include "common/model/number.h"

#define LINE_CHARS 400

static const struct {
    const char *key;
    size_t offset;
} lines[] = {{"send_overhead", offsetof(struct cluster_model, send_overhead)},
             {"send_gap", offsetof(struct cluster_model, send_gap)},
             {"receive_gap", offsetof(struct cluster_model, receive_gap)},
             {"receive_overhead", offsetof(struct cluster_model, receive_overhead)},
             {"user_overhead", offsetof(struct cluster_model, user_overhead)},
             {"copy_cache_cache", offsetof(struct cluster_model, copy[CLUSTER_CACHE_TO_CACHE])},
             {"copy_cache_memory", offsetof(struct cluster_model, copy[CLUSTER_CACHE_TO_MEMORY])},
             {"copy_memory_memory",
              offsetof(struct cluster_model, copy[CLUSTER_MEMORY_TO_MEMORY])}},
  sizes[] = {{"packet", offsetof(struct cluster_model, packet_bytes)},
             {"buffer", offsetof(struct cluster_model, buffer_bytes)}};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* --- reading ---------------------------------------------------------------------------------- */

/* "FIXED" or "FIXED GROWTH" */
static bool read_line(const char *value, struct cost_line *line, struct model_error *why)
{
    char copy[LINE_CHARS];
    snprintf(copy, sizeof copy, "%s", value);
    char *rest;
    const char *fixed = strtok_r(copy, " \t", &rest), *growth = strtok_r(NULL, " \t", &rest);
    line->growth_s_byte = 0;
    if (!fixed || strtok_r(NULL, " \t", &rest))
        return model_fail(why, "it is seconds, then seconds a byte");
    return number_parse_real(fixed, &line->fixed_s, why) &&
           (!growth || number_parse_real(growth, &line->growth_s_byte, why));
}

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
    return read_line(value, &latency->line, why);
}

bool cluster_key_read(struct cluster_model *model, const char *key, const char *value,
                      struct model_error *why)
{
    uint64_t count;
    for (size_t i = 0; i < COUNT(lines); i++)
        if (!strcmp(key, lines[i].key))
            return read_line(value, (void *) ((char *) model + lines[i].offset), why);
    for (size_t i = 0; i < COUNT(sizes); i++)
        if (!strcmp(key, sizes[i].key))
            return number_parse_size(value, (void *) ((char *) model + sizes[i].offset), why);
    if (!strcmp(key, "latency") || !strncmp(key, "latency_", strlen("latency_")))
        return read_latency(model, key, value, why);
    if (strcmp(key, "processes"))
        return model_fail(why, "there is no such key in this section; man multilane-plan lists "
                               "them");
    if (!number_parse_count(value, 2, 1 << 24, &count, why))
        return false;
    model->processes = (uint32_t) count;
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void print_line(FILE *out, const char *key, const struct cost_line *line)
{
    char fixed[NUMBER_REAL_CHARS], growth[NUMBER_REAL_CHARS];
    fprintf(out, "%s = %s %s\n", key, number_print_real(line->fixed_s, fixed),
            number_print_real(line->growth_s_byte, growth));
}

void cluster_print(FILE *out, const struct cluster_model *model)
{
    char key[32], size[NUMBER_SIZE_CHARS];
    fprintf(out, "\n[cluster]\nprocesses = %u\n", (unsigned) model->processes);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const uint64_t *bytes = (const void *) ((const char *) model + sizes[i].offset);
        if (*bytes)
            fprintf(out, "%s = %s\n", sizes[i].key, number_print_size(*bytes, size));
    }
    for (size_t i = 0; i < COUNT(lines); i++)
        print_line(out, lines[i].key, (const void *) ((const char *) model + lines[i].offset));
    for (uint32_t i = 0; i < model->latency_count; i++) {
        snprintf(key, sizeof(key), "latency_%u", (unsigned) model->latency[i].processes);
        print_line(out, key, &model->latency[i].line);
    }
}
