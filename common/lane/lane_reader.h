/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the reader of lane files share: where it is, and how a key is read. */
#ifndef COMMON_LANE_LANE_READER_H
#define COMMON_LANE_LANE_READER_H

#include "common/lane/lane_file.h"

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
    lane_file_cluster_key cluster_key; /* null: passed over */
    void *cluster;
    struct model_error *error;
    enum section section;
    char title[LINE_CHARS_MAX]; /* of the section, as written */
    struct model_lane *lane;    /* SECTION_LANE, SECTION_RANGE */
    struct lane_draft *draft;
    uint32_t group, copy; /* indices, in their sections */
    struct lane_draft drafts[MODEL_LANES_MAX];
    const char *seen[KEYS_MAX]; /* keys of this section so far */
    uint32_t seen_count;
};

struct key {
    const char *name;
    bool (*read)(struct reader *reader, const char *value, const struct key *key);
    size_t offset; /* for readers that only store: in the lane, or in the file */
};

/* Why the file is refused: a key's value, or a line. Both return false. */
bool reader_refuse_value(struct reader *reader, const char *key, const char *value,
                         const char *why);
bool reader_refuse_line(struct reader *reader, const char *what, const char *shown);

/* Readers of keys that only store what they read: in the lane whose section it is, else in the
 * file.
 */
bool reader_store_count(struct reader *reader, const char *value, const struct key *key);
bool reader_store_size(struct reader *reader, const char *value, const struct key *key);

/* A value as a number, a size with its unit, words that stand for bits. False: it was refused. */
bool reader_read_real(struct reader *reader, const char *value, const struct key *key, double *out);
bool reader_read_count(struct reader *reader, const char *value, const struct key *key,
                       uint64_t least, uint64_t most, uint32_t *out);
bool reader_read_size(struct reader *reader, const char *value, const struct key *key,
                      uint64_t *out);
bool reader_read_bits(struct reader *reader, const char *value, const struct key *key,
                      const char *(*name_of)(uint32_t bit), int bit_count, uint32_t *out);

#endif
