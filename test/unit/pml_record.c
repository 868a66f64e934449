/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of other processes: every one that is not exactly what we can talk to is refused, with
 * the reason. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "base/parameters.h"
#include "contact/contact.h"
#include "wire/wire.h"

static struct record good_record(void)
{
    return (struct record){
        .magic = MODEX_MAGIC,
        .wire_version = WIRE_VERSION,
        .pointer_bytes = sizeof(void *),
        .record_bytes = sizeof(struct record),
        .byte_order = RECORD_BYTE_ORDER,
        .key_bytes = 64,
        .pid = 1,
        .ends = {.local_ranks = 2,
                 .lane_count = 2,
                 .lanes = {{"tcp", 1e-5, 0, 0, 1.25e9}, {"verbs", 1e-6, 2e-5, 1e-11, 0}}}};
}

/* As many of its lanes as there are are published. */
static size_t published(const struct record *record)
{
    return offsetof(struct record, ends.lanes) +
           record->ends.lane_count * sizeof(record->ends.lanes[0]);
}

static void expect_refused(const void *data, size_t bytes, const char *because)
{
    struct error_text why = {"(nothing)"};
    CHECK(!record_check(data, bytes, &why) && strstr(why.text, because),
          "refused for \"%s\", not for \"%s\"", why.text, because);
}

static void good_records_are_accepted(void)
{
    for (uint32_t lanes = 0; lanes <= RECORD_LANES_MAX; lanes++) {
        struct record record = good_record();
        struct error_text why;
        for (uint32_t i = 2; i < lanes; i++)
            record.ends.lanes[i] = record.ends.lanes[0];
        record.ends.lane_count = lanes;
        CHECK(record_check(&record, published(&record), &why), "%u lanes: %s", lanes, why.text);
    }
}

/* Both ends are of one version, so a length that is not this one's is damage. */
static void other_lengths_are_refused(void)
{
    struct record record = good_record();
    expect_refused(&record, published(&record) - 1, "its length cannot be");
    expect_refused(&record, sizeof(record), "its length cannot be");
    record.record_bytes++;
    expect_refused(&record, published(&record), "its length cannot be");
    record = good_record();
    record.ends.lane_count = RECORD_LANES_MAX + 1;
    expect_refused(&record, sizeof(record), "its length cannot be");
    record.ends.lane_count = UINT32_MAX;
    expect_refused(&record, sizeof(record), "its length cannot be");
}

static void lanes_that_cannot_be_are_refused(void)
{
    static const double impossible[] = {-1e-6, NAN, INFINITY, 1e300};
    for (int i = 0; i < 16; i++) {
        struct record record = good_record();
        struct record_lane *lane = &record.ends.lanes[1];
        double *values[] = {&lane->overhead_s, &lane->reg_cost_s, &lane->reg_growth_s_byte,
                            &lane->bandwidth_bytes_s};
        *values[i / 4] = impossible[i % 4];
        /* A bandwidth may be infinite. */
        if (values[i / 4] != &lane->bandwidth_bytes_s || i % 4 != 2)
            expect_refused(&record, published(&record), "what it says of its lanes cannot be");
    }
    struct record record = good_record();
    record.ends.local_ranks = 0;
    expect_refused(&record, published(&record), "a node without processes");
    record = good_record();
    memset(record.ends.lanes[0].name, 'x', sizeof(record.ends.lanes[0].name));
    expect_refused(&record, published(&record), "what it says of its lanes cannot be");
    record = good_record();
    record.ends.lanes[0].name[0] = '\0';
    expect_refused(&record, published(&record), "what it says of its lanes cannot be");
}

static void other_magic_is_refused(void)
{
    for (size_t i = 0; i < sizeof(((struct record *) 0)->magic); i++) {
        struct record record = good_record();
        record.magic[i] ^= 0x20;
        expect_refused(&record, sizeof(record), "not one of Multilane's");
    }
}

static void other_wire_versions_are_refused_by_number(void)
{
    for (unsigned version = 0; version < 256; version++) {
        struct record record = good_record();
        char because[64];
        record.wire_version = (uint8_t) version;
        snprintf(because, sizeof(because), "wire version %u", version);
        if (version != WIRE_VERSION)
            expect_refused(&record, sizeof(record), because);
    }
}

static void other_byte_order_is_refused(void)
{
    struct record record = good_record();
    record.byte_order = 0x04030201;
    expect_refused(&record, sizeof(record), "byte order (04030201)");
    record.byte_order = 0;
    expect_refused(&record, sizeof(record), "byte order");
}

static void other_pointer_size_is_refused(void)
{
    struct record record = good_record();
    record.pointer_bytes = sizeof(void *) / 2;
    expect_refused(&record, sizeof(record), "pointer size (4)");
}

static void key_beyond_the_wire_is_refused(void)
{
    struct record record = good_record();
    struct error_text why;
    record.key_bytes = WIRE_KEY_MAX;
    CHECK(record_check(&record, published(&record), &why), "%s", why.text);
    record.key_bytes = WIRE_KEY_MAX + 1;
    expect_refused(&record, sizeof(record), "registration keys of 257 bytes");
    record.key_bytes = UINT32_MAX;
    expect_refused(&record, sizeof(record), "registration keys");
}

/* A later release may ask of its peers what this one cannot do. */
static void unknown_features_are_refused(void)
{
    for (unsigned bit = 2; bit < 32; bit++) { /* the first two: sums_are_of_both_ends */
        struct record record = good_record();
        char because[64];
        record.features = UINT32_C(1) << bit;
        snprintf(because, sizeof(because), "features (%08x)", record.features);
        expect_refused(&record, sizeof(record), because);
    }
}

static void sums_are_of_both_ends(void)
{
    static const char *const words[] = {"no messages", "messages over some lanes", "all messages"};
    for (unsigned ours = SUMS_OF_NONE; ours <= SUMS_OF_ALL; ours++)
        for (unsigned theirs = 0; theirs <= RECORD_SUMS; theirs++) {
            struct record record = good_record();
            struct error_text why;
            char because[96];
            parameters.sums = (enum sums) ours;
            record.features = theirs;
            snprintf(because, sizeof(because), "it makes sums of %s and this process of %s",
                     theirs < RECORD_SUMS ? words[theirs] : "?", words[ours]);
            if (theirs == ours)
                CHECK(record_check(&record, published(&record), &why), "%s", why.text);
            else
                expect_refused(&record, sizeof(record), because);
        }
    parameters.sums = SUMS_OF_NONE;
}

/* Each length is a block of its own, so that a checker sees a byte read beyond it. */
static void short_records_are_refused(void)
{
    struct record record = good_record();
    for (size_t bytes = 1; bytes < sizeof(record); bytes++) {
        struct error_text why;
        void *copy = malloc(bytes);
        memcpy(copy, &record, bytes);
        bool good = record_check(copy, bytes, &why);
        if (bytes < offsetof(struct record, features))
            CHECK(!good && strstr(why.text, "not one of Multilane's"), "%zu bytes", bytes);
        free(copy);
    }
    expect_refused("", 0, "0 bytes");
}

static void garbage_is_refused(void)
{
    uint64_t chance = 7;
    for (int i = 0; i < 20000; i++) {
        unsigned char bytes[200];
        size_t length = 1 + chance_below(&chance, sizeof(bytes));
        for (size_t at = 0; at < length; at++)
            bytes[at] = (unsigned char) chance_next(&chance);
        CHECK(!record_check(bytes, length, NULL), "%zu bytes", length);
    }
    for (int i = 0; i < 20000; i++) { /* one bit of what is checked is wrong */
        struct record record = good_record();
        size_t bit = chance_below(&chance, 8 * offsetof(struct record, key_bytes));
        ((unsigned char *) &record)[bit / 8] ^= (unsigned char) (1u << bit % 8);
        CHECK(!record_check(&record, published(&record), NULL), "bit %zu", bit);
    }
}

int main(void)
{
    good_records_are_accepted();
    other_lengths_are_refused();
    lanes_that_cannot_be_are_refused();
    other_magic_is_refused();
    other_wire_versions_are_refused_by_number();
    other_byte_order_is_refused();
    other_pointer_size_is_refused();
    key_beyond_the_wire_is_refused();
    unknown_features_are_refused();
    sums_are_of_both_ends();
    short_records_are_refused();
    garbage_is_refused();
    return check_end();
}
