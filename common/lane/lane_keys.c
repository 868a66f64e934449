/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, and the values that they take. */
#include "common/lane/lane_keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/model/number.h"

#define VALUE_CHARS_MAX 400
#define COUNT_MOST      (1 << 24)
#define LINE_S_MOST     1e9

const struct key lane_keys[] = {
    {"use", KEY_USE, offsetof(struct model_lane, use)},
    {"verify", KEY_YES_NO, offsetof(struct model_lane, verify)},
    {"can", KEY_ABILITIES, offsetof(struct model_lane, can)},
    {"reach", KEY_MEMORIES, offsetof(struct model_lane, reach)},
    {"distance", KEY_COUNT, offsetof(struct model_lane, distance)},
    {"card", KEY_COUNT, offsetof(struct model_lane, card)},
    {"pieces_max", KEY_COUNT, offsetof(struct model_lane, pieces_max)},
    {"short_max", KEY_SIZE, offsetof(struct model_lane, short_max_bytes)},
    {"copied_max", KEY_SIZE, offsetof(struct model_lane, copied_max_bytes)},
    {"zcopied_max", KEY_SIZE, offsetof(struct model_lane, zcopied_max_bytes)},
    {"reg_cached", KEY_REAL, offsetof(struct model_lane, reg_cached_s)},
    {"copy_growth", KEY_REAL, offsetof(struct model_lane, copy_growth_s_byte)},
    {"shared", KEY_BANDWIDTH, offsetof(struct model_lane, shared_bytes_s)},
    {.name = NULL}};

const struct key top_keys[] = {
    {"bias", KEY_BIAS, offsetof(struct lane_file, around.bias)},
    {"eager_lanes", KEY_COUNT, offsetof(struct lane_file, most_eager_lanes)},
    {"rndv_lanes", KEY_COUNT, offsetof(struct lane_file, most_rndv_lanes)},
    {"header", KEY_COUNT, offsetof(struct lane_file, around.header_bytes)},
    {"eager_max", KEY_EAGER_MAX, offsetof(struct lane_file, around)},
    {"credit", KEY_CREDIT, offsetof(struct lane_file, around)},
    {"stage", KEY_SIZE, offsetof(struct lane_file, around.stage_bytes)},
    {.name = NULL}};

const struct key copy_keys[] = {{"cost", KEY_REAL, offsetof(struct cost_line, fixed_s)},
                                {"growth", KEY_REAL, offsetof(struct cost_line, growth_s_byte)},
                                {.name = NULL}};

/* The schema is the first: what follows may mean something else in another one. */
const struct key profile_keys[] = {
    {"schema", KEY_SCHEMA, offsetof(struct lane_file, profile.schema)},
    {"made", KEY_TEXT, offsetof(struct lane_file, profile.made)},
    {"processor", KEY_TEXT, offsetof(struct lane_file, profile.machine.processor)},
    {"processors", KEY_TEXT, offsetof(struct lane_file, profile.machine.processors)},
    {"kernel", KEY_TEXT, offsetof(struct lane_file, profile.machine.kernel)},
    {"open_mpi", KEY_TEXT, offsetof(struct lane_file, profile.machine.open_mpi)},
    {"multilane", KEY_TEXT, offsetof(struct lane_file, profile.machine.multilane)},
    {"header", KEY_COUNT, offsetof(struct lane_file, around.header_bytes)},
    {"credit", KEY_CREDIT, offsetof(struct lane_file, around)},
    {"registered", KEY_YES_NO, offsetof(struct lane_file, around.registration_cached)},
    {.name = NULL}};

const struct key *key_find(const struct key *keys, const char *name)
{
    while (keys->name && strcmp(keys->name, name) != 0)
        keys++;
    return keys->name ? keys : NULL;
}

/* --- values ----------------------------------------------------------------------------------- */

static bool read_count(const char *value, uint64_t least, uint64_t most, uint32_t *out,
                       struct error_text *why)
{
    uint64_t read;
    if (!number_parse_count(value, least, most, &read, why))
        return false;
    *out = (uint32_t) read;
    return true;
}

static bool read_bandwidth(const char *value, double *out, struct error_text *why)
{
    return number_parse_real(value, out, why) && model_attribute_check(MODEL_BANDWIDTH, *out, why);
}

static bool read_bias(const char *value, double *out, struct error_text *why)
{
    return number_parse_real(value, out, why) &&
           ((*out > 0 && *out <= MODEL_BIAS_MAX) ||
            fail_with(why, "it is above 0 and at most %d", MODEL_BIAS_MAX));
}

bool line_read(const char *value, struct cost_line *line, struct error_text *why)
{
    char copy[VALUE_CHARS_MAX];
    snprintf(copy, sizeof copy, "%s", value);
    char *rest;
    const char *fixed = strtok_r(copy, " \t", &rest), *growth = strtok_r(NULL, " \t", &rest);
    line->growth_s_byte = 0;
    if (!fixed || strtok_r(NULL, " \t", &rest))
        return fail_with(why, "it is seconds, then seconds a byte");
    if (!number_parse_real(fixed, &line->fixed_s, why) ||
        (growth && !number_parse_real(growth, &line->growth_s_byte, why)))
        return false;
    return fmax(line->fixed_s, line->growth_s_byte) <= LINE_S_MOST ||
           fail_with(why, "it is at most %g seconds", LINE_S_MOST);
}

static bool read_text(const char *value, char *out, struct error_text *why)
{
    if (strlen(value) >= LANE_FILE_TEXT_CHARS)
        return fail_with(why, "it is too long");
    snprintf(out, LANE_FILE_TEXT_CHARS, "%s", value);
    return true;
}

static bool read_yes_no(const char *value, bool *out, struct error_text *why)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return fail_with(why, "it is yes or no");
    *out = value[0] == 'y';
    return true;
}

static bool fail_bits(const char *(*name_of)(uint32_t bit), int bit_count, struct error_text *why)
{
    char known[160] = "";
    for (int i = 0; i < bit_count; i++)
        text_more(known, sizeof known, "%s%s", i ? ", " : "", name_of(UINT32_C(1) << i));
    return fail_with(why, "known are %s", known);
}

/* Words between commas or spaces; `name_of` names the bits. */
static bool read_bits(const char *value, const char *(*name_of)(uint32_t bit), int bit_count,
                      uint32_t *out, struct error_text *why)
{
    char copy[VALUE_CHARS_MAX], *rest;
    uint32_t bits = 0;
    snprintf(copy, sizeof copy, "%s", value);
    for (char *word = strtok_r(copy, ", \t", &rest); word; word = strtok_r(NULL, ", \t", &rest)) {
        int bit = 0;
        while (bit < bit_count && strcmp(word, name_of(UINT32_C(1) << bit)))
            bit++;
        if (bit == bit_count)
            return fail_bits(name_of, bit_count, why);
        bits |= UINT32_C(1) << bit;
    }
    *out = bits;
    return true;
}

static bool read_schema(const char *value, uint32_t *out, struct error_text *why)
{
    return read_count(value, 1, UINT32_MAX, out, why) &&
           (*out == LANE_FILE_SCHEMA ||
            fail_with(why, "this Multilane reads schema %d; measure anew by multilane-calibrate",
                      LANE_FILE_SCHEMA));
}

static bool read_eager_bound(const char *value, enum model_bound bound,
                             struct model_surroundings *around, struct error_text *why)
{
    uint64_t bytes;
    if (!number_parse_size(value, &bytes, why))
        return false;
    if (bytes)
        model_bound_eager(around, bound, bytes);
    return true;
}

bool key_read(const struct key *key, const char *value, void *base, struct error_text *why)
{
    void *at = (char *) base + key->offset;
    switch (key->kind) {
    case KEY_COUNT:
        return read_count(value, 0, COUNT_MOST, at, why);
    case KEY_SIZE:
        return number_parse_size(value, at, why);
    case KEY_REAL:
        return number_parse_real(value, at, why);
    case KEY_BANDWIDTH:
        return read_bandwidth(value, at, why);
    case KEY_BIAS:
        return read_bias(value, at, why);
    case KEY_LINE:
        return line_read(value, at, why);
    case KEY_TEXT:
        return read_text(value, at, why);
    case KEY_YES_NO:
        return read_yes_no(value, at, why);
    case KEY_USE:
        return model_use_find(value, at) || fail_with(why, "it is eager, rndv or both");
    case KEY_ABILITIES:
        return read_bits(value, model_ability_name, MODEL_ABILITIES, at, why);
    case KEY_MEMORIES:
        return read_bits(value, model_memory_name, MODEL_MEMORIES, at, why);
    case KEY_SCHEMA:
        return read_schema(value, at, why);
    case KEY_EAGER_MAX:
        return read_eager_bound(value, MODEL_BOUND_EAGER_MAX, at, why);
    case KEY_CREDIT:
        return read_eager_bound(value, MODEL_BOUND_CREDIT, at, why);
    }
    return false;
}

/* --- attributes ------------------------------------------------------------------------------- */

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

bool attribute_is_key(const char *name)
{
    bool is_one = false;
    split_way(&name);
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        is_one = is_one || is_set_by(i, name);
    return is_one;
}

bool attribute_read(const char *name, const char *value, struct attribute_values *out,
                    struct error_text *why)
{
    int parts = 0; /* in which the user's key is divided */
    double read;
    *out = (struct attribute_values){.way = split_way(&name)};
    if (!number_parse_real(value, &read, why))
        return false;
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        parts += !strcmp(name, model_attributes[i].user_key);
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        if (!is_set_by(i, name))
            continue;
        if (!model_attribute_check((enum model_attribute) i, read, why))
            return false;
        out->is_given[i] = true;
        out->values[i] = parts ? read / parts : read;
    }
    /* What a profile writes where bytes cost nothing that could be measured. */
    if (out->values[MODEL_BANDWIDTH] >= LANE_FILE_BANDWIDTH_MOST)
        out->values[MODEL_BANDWIDTH] = INFINITY;
    return true;
}
