/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a lane: its attributes, and the rest. */
#include "common/lane/lane_keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- attributes, which may stand for all ways or one -------------------------------------------
 */

static double *attribute_of(struct model_lane_range *range, enum model_attribute attribute)
{
    switch (attribute) {
    case MODEL_LATENCY:
        return &range->latency_s;
    case MODEL_BANDWIDTH:
        return &range->bandwidth_bytes_s;
    case MODEL_OVERHEAD_SEND:
        return &range->overhead_send_s;
    case MODEL_OVERHEAD_RECEIVE:
        return &range->overhead_receive_s;
    case MODEL_REG_COST:
        return &range->reg_cost_s;
    default:
        return &range->reg_growth_s_byte;
    }
}

/* A key for one way wins over the same key for all of them, in whatever order they stand. */
static void set_attribute(struct reader *reader, enum model_way way, enum model_attribute attribute,
                          double value)
{
    for (int i = 0; i < MODEL_WAYS; i++) {
        bool *given = &reader->draft->given[i][attribute];
        struct model_lane_cost *cost = &reader->lane->cost[i];
        if (way == MODEL_WAYS ? *given : way != (enum model_way) i)
            continue;
        *attribute_of(&cost->ranges[cost->range_count - 1], attribute) = value;
        *given = *given || way != MODEL_WAYS;
    }
    if (way == MODEL_WAYS)
        reader->draft->all_given = true;
    else
        reader->draft->way_given[way] = true;
    model_lane_set_source(reader->lane, way, attribute,
                          reader->file->has_profile ? MODEL_SOURCE_PROFILE : MODEL_SOURCE_USER);
}

/* The way in front of an attribute's name, if any: "get_latency". */
static enum model_way split_way(const char **name)
{
    for (int way = 0; way < MODEL_WAYS; way++) {
        const char *prefix = model_way_name((enum model_way) way);
        size_t length = strlen(prefix);
        if (!strncmp(*name, prefix, length) && (*name)[length] == '_') {
            *name += length + 1;
            return (enum model_way) way;
        }
    }
    return MODEL_WAYS;
}

static bool set_overhead(struct reader *reader, enum model_way way, const char *name,
                         const char *value, double read)
{
    double send_s, receive_s;
    struct model_error why;
    bool whole = !strcmp(name, "overhead");
    reader->draft->overhead_whole = reader->draft->overhead_whole || whole;
    reader->draft->overhead_parts = reader->draft->overhead_parts || !whole;
    if (reader->draft->overhead_whole && reader->draft->overhead_parts)
        return reader_refuse_value(reader, name, value,
                                   "overhead is the sum of overhead_send and "
                                   "overhead_receive; give either it or them");
    if (!model_attribute_check(MODEL_OVERHEAD_SEND, read, &why))
        return reader_refuse_value(reader, name, value, why.text);
    if (!whole) {
        set_attribute(reader, way,
                      !strcmp(name, "overhead_send") ? MODEL_OVERHEAD_SEND : MODEL_OVERHEAD_RECEIVE,
                      read);
        return true;
    }
    model_overhead_divide(read, &send_s, &receive_s);
    set_attribute(reader, way, MODEL_OVERHEAD_SEND, send_s);
    set_attribute(reader, way, MODEL_OVERHEAD_RECEIVE, receive_s);
    return true;
}

/* False and no complaint: it is none. */
static bool find_attribute(const char *name, enum model_attribute *attribute)
{
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        if (!strcmp(name, model_attribute_name((enum model_attribute) i))) {
            *attribute = (enum model_attribute) i;
            return true;
        }
    return false;
}

bool reader_is_attribute(const char *name)
{
    enum model_attribute attribute;
    split_way(&name);
    return !strcmp(name, "overhead") || find_attribute(name, &attribute);
}

bool reader_read_attribute(struct reader *reader, const char *value, const struct key *key)
{
    const char *name = key->name;
    enum model_way way = split_way(&name);
    enum model_attribute attribute = MODEL_LATENCY;
    struct model_error why;
    double read;
    if (!reader_read_real(reader, value, key, &read))
        return false;
    if (!strncmp(name, "overhead", strlen("overhead")))
        return set_overhead(reader, way, name, value, read);
    find_attribute(name, &attribute);
    if (!model_attribute_check(attribute, read, &why))
        return reader_refuse_value(reader, key->name, value, why.text);
    /* What a profile writes where bytes cost nothing that could be measured. */
    if (attribute == MODEL_BANDWIDTH && read >= LANE_FILE_BANDWIDTH_MOST)
        read = INFINITY;
    set_attribute(reader, way, attribute, read);
    return true;
}

static const char *ability_name(uint32_t bit)
{
    return model_ability_name((enum model_ability) bit);
}

static const char *memory_name(uint32_t bit)
{
    return model_memory_name((enum model_memory) bit);
}

/* --- keys of a lane --------------------------------------------------------------------------- */

static bool read_use(struct reader *reader, const char *value, const struct key *key)
{
    static const struct {
        const char *name;
        enum model_use use;
    } uses[] = {{"eager", MODEL_USE_EAGER}, {"rndv", MODEL_USE_RNDV}, {"both", MODEL_USE_BOTH}};
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        if (!strcmp(value, uses[i].name)) {
            reader->lane->use = (uint32_t) uses[i].use;
            return true;
        }
    return reader_refuse_value(reader, key->name, value, "it is eager, rndv or both");
}

static bool read_can(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_bits(reader, value, key, ability_name, MODEL_ABILITIES, &reader->lane->can);
}

static bool read_reach(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_bits(reader, value, key, memory_name, MODEL_MEMORIES, &reader->lane->reach);
}

static bool read_lane_size(struct reader *reader, const char *value, const struct key *key)
{
    uint64_t read;
    if (!reader_read_size(reader, value, key, &read))
        return false;
    memcpy((char *) reader->lane + key->offset, &read, sizeof read);
    return true;
}

/* What profiles say that were written before; nobody ever made use of it. */
static bool read_in_vain(struct reader *reader, const char *value, const struct key *key)
{
    uint64_t read;
    return reader_read_size(reader, value, key, &read);
}

static bool read_lane_count(struct reader *reader, const char *value, const struct key *key)
{
    uint32_t read;
    if (!reader_read_count(reader, value, key, 0, 1000000, &read))
        return false;
    memcpy((char *) reader->lane + key->offset, &read, sizeof read);
    return true;
}

static bool read_reg_cached(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_real(reader, value, key, &reader->lane->reg_cached_s);
}

/* The index of a group, made on first mention. */
bool reader_find_group(struct reader *reader, const char *name, uint32_t *index)
{
    struct lane_file *file = reader->file;
    for (*index = 0; *index < file->group_name_count; ++*index)
        if (!strcmp(file->group_names[*index].name, name))
            return true;
    if (strlen(name) >= sizeof file->group_names[0].name)
        return reader_refuse_line(reader, "this name is too long:", name);
    if (file->group_name_count == LANE_FILE_GROUPS_MAX)
        return reader_refuse_line(reader, "there are too many groups with", name);
    snprintf(file->group_names[file->group_name_count++].name, sizeof file->group_names[0].name,
             "%s", name);
    return true;
}

static bool read_lane_group(struct reader *reader, const char *value, const struct key *key)
{
    uint32_t index;
    (void) key;
    if (!reader_find_group(reader, value, &index))
        return false;
    reader->lane->group = index + 1;
    return true;
}

const struct key reader_lane_keys[] = {
    {"use", read_use, 0},
    {"can", read_can, 0},
    {"reach", read_reach, 0},
    {"group", read_lane_group, 0},
    {"distance", read_lane_count, offsetof(struct model_lane, distance)},
    {"card", read_lane_count, offsetof(struct model_lane, card)},
    {"pieces_max", read_lane_count, offsetof(struct model_lane, pieces_max)},
    {"short_max", read_lane_size, offsetof(struct model_lane, short_max_bytes)},
    {"copied_max", read_lane_size, offsetof(struct model_lane, copied_max_bytes)},
    {"zcopied_max", read_lane_size, offsetof(struct model_lane, zcopied_max_bytes)},
    {"piece_min", read_lane_size, offsetof(struct model_lane, piece_min_bytes)},
    {"align", read_lane_size, offsetof(struct model_lane, align_bytes)},
    {"in_flight_max", read_in_vain, 0},
    {"reg_cached", read_reg_cached, 0},
    {NULL, NULL, 0}};
