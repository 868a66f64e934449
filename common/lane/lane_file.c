/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads lane files: sections in brackets, `key = value` lines, comments from # on. */
#include "common/lane/lane_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/equation.h"
#include "common/model/number.h"

#define LINE_CHARS_MAX 400
#define KEYS_MAX       48

enum section {
    SECTION_TOP,
    SECTION_LANE,
    SECTION_RANGE,
    SECTION_GROUP,
    SECTION_COPY,
    SECTION_CLUSTER,
    SECTION_PROFILE,
    SECTION_END
};

/* What the last range of a lane holds is kept here until all its sections are read: keys that a
 * range does not give are the lane's. */
struct lane_draft {
    unsigned line;
    bool given[MODEL_WAYS][MODEL_ATTRIBUTES];
    bool way_given[MODEL_WAYS]; /* by a key for this way, in whatever section */
    bool all_given;             /* by a key for every way */
    bool overhead_whole;        /* `overhead` was given, not its parts */
    bool overhead_parts;
};

struct reader {
    const char *name; /* of the file */
    unsigned line;
    struct lane_file *file;
    struct model_error *error;
    enum section section;
    char title[LINE_CHARS_MAX]; /* of the section, as written */
    struct model_lane *lane;    /* SECTION_LANE, SECTION_RANGE */
    struct lane_draft *draft;
    uint32_t group, copy; /* indices, in their sections */
    struct lane_draft drafts[MODEL_LANES_MAX];
    const char *seen[KEYS_MAX]; /* keys of this section so far */
    uint32_t seen_count;
    uint64_t range_bytes;
};

struct key {
    const char *name;
    bool (*read)(struct reader *reader, const char *value, const struct key *key);
    size_t offset; /* for readers that only store: in the lane, or in the file */
};

/* --- complaints ------------------------------------------------------------------------------- */

/* "FILE:LINE: [lane fast] bandwidth = -1: " and what is wrong with it */
static bool refuse_value(struct reader *reader, const char *key, const char *value, const char *why)
{
    return model_fail(reader->error, "%.80s:%u: %s%.40s%s%s = %.40s: %s", reader->name,
                      reader->line, reader->title[0] ? "[" : "", reader->title,
                      reader->title[0] ? "] " : "", key, value, why);
}

static bool refuse_line(struct reader *reader, const char *what, const char *shown)
{
    return model_fail(reader->error, "%.80s:%u: %s%s%.60s%s", reader->name, reader->line, what,
                      shown ? " \"" : "", shown ? shown : "", shown ? "\"" : "");
}

/* --- values ----------------------------------------------------------------------------------- */

static bool read_real(struct reader *reader, const char *value, const struct key *key, double *out)
{
    struct model_error why;
    return number_parse_real(value, out, &why) || refuse_value(reader, key->name, value, why.text);
}

static bool read_count(struct reader *reader, const char *value, const struct key *key,
                       uint64_t least, uint64_t most, uint32_t *out)
{
    struct model_error why;
    uint64_t read;
    if (!number_parse_count(value, least, most, &read, &why))
        return refuse_value(reader, key->name, value, why.text);
    *out = (uint32_t) read;
    return true;
}

static bool read_size(struct reader *reader, const char *value, const struct key *key,
                      uint64_t *out)
{
    struct model_error why;
    return number_parse_size(value, out, &why) || refuse_value(reader, key->name, value, why.text);
}

/* Words between commas or spaces; `name_of` names the bits. */
static bool read_bits(struct reader *reader, const char *value, const struct key *key,
                      const char *(*name_of)(uint32_t bit), int bit_count, uint32_t *out)
{
    char copy[LINE_CHARS_MAX], known[160] = "";
    uint32_t bits = 0;
    snprintf(copy, sizeof copy, "%s", value);
    char *rest;
    for (char *word = strtok_r(copy, ", \t", &rest); word; word = strtok_r(NULL, ", \t", &rest)) {
        int bit = 0;
        while (bit < bit_count && strcmp(word, name_of(UINT32_C(1) << bit)))
            bit++;
        if (bit == bit_count) {
            for (int i = 0; i < bit_count; i++) {
                size_t length = strlen(known);
                snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "known are ",
                         name_of(UINT32_C(1) << i));
            }
            return refuse_value(reader, key->name, value, known);
        }
        bits |= UINT32_C(1) << bit;
    }
    *out = bits;
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
        return refuse_value(reader, name, value,
                            "overhead is the sum of overhead_send and "
                            "overhead_receive; give either it or them");
    if (!model_attribute_check(MODEL_OVERHEAD_SEND, read, &why))
        return refuse_value(reader, name, value, why.text);
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

static bool is_attribute(const char *name)
{
    enum model_attribute attribute;
    split_way(&name);
    return !strcmp(name, "overhead") || find_attribute(name, &attribute);
}

static bool read_attribute(struct reader *reader, const char *value, const struct key *key)
{
    const char *name = key->name;
    enum model_way way = split_way(&name);
    enum model_attribute attribute = MODEL_LATENCY;
    struct model_error why;
    double read;
    if (!read_real(reader, value, key, &read))
        return false;
    if (!strncmp(name, "overhead", strlen("overhead")))
        return set_overhead(reader, way, name, value, read);
    find_attribute(name, &attribute);
    if (!model_attribute_check(attribute, read, &why))
        return refuse_value(reader, key->name, value, why.text);
    /* What a profile writes where bytes cost nothing that could be measured. */
    if (attribute == MODEL_BANDWIDTH && read >= LANE_FILE_BANDWIDTH_MOST)
        read = INFINITY;
    set_attribute(reader, way, attribute, read);
    return true;
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
    return refuse_value(reader, key->name, value, "it is eager, rndv or both");
}

static bool read_can(struct reader *reader, const char *value, const struct key *key)
{
    return read_bits(reader, value, key, ability_name, MODEL_ABILITIES, &reader->lane->can);
}

static bool read_reach(struct reader *reader, const char *value, const struct key *key)
{
    return read_bits(reader, value, key, memory_name, MODEL_MEMORIES, &reader->lane->reach);
}

static bool read_lane_size(struct reader *reader, const char *value, const struct key *key)
{
    uint64_t read;
    if (!read_size(reader, value, key, &read))
        return false;
    memcpy((char *) reader->lane + key->offset, &read, sizeof read);
    return true;
}

static bool read_lane_count(struct reader *reader, const char *value, const struct key *key)
{
    uint32_t read;
    if (!read_count(reader, value, key, 0, 1000000, &read))
        return false;
    memcpy((char *) reader->lane + key->offset, &read, sizeof read);
    return true;
}

static bool read_reg_cached(struct reader *reader, const char *value, const struct key *key)
{
    return read_real(reader, value, key, &reader->lane->reg_cached_s);
}

/* The index of a group, made on first mention. */
static bool find_group(struct reader *reader, const char *name, uint32_t *index)
{
    struct lane_file *file = reader->file;
    for (*index = 0; *index < file->group_name_count; ++*index)
        if (!strcmp(file->group_names[*index].name, name))
            return true;
    if (strlen(name) >= sizeof file->group_names[0].name)
        return refuse_line(reader, "this name is too long:", name);
    if (file->group_name_count == LANE_FILE_GROUPS_MAX)
        return refuse_line(reader, "there are too many groups with", name);
    snprintf(file->group_names[file->group_name_count++].name, sizeof file->group_names[0].name,
             "%s", name);
    return true;
}

static bool read_lane_group(struct reader *reader, const char *value, const struct key *key)
{
    uint32_t index;
    (void) key;
    if (!find_group(reader, value, &index))
        return false;
    reader->lane->group = index + 1;
    return true;
}

static const struct key lane_keys[] = {
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
    {"in_flight_max", read_lane_size, offsetof(struct model_lane, in_flight_max_bytes)},
    {"reg_cached", read_reg_cached, 0},
    {NULL, NULL, 0}};

/* --- keys of the other sections --------------------------------------------------------------- */

static bool read_bias(struct reader *reader, const char *value, const struct key *key)
{
    double read;
    if (!read_real(reader, value, key, &read))
        return false;
    if (!(read > 0 && read <= 100))
        return refuse_value(reader, key->name, value, "it is above 0 and at most 100");
    reader->file->around.bias = read;
    return true;
}

static bool read_file_count(struct reader *reader, const char *value, const struct key *key)
{
    uint32_t read;
    if (!read_count(reader, value, key, 0, 1000000, &read))
        return false;
    memcpy((char *) reader->file + key->offset, &read, sizeof read);
    return true;
}

static bool read_file_size(struct reader *reader, const char *value, const struct key *key)
{
    uint64_t read;
    if (!read_size(reader, value, key, &read))
        return false;
    memcpy((char *) reader->file + key->offset, &read, sizeof read);
    return true;
}

static const struct key top_keys[] = {
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
    if (!read_real(reader, value, key, &read))
        return false;
    if (!model_attribute_check(MODEL_BANDWIDTH, read, &why))
        return refuse_value(reader, key->name, value, why.text);
    reader->file->groups[reader->file->group_count++] =
        (struct model_group){reader->group + 1, read};
    return true;
}

static const struct key group_keys[] = {{"bandwidth", read_group_bandwidth, 0}, {NULL, NULL, 0}};

static bool read_copy(struct reader *reader, const char *value, const struct key *key)
{
    struct model_copy *copy = &reader->file->around.copy[reader->copy];
    return read_real(reader, value, key,
                     !strcmp(key->name, "cost") ? &copy->fixed_s : &copy->s_byte);
}

static const struct key copy_keys[] = {
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
        return refuse_value(reader, key->name, value, "it is seconds, then seconds a byte");
    if (!number_parse_real(fixed, &line->fixed_s, &why) ||
        (growth && !number_parse_real(growth, &line->growth_s_byte, &why)))
        return refuse_value(reader, key->name, value, why.text);
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
static bool read_cluster_latency(struct reader *reader, const char *value, const struct key *key)
{
    struct cluster_model *model = &reader->file->cluster;
    struct model_error why;
    uint64_t processes = 1;
    if (key->name[strlen("latency")] &&
        !number_parse_count(key->name + strlen("latency_"), 1, UINT32_MAX, &processes, &why))
        return refuse_value(reader, key->name, value, why.text);
    if (model->latency_count == CLUSTER_LATENCIES_MAX)
        return refuse_value(reader, key->name, value, "there are too many latencies");
    if (model->latency_count && processes <= model->latency[model->latency_count - 1].processes)
        return refuse_value(reader, key->name, value, "latencies stand in the order of processes");
    struct cluster_latency *latency = &model->latency[model->latency_count++];
    latency->processes = (uint32_t) processes;
    return read_line(reader, value, key, &latency->line);
}

static bool read_processes(struct reader *reader, const char *value, const struct key *key)
{
    return read_count(reader, value, key, 2, 1 << 24, &reader->file->cluster_processes);
}

#define CLUSTER_LINE(member) read_cluster_line, offsetof(struct lane_file, cluster.member)

static const struct key cluster_keys[] = {
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
        return refuse_value(reader, key->name, value, why.text);
    if (read != LANE_FILE_SCHEMA)
        return refuse_value(reader, key->name, value,
                            "this Multilane reads schema 1; measure anew by multilane-calibrate");
    reader->file->profile.schema = (uint32_t) read;
    return true;
}

static bool read_profile_text(struct reader *reader, const char *value, const struct key *key)
{
    char *text = (char *) reader->file + key->offset;
    if (strlen(value) >= LANE_FILE_TEXT_CHARS)
        return refuse_value(reader, key->name, value, "it is too long");
    snprintf(text, LANE_FILE_TEXT_CHARS, "%s", value);
    return true;
}

#define PROFILE_TEXT(member) read_profile_text, offsetof(struct lane_file, profile.member)

static const struct key profile_keys[] = {{"schema", read_schema, 0},
                                          {"made", PROFILE_TEXT(made)},
                                          {"processor", PROFILE_TEXT(machine.processor)},
                                          {"processors", PROFILE_TEXT(machine.processors)},
                                          {"kernel", PROFILE_TEXT(machine.kernel)},
                                          {"open_mpi", PROFILE_TEXT(machine.open_mpi)},
                                          {"multilane", PROFILE_TEXT(machine.multilane)},
                                          {NULL, NULL, 0}};

static const struct key no_keys[] = {{NULL, NULL, 0}};

/* --- sections --------------------------------------------------------------------------------- */

static bool begin_lane(struct reader *reader, const char *name, const char *rest)
{
    struct lane_file *file = reader->file;
    struct model_lane *lane = &file->lanes[file->lane_count];
    struct model_lane_range range = {.largest_bytes = UINT64_MAX};
    if (rest)
        return refuse_line(reader, "a lane's section has one name:", reader->title);
    if (strlen(name) >= sizeof lane->name)
        return refuse_line(reader, "this name is too long:", name);
    for (uint32_t i = 0; i < file->lane_count; i++)
        if (!strcmp(file->lanes[i].name, name))
            return model_fail(reader->error, "%.80s:%u: lane \"%s\" is there already, in line %u",
                              reader->name, reader->line, name, reader->drafts[i].line);
    if (file->lane_count == MODEL_LANES_MAX)
        return refuse_line(reader, "a plan has 16 lanes at most, this is one more:", name);
    model_lane_init(lane, name);
    lane->can = MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET | MODEL_CAN_PUT;
    lane->zcopied_max_bytes = UINT64_MAX;
    model_lane_set_cost(lane, MODEL_WAYS, &range);
    model_lane_set_cost(lane, MODEL_BY_BOTH, &range);
    reader->lane = lane;
    reader->draft = &reader->drafts[file->lane_count++];
    reader->draft->line = reader->line;
    return true;
}

/* A range takes over what the lane has so far and stands before it: the lane's own values hold
 * above all of its ranges. */
static bool begin_range(struct reader *reader, const char *name, const char *rest)
{
    struct model_error why;
    struct lane_file *file = reader->file;
    uint64_t bytes;
    uint32_t i = 0;
    while (i < file->lane_count && strcmp(file->lanes[i].name, name))
        i++;
    if (i == file->lane_count || i + 1 != file->lane_count)
        return refuse_line(reader, "a range follows the section of its lane, which is not so for",
                           name);
    if (!rest || !number_parse_size(rest, &bytes, &why))
        return refuse_line(reader, "a range is [range LANE LARGEST-SIZE], which is not",
                           reader->title);
    struct model_lane *lane = &file->lanes[i];
    uint32_t count = lane->cost[0].range_count;
    if (count == MODEL_LANE_RANGES_MAX)
        return refuse_line(reader,
                           "a lane has 40 ranges at most, this is one more:", reader->title);
    if (!bytes || bytes == UINT64_MAX ||
        (count > 1 && bytes <= lane->cost[0].ranges[count - 2].largest_bytes))
        return refuse_line(reader, "ranges grow from 1 on and end below inf, unlike",
                           reader->title);
    for (int way = 0; way < MODEL_WAYS; way++) {
        struct model_lane_range *ranges = lane->cost[way].ranges;
        ranges[count] = ranges[count - 1];
        ranges[count - 1].largest_bytes = bytes;
        lane->cost[way].range_count = count + 1;
    }
    reader->lane = lane;
    reader->range_bytes = bytes;
    memset(reader->draft->given, 0, sizeof reader->draft->given);
    reader->draft->overhead_whole = reader->draft->overhead_parts = false;
    return true;
}

static bool begin_group(struct reader *reader, const char *name, const char *rest)
{
    if (rest)
        return refuse_line(reader, "a group's section has one name:", reader->title);
    if (!find_group(reader, name, &reader->group))
        return false;
    if (reader->file->group_names[reader->group].measured)
        return refuse_line(reader, "this group is there already:", name);
    reader->file->group_names[reader->group].measured = true;
    return true;
}

static bool begin_copy(struct reader *reader, const char *name, const char *rest)
{
    for (reader->copy = 0; reader->copy < MODEL_MEMORIES; reader->copy++)
        if (!rest && !strcmp(name, memory_name(UINT32_C(1) << reader->copy))) {
            struct model_copy *copy = &reader->file->around.copy[reader->copy];
            if (copy->fixed_s < 0)
                *copy = (struct model_copy){0, 0};
            return true;
        }
    return refuse_line(reader, "copies are of host, cuda or managed memory, not of", name);
}

static bool begin_cluster(struct reader *reader)
{
    if (reader->file->has_cluster)
        return refuse_line(reader, "a second section", "cluster");
    reader->file->has_cluster = true;
    return true;
}

/* First of all: whose figures they are, and in which schema, decides what the rest means. */
static bool begin_profile(struct reader *reader)
{
    if (reader->file->has_profile)
        return refuse_line(reader, "a second section", "profile");
    if (reader->file->lane_count || reader->file->group_name_count || reader->file->has_cluster)
        return refuse_line(reader, "the first section of a profile is", "profile");
    reader->file->has_profile = true;
    return true;
}

/* Writes the range's values into the range, not into the lane's own: while a range section is read
 * the ranges are counted without the last one. */
static void hide_last_range(struct model_lane *lane, bool hide)
{
    for (int way = 0; way < MODEL_WAYS; way++)
        lane->cost[way].range_count += hide ? UINT32_MAX : 1;
}

static void end_section(struct reader *reader)
{
    if (reader->section == SECTION_RANGE)
        hide_last_range(reader->lane, false);
    reader->section = SECTION_TOP;
}

/* "kind", "kind name" or "kind name rest" between the brackets */
static bool begin_section(struct reader *reader, const char *inside)
{
    char copy[LINE_CHARS_MAX];
    end_section(reader);
    reader->seen_count = 0;
    snprintf(reader->title, sizeof reader->title, "%s", inside);
    snprintf(copy, sizeof copy, "%s", inside);
    char *place;
    const char *kind = strtok_r(copy, " \t", &place), *name = strtok_r(NULL, " \t", &place),
               *rest = strtok_r(NULL, " \t", &place);
    bool extra = strtok_r(NULL, " \t", &place);
    if (kind && !extra && name && !strcmp(kind, "lane")) {
        reader->section = SECTION_LANE;
        return begin_lane(reader, name, rest);
    }
    if (kind && !extra && name && !strcmp(kind, "range")) {
        if (!begin_range(reader, name, rest))
            return false;
        reader->section = SECTION_RANGE;
        hide_last_range(reader->lane, true);
        return true;
    }
    if (kind && !extra && name && !strcmp(kind, "group")) {
        reader->section = SECTION_GROUP;
        return begin_group(reader, name, rest);
    }
    if (kind && !extra && name && !strcmp(kind, "copy")) {
        reader->section = SECTION_COPY;
        return begin_copy(reader, name, rest);
    }
    if (kind && !name && !strcmp(kind, "cluster")) {
        reader->section = SECTION_CLUSTER;
        return begin_cluster(reader);
    }
    if (kind && !name && !strcmp(kind, "profile")) {
        reader->section = SECTION_PROFILE;
        return begin_profile(reader);
    }
    if (kind && !name && !strcmp(kind, "end")) {
        reader->section = SECTION_END;
        return true;
    }
    return refuse_line(reader,
                       "sections are [lane NAME], [range LANE SIZE], [group NAME], [copy MEMORY], "
                       "[cluster], [profile] and [end], not",
                       inside);
}

/* --- lines ------------------------------------------------------------------------------------ */

static const struct key *section_keys(const struct reader *reader)
{
    static const struct key *const keys[] = {
        [SECTION_TOP] = top_keys,         [SECTION_LANE] = lane_keys,
        [SECTION_RANGE] = no_keys,        [SECTION_GROUP] = group_keys,
        [SECTION_COPY] = copy_keys,       [SECTION_CLUSTER] = cluster_keys,
        [SECTION_PROFILE] = profile_keys, [SECTION_END] = no_keys};
    return keys[reader->section];
}

/* The key of this name in this section; name == NULL: there is none. */
static struct key find_key(const struct reader *reader, const char *name)
{
    static const struct key none = {NULL, NULL, 0};
    bool costs = reader->section == SECTION_LANE || reader->section == SECTION_RANGE;
    for (const struct key *key = section_keys(reader); key->name; key++)
        if (!strcmp(key->name, name))
            return *key;
    if (costs && is_attribute(name))
        return (struct key){name, read_attribute, 0};
    if (reader->section == SECTION_CLUSTER &&
        (!strcmp(name, "latency") || !strncmp(name, "latency_", strlen("latency_"))))
        return (struct key){name, read_cluster_latency, 0};
    return none;
}

/* `name` lives as long as the reader: it points into the copy of the text. */
static bool check_new(struct reader *reader, const char *name, const char *value)
{
    for (uint32_t i = 0; i < reader->seen_count; i++)
        if (!strcmp(reader->seen[i], name))
            return refuse_value(reader, name, value, "this key is there already");
    if (reader->seen_count == KEYS_MAX)
        return refuse_value(reader, name, value, "there are too many keys in this section");
    reader->seen[reader->seen_count++] = name;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without blanks at both ends. */
static char *trim(char *text)
{
    while (is_space(*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && is_space(end[-1]))
        end--;
    *end = 0;
    return text;
}

static bool read_key(struct reader *reader, char *line)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return refuse_line(reader, "this is neither [section] nor key = value:", line);
    *equals = 0;
    char *name = trim(line), *value = trim(equals + 1);
    struct key key = find_key(reader, name);
    if (!key.name)
        return refuse_value(
            reader, name, value,
            reader->section == SECTION_TOP
                ? "there is no such key above the first section; man multilane-plan "
                  "lists them"
                : "there is no such key in this section; man multilane-plan lists them");
    if (!*value)
        return refuse_value(reader, name, value, "the value is missing");
    return check_new(reader, name, value) && key.read(reader, value, &key);
}

/* Text only: a byte that no editor would leave there means that this is another kind of file. */
static bool check_text(struct reader *reader, const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char) line[i];
        if ((c < 0x20 && !is_space((char) c)) || c == 0x7f)
            return model_fail(reader->error, "%.80s:%u: byte 0x%02x: this is not a text file",
                              reader->name, reader->line, c);
    }
    if (length >= LINE_CHARS_MAX)
        return model_fail(reader->error, "%.80s:%u: a line of %zu characters, more than %d",
                          reader->name, reader->line, length, LINE_CHARS_MAX - 1);
    return true;
}

/* One line, ending in 0, which may be changed. */
static bool parse_line(struct reader *reader, char *line)
{
    char *comment = strchr(line, '#');
    if (comment)
        *comment = 0;
    line = trim(line);
    if (!*line)
        return true;
    if (*line != '[')
        return read_key(reader, line);
    char *end = line + strlen(line) - 1;
    if (*end != ']' || end == line)
        return refuse_line(reader, "the ] is missing:", line);
    *end = 0;
    if (reader->section == SECTION_END)
        return refuse_line(reader, "nothing follows [end], unlike", line);
    return begin_section(reader, trim(line + 1));
}

static bool parse_lines(struct reader *reader, char *text, size_t length)
{
    for (char *line = text; line < text + length; reader->line++) {
        char *end = memchr(line, '\n', (size_t) (text + length - line));
        size_t line_length = (size_t) ((end ? end : text + length) - line);
        if (!check_text(reader, line, line_length))
            return false;
        line[line_length] = 0; /* where the line end was, or the 0 behind the text */
        if (!parse_line(reader, line))
            return false;
        line += line_length + 1;
    }
    if (reader->file->has_profile && reader->section != SECTION_END)
        return model_fail(reader->error, "%.80s: it is cut off: a profile ends with [end]",
                          reader->name);
    end_section(reader);
    return true;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* A lane of which each way is described alone cannot go the others. What both ends do together is
 * known only where it was described. */
static void drop_ways(const struct lane_draft *draft, struct model_lane *lane)
{
    for (int way = 0; way < MODEL_WAYS; way++) {
        bool any = false;
        for (int i = 0; i < MODEL_WAYS; i++)
            any = any || draft->way_given[i];
        if (!draft->way_given[way] && (way == MODEL_BY_BOTH || (any && !draft->all_given)))
            lane->cost[way].range_count = 0;
    }
}

/* A range that is like the one after it tells nothing: the file divides every way where one of them
 * is divided. */
static void join_ranges(struct model_lane_cost *cost)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cost->range_count; i++) {
        struct model_lane_range before = kept ? cost->ranges[kept - 1] : cost->ranges[i];
        before.largest_bytes = cost->ranges[i].largest_bytes;
        kept -= kept && !memcmp(&before, &cost->ranges[i], sizeof before);
        cost->ranges[kept++] = cost->ranges[i];
    }
    cost->range_count = kept;
}

static bool check_lane(struct reader *reader, uint32_t i)
{
    struct model_error why;
    struct model_lane *lane = &reader->file->lanes[i];
    drop_ways(&reader->drafts[i], lane);
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t j = 0; j < lane->cost[way].range_count; j++)
            if (!(lane->cost[way].ranges[j].bandwidth_bytes_s > 0))
                return model_fail(reader->error,
                                  "%.80s:%u: lane \"%s\" has no bandwidth; add bandwidth = BYTES A "
                                  "SECOND",
                                  reader->name, reader->drafts[i].line, lane->name);
    for (int way = 0; way < MODEL_WAYS; way++)
        join_ranges(&lane->cost[way]);
    if (!model_lane_check(lane, &why))
        return model_fail(reader->error, "%.80s:%u: %.200s", reader->name, reader->drafts[i].line,
                          why.text);
    return true;
}

static bool check_file(struct reader *reader)
{
    struct model_error why;
    struct lane_file *file = reader->file;
    if (file->has_profile && !file->profile.schema)
        return model_fail(reader->error, "%.80s: [profile]: the schema is missing", reader->name);
    if (!file->lane_count)
        return model_fail(reader->error,
                          "%.80s: there is no lane in it; a lane is a section [lane NAME] with at "
                          "least bandwidth = BYTES A SECOND",
                          reader->name);
    for (uint32_t i = 0; i < file->lane_count; i++)
        if (!check_lane(reader, i))
            return false;
    if (file->has_cluster && !cluster_model_check(&file->cluster, &why))
        return model_fail(reader->error, "%.80s: [cluster]: %.200s", reader->name, why.text);
    return true;
}

void lane_file_init(struct lane_file *file)
{
    struct plan_input defaults;
    memset(file, 0, sizeof *file);
    plan_input_init(&defaults);
    file->around = defaults.around;
    file->cluster.packet_bytes = UINT64_MAX;
    file->cluster_processes = 2;
}

bool lane_file_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                     struct model_error *error)
{
    struct reader reader = {.name = name, .line = 1, .file = file, .error = error};
    lane_file_init(file);
    if (!length)
        return model_fail(error, "%.80s: it is empty; man multilane-plan shows an example", name);
    char *copy = malloc(length + 1);
    if (!copy)
        return model_fail(error, "%.80s: no memory for %zu bytes", name, length);
    memcpy(copy, text, length);
    copy[length] = 0;
    bool read = parse_lines(&reader, copy, length) && check_file(&reader);
    free(copy);
    return read;
}

const char *lane_file_name(const char *name)
{
    return strcmp(name, "-") ? name : "standard input";
}

bool lane_file_read(const char *name, struct lane_file *file, struct model_error *error)
{
    bool standard = !strcmp(name, "-");
    name = lane_file_name(name);
    FILE *stream = standard ? stdin : fopen(name, "rb");
    if (!stream)
        return model_fail(error, "%.80s: cannot be opened: %s", name, strerror(errno));
    char *text = malloc(LANE_FILE_BYTES_MAX + 1);
    size_t length = text ? fread(text, 1, LANE_FILE_BYTES_MAX + 1, stream) : 0;
    bool read;
    if (!text)
        read = model_fail(error, "%.80s: no memory to read it", name);
    else if (ferror(stream))
        read = model_fail(error, "%.80s: cannot be read: %s", name, strerror(errno));
    else if (length > LANE_FILE_BYTES_MAX)
        read = model_fail(error, "%.80s: it is larger than 1 MiB, so it does not describe lanes",
                          name);
    else
        read = lane_file_parse(name, text, length, file, error);
    free(text);
    if (!standard)
        fclose(stream);
    return read;
}
