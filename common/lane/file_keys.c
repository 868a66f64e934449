/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a lane file that are not a lane's: surroundings, groups, copies, of what machine a
 * profile is. */
#include "common/lane/file_keys.h"

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
            "this Multilane reads schema 2; measure anew by multilane-calibrate");
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
                                          {"header", reader_store_count,
                                           offsetof(struct lane_file, around.header_bytes)},
                                          {"credit", read_eager_bound, 0},
                                          {NULL, NULL, 0}};

const struct key reader_no_keys[] = {{NULL, NULL, 0}};
