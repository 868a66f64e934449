/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles of the strict stand-in: what a kind of adapter limits and refuses, as its driver in
 * Linux and rdma-core does, and the words that change one. */
#include "strict.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a word can change is a number that all profiles share to begin with. */
#define COMMON                                                                                     \
    .hosts = 1, .devices = 1, .ports = 1, .width = 2, .mtu = 4096, .gids = 16, .pkeys = 1,         \
    .pkey = 0xffff, .retry_ms = 300, .inline_given = 1024

/* Numbers of rdma-core's providers and of the drivers in Linux. */
static const struct profile profiles[] = {
    {COMMON, .name = "mlx5", .vendor = 0x2c9, .max_qp = 131072, .max_qp_wr = 32768, .max_sge = 30,
     .max_cqe = 4194303, .max_srq = 8388608, .max_srq_wr = 32767, .reads_in = 16, .reads_out = 16,
     .max_inline = 1024, .atomics = 1, .request_bytes = 192, .speed = 64,
     .rules = RULE_READ_DEPTHS | RULE_PURGE | RULE_ROCE_SL | RULE_RELAXED_NO_ATOMICS},
    {COMMON, .name = "hns", .vendor = 0x19e5, .max_qp = 65536, .max_qp_wr = 32768, .max_sge = 64,
     .max_cqe = 4194303, .max_srq = 1024, .max_srq_wr = 32767, .reads_in = 128, .reads_out = 128,
     .max_inline = 1024, .atomics = 1, .request_bytes = 64, .speed = 32, .roce = 1,
     .rules = RULE_READ_DEPTHS | RULE_PATH_MTU},
    {COMMON, .name = "bnxt", .vendor = 0x14e4, .max_qp = 65536, .max_qp_wr = 65407, .max_sge = 13,
     .max_cqe = 1048576, .max_srq = 4096, .max_srq_wr = 65535, .reads_in = 126, .reads_out = 30,
     .max_inline = 96, .atomics = 1, .request_bytes = 128, .speed = 32, .roce = 1,
     .rules = RULE_READ_DEPTHS_MIXED},
    {COMMON, .name = "irdma", .vendor = 0x8086, .max_qp = 262140, .max_qp_wr = 8191, .max_sge = 13,
     .max_cqe = 1048574, .max_srq = 32767, .max_srq_wr = 16384, .reads_in = 127, .reads_out = 255,
     .max_inline = 101, .atomics = 1, .request_bytes = 128, .speed = 32, .roce = 1,
     .rules = RULE_READ_DEPTHS},
    {COMMON, .name = "e810", /* irdma's second generation */
     .vendor = 0x8086, .max_qp = 262140, .max_qp_wr = 2047, .max_sge = 13, .max_cqe = 1048574,
     .reads_in = 127, .reads_out = 255, .max_inline = 101, .request_bytes = 128, .speed = 32,
     .roce = 1, .rules = RULE_READ_DEPTHS},
};

#define PROFILES (sizeof(profiles) / sizeof(profiles[0]))

/* Codes of one lane of a cable: 2.5, 5, 10, 14, 25, 50, 100, 200 Gbit/s. */
#define SPEEDS "sdr=1 ddr=2 qdr=4 fdr10=8 fdr=16 edr=32 hdr=64 ndr=128 xdr=256"

struct setting {
    const char *key, *words;
    size_t at;
    long least, most;
};

#define SETTING(member, least, most, words)                                                        \
    {                                                                                              \
#member, words, offsetof(struct profile, member), least, most                              \
    }

static const struct setting settings[] = {
    SETTING(hosts, 1, 16, NULL),
    SETTING(devices, 1, 4, NULL),
    SETTING(ports, 1, PORTS, NULL),
    SETTING(roce, 0, 1, "no=0 yes=1"),
    SETTING(transport, 0, 4, "ib=0 iwarp=1 other=4"),
    SETTING(speed, 1, 256, SPEEDS),
    SETTING(slow_port, 0, 256, SPEEDS),
    SETTING(width, 1, 16, "1x=1 4x=2 8x=4 12x=8 2x=16"),
    SETTING(mtu, 256, 4096, NULL),
    SETTING(gids, 8, 4096, NULL),
    SETTING(foreign, 0, 2048, NULL),
    SETTING(routed, 0, 1, "no=0 yes=1"),
    SETTING(pkeys, 1, 128, NULL),
    SETTING(pkey, 1, 0xffff, NULL),
    SETTING(pkey_at, 0, 100, NULL),
    SETTING(sl, 0, 15, NULL),
    SETTING(traffic_class, 0, 255, NULL),
    SETTING(max_qp, 2, 8388608, NULL),
    SETTING(max_qp_wr, 1, 65536, NULL),
    SETTING(max_cqe, 1, 4194303, NULL),
    SETTING(max_srq, 0, 8388608, NULL),
    SETTING(max_srq_wr, 0, 65536, NULL),
    SETTING(reads_in, 0, 255, NULL),
    SETTING(reads_out, 0, 255, NULL),
    SETTING(max_inline, 0, 1024, NULL),
    SETTING(inline_given, 0, 1024, NULL),
    SETTING(atomics, 0, 2, "no=0 hca=1 global=2"),
    SETTING(memlock, 0, LONG_MAX, NULL),
    SETTING(retry_ms, 1, 60000, NULL),
    SETTING(delay_ms, 0, 60000, NULL),
    SETTING(datagrams, 0, 1, "lost=0 break=1"),
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* The number that a word of `words` ("a=1 b=2") stands for; -1: none. */
static long word_value(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, length) == 0 && at[length] == '=')
            return strtol(at + length + 1, NULL, 10);
    }
    return -1;
}

static bool setting_read(struct profile *profile, const char *key, const char *value, char *why,
                         size_t room)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *setting = &settings[i];
        char *end;
        long number;

        if (strcmp(setting->key, key) != 0)
            continue;
        number = setting->words ? word_value(setting->words, value) : -1;
        if (number < 0) {
            number = strtol(value, &end, 0);
            if (end == value || *end != '\0' || number < setting->least || number > setting->most) {
                snprintf(why, room, "%s is \"%s\"; it can be %ld to %ld%s%s", key, value,
                         setting->least, setting->most, setting->words ? ", or " : "",
                         setting->words ? setting->words : "");
                return false;
            }
        }
        *(long *) (void *) ((char *) profile + setting->at) = number;
        return true;
    }
    snprintf(why, room, "it has no setting \"%s\"; see test/fake/verbs/profile.c", key);
    return false;
}

/* POSTS:EVENT:DEVICE:PORT */
static bool at_read(struct profile *profile, const char *value, char *why, size_t room)
{
    struct at_event *at = &profile->at[profile->at_count];
    char more;

    if (profile->at_count == (int) (sizeof(profile->at) / sizeof(profile->at[0])) ||
        sscanf(value, "%ld:%23[a-z_]:%d:%d%c", &at->posts, at->what, &at->device, &at->port,
               &more) != 4 ||
        at->posts < 1 || at->device < 0 || at->device >= DEVICES || at->port < 1 ||
        at->port > PORTS || !strstr(event_names, at->what)) {
        snprintf(why, room,
                 "at is \"%s\"; it can be POSTS:EVENT:DEVICE:PORT, at most 8 times, with "
                 "an event of %s",
                 value, event_names);
        return false;
    }
    profile->at_count++;
    return true;
}

bool profile_read(const char *words, struct profile *profile, char *why, size_t room)
{
    char copy[1024], *rest = NULL, *word;
    bool good = false;

    if (snprintf(copy, sizeof(copy), "%s", words) >= (int) sizeof(copy)) {
        snprintf(why, room, "it is longer than %zu characters", sizeof(copy) - 1);
        return false;
    }
    word = strtok_r(copy, ",", &rest);
    for (size_t i = 0; word && i < PROFILES; i++)
        if (strcmp(word, profiles[i].name) == 0) {
            *profile = profiles[i];
            good = true;
        }
    if (!good)
        snprintf(why, room, "no profile \"%s\"; there are mlx5, hns, bnxt, irdma and e810",
                 word ? word : "");
    while (good && (word = strtok_r(NULL, ",", &rest))) {
        char *value = strchr(word, '=');

        if (value)
            *value++ = '\0';
        good = strcmp(word, "at") == 0 ? at_read(profile, value ? value : "", why, room)
                                       : setting_read(profile, word, value ? value : "", why, room);
    }
    if (good && profile->foreign + 8 > profile->gids) {
        snprintf(why, room, "foreign is %ld, which does not fit a table of gids=%ld",
                 profile->foreign, profile->gids);
        good = false;
    }
    return good;
}

const struct profile *profile_get(void)
{
    static struct profile profile;
    const char *words = getenv("MULTILANE_STRICT_VERBS");
    char why[512];

    if (profile.name)
        return &profile;
    if (!profile_read(words && *words ? words : "mlx5", &profile, why, sizeof(why))) {
        fprintf(stderr, "MULTILANE_STRICT_VERBS is \"%s\": %s.\n", words, why);
        exit(1);
    }
    return &profile;
}
