/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of lane files: of a lane, its attributes and the rest, and of the other sections. */
#include "common/lane/lane_keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/model/number.h"

/* --- attributes, which may stand for all ways or one ------------------------------------------ */

/* A key for one way wins over the same key for all of them, in whatever order they stand. */
static void set_attribute(struct reader *reader, enum model_way way, enum model_attribute attribute,
                          double value)
{
    for (int i = 0; i < MODEL_WAYS; i++) {
        bool *given = &reader->draft->given[i][attribute];
        struct model_lane_cost *cost = &reader->lane->cost[i];
        if (way == MODEL_WAYS ? *given : way != (enum model_way) i)
            continue;
        *model_attribute_in(&cost->ranges[cost->range_count - 1], (int) attribute) = value;
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

/* An attribute has a key of its own; a user's key sets all attributes of that key, equal parts. */
static bool is_set_by(int attribute, const char *name)
{
    return !strcmp(name, model_attributes[attribute].key) ||
           !strcmp(name, model_attributes[attribute].user_key);
}

bool reader_is_attribute(const char *name)
{
    bool is_one = false;
    split_way(&name);
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        is_one = is_one || is_set_by(i, name);
    return is_one;
}

static bool check_overhead(struct reader *reader, const char *name, const char *value)
{
    bool whole = !strcmp(name, "overhead"), is_overhead = !strncmp(name, "overhead", 8);
    reader->draft->overhead_whole = reader->draft->overhead_whole || whole;
    reader->draft->overhead_parts = reader->draft->overhead_parts || (is_overhead && !whole);
    if (is_overhead && reader->draft->overhead_whole && reader->draft->overhead_parts)
        return reader_refuse_value(reader, name, value,
                                   "overhead is the sum of overhead_send and "
                                   "overhead_receive; give either it or them");
    return true;
}

bool reader_read_attribute(struct reader *reader, const char *value, const struct key *key)
{
    const char *name = key->name;
    enum model_way way = split_way(&name);
    struct model_error why;
    struct model_lane_range parts;
    double read;
    if (!reader_read_real(reader, value, key, &read) || !check_overhead(reader, name, value))
        return false;
    bool whole = model_attribute_set(&parts, name, read);
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        enum model_attribute attribute = (enum model_attribute) i;
        if (!is_set_by(i, name))
            continue;
        if (!model_attribute_check(attribute, read, &why))
            return reader_refuse_value(reader, key->name, value, why.text);
        double part = whole ? model_attribute_of(&parts, i) : read;
        /* What a profile writes where bytes cost nothing that could be measured. */
        if (attribute == MODEL_BANDWIDTH && read >= LANE_FILE_BANDWIDTH_MOST)
            part = INFINITY;
        set_attribute(reader, way, attribute, part);
    }
    return true;
}

/* --- keys of a lane --------------------------------------------------------------------------- */

static bool read_use(struct reader *reader, const char *value, const struct key *key)
{
    return model_use_find(value, &reader->lane->use) ||
           reader_refuse_value(reader, key->name, value, "it is eager, rndv or both");
}

static bool read_can(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_bits(reader, value, key, model_ability_name, MODEL_ABILITIES,
                            &reader->lane->can);
}

static bool read_reach(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_bits(reader, value, key, model_memory_name, MODEL_MEMORIES,
                            &reader->lane->reach);
}

static bool read_reg_cached(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_real(reader, value, key, &reader->lane->reg_cached_s);
}

static bool read_copy_growth(struct reader *reader, const char *value, const struct key *key)
{
    return reader_read_real(reader, value, key, &reader->lane->copy_growth_s_byte);
}

static bool read_bandwidth(struct reader *reader, const char *value, const struct key *key,
                           double *bytes_s)
{
    struct model_error why;
    double read;
    if (!reader_read_real(reader, value, key, &read))
        return false;
    if (!model_attribute_check(MODEL_BANDWIDTH, read, &why))
        return reader_refuse_value(reader, key->name, value, why.text);
    *bytes_s = read;
    return true;
}

static bool read_shared(struct reader *reader, const char *value, const struct key *key)
{
    return read_bandwidth(reader, value, key, &reader->lane->shared_bytes_s);
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
    {"distance", reader_store_count, offsetof(struct model_lane, distance)},
    {"card", reader_store_count, offsetof(struct model_lane, card)},
    {"pieces_max", reader_store_count, offsetof(struct model_lane, pieces_max)},
    {"short_max", reader_store_size, offsetof(struct model_lane, short_max_bytes)},
    {"copied_max", reader_store_size, offsetof(struct model_lane, copied_max_bytes)},
    {"zcopied_max", reader_store_size, offsetof(struct model_lane, zcopied_max_bytes)},
    {"reg_cached", read_reg_cached, 0},
    {"copy_growth", read_copy_growth, 0},
    {"shared", read_shared, 0},
    {NULL, NULL, 0}};

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

static bool read_eager_bound(struct reader *reader, const char *value, const struct key *key)
{
    uint64_t bytes;
    bool is_credit = !strcmp(key->name, "credit");
    if (!reader_read_size(reader, value, key, &bytes))
        return false;
    if (bytes)
        model_bound_eager(&reader->file->around,
                          is_credit ? MODEL_BOUND_CREDIT : MODEL_BOUND_EAGER_MAX, bytes);
    return true;
}

const struct key reader_top_keys[] = {
    {"bias", read_bias, 0},
    {"eager_lanes", reader_store_count, offsetof(struct lane_file, most_eager_lanes)},
    {"rndv_lanes", reader_store_count, offsetof(struct lane_file, most_rndv_lanes)},
    {"header", reader_store_count, offsetof(struct lane_file, around.header_bytes)},
    {"eager_max", read_eager_bound, 0},
    {"credit", read_eager_bound, 0},
    {"stage", reader_store_size, offsetof(struct lane_file, around.stage_bytes)},
    {NULL, NULL, 0}};

static bool read_group_bandwidth(struct reader *reader, const char *value, const struct key *key)
{
    double read;
    if (!read_bandwidth(reader, value, key, &read))
        return false;
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

/* --- of what a profile is --------------------------------------------------------------------- */

/* At once: what follows may mean something else in another schema. */
static bool read_schema(struct reader *reader, const char *value, const struct key *key)
{
    struct model_error why;
    uint64_t read;
    if (!number_parse_count(value, 1, UINT32_MAX, &read, &why))
        return reader_refuse_value(reader, key->name, value, why.text);
    if (read != LANE_FILE_SCHEMA)
        return reader_refuse_value(
            reader, key->name, value,
            "this Multilane reads schema 3; measure anew by multilane-calibrate");
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

static bool read_registered(struct reader *reader, const char *value, const struct key *key)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return reader_refuse_value(reader, key->name, value, "it is yes or no");
    reader->file->around.registration_cached = value[0] == 'y';
    return true;
}

#define PROFILE_TEXT(member) read_profile_text, offsetof(struct lane_file, profile.member)

const struct key reader_profile_keys[] = {
    {"schema", read_schema, 0},
    {"made", PROFILE_TEXT(made)},
    {"device", PROFILE_TEXT(device)},
    {"processor", PROFILE_TEXT(machine.processor)},
    {"processors", PROFILE_TEXT(machine.processors)},
    {"kernel", PROFILE_TEXT(machine.kernel)},
    {"open_mpi", PROFILE_TEXT(machine.open_mpi)},
    {"multilane", PROFILE_TEXT(machine.multilane)},
    {"header", reader_store_count, offsetof(struct lane_file, around.header_bytes)},
    {"credit", read_eager_bound, 0},
    {"registered", read_registered, 0},
    {NULL, NULL, 0}};

const struct key reader_no_keys[] = {{NULL, NULL, 0}};
