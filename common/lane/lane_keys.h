/* SPDX-License-Identifier: BSD-3-Clause */
/* The one grammar of what people and files say of lanes: which keys there are, and how the value of
 * each is read. Lane files, profiles and parameters say them. */
#ifndef COMMON_LANE_LANE_KEYS_H
#define COMMON_LANE_LANE_KEYS_H

#include <stddef.h>

#include "common/lane/lane_file.h"

enum key_kind {
    KEY_COUNT,     /* uint32_t */
    KEY_SIZE,      /* uint64_t */
    KEY_REAL,      /* double */
    KEY_BANDWIDTH, /* double, bytes a second */
    KEY_BIAS,      /* double */
    KEY_LINE,      /* struct cost_line: its fixed part, or both */
    KEY_TEXT,      /* LANE_FILE_TEXT_CHARS of char */
    KEY_YES_NO,    /* bool */
    KEY_USE,       /* uint32_t, as are the two that follow: words for bits */
    KEY_ABILITIES,
    KEY_MEMORIES,
    KEY_SCHEMA,    /* uint32_t */
    KEY_EAGER_MAX, /* struct model_surroundings, a bound of eager messages */
    KEY_CREDIT     /* the same */
};

struct key {
    const char *name;
    enum key_kind kind;
    size_t offset; /* in what the section describes */
};

/* Of a lane, beside its attributes and its group; above all sections, of [copy], of [profile]. The
 * last one of each has no name. The first is in struct model_lane, [copy] in struct cost_line, the
 * others are in struct lane_file. */
extern const struct key lane_keys[], top_keys[], copy_keys[], profile_keys[];

/* Null: there is none of this name. */
const struct key *key_find(const struct key *keys, const char *name);

/* Reads a value to where it belongs in `base`. False: *why says what is wrong with it. */
bool key_read(const struct key *key, const char *value, void *base, struct error_text *why);

/* "FIXED" or "FIXED GROWTH", the value of a KEY_LINE. */
bool line_read(const char *value, struct cost_line *line, struct error_text *why);

/* What one key says of the attributes: "latency", or "get_latency" for one way alone. */
struct attribute_values {
    enum model_way way; /* MODEL_WAYS: all */
    bool is_given[MODEL_ATTRIBUTES];
    double values[MODEL_ATTRIBUTES];
};

bool attribute_is_key(const char *name);
bool attribute_read(const char *name, const char *value, struct attribute_values *out,
                    struct error_text *why);

#endif
