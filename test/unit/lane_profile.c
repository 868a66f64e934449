/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles: what is written is read again to the bit, what does not fit is refused with a sentence,
 * and what fits replaces a lane's costs. */
#include "check.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/lane/declared.h"
#include "common/lane/profile.h"
#include "common/lane/startup_measure.h"
#include "tools/lane/lane_input.h"
#include "tools/lane/profile_write.h"

static char folder[] = "/tmp/multilane-profile-XXXXXX";
static char path[128];

static double chance_time(uint64_t *chance)
{
    return chance_below(chance, 6) ? chance_real(chance) * 1e-5 : 0;
}

/* As many ranges as a fit may find: 16 of sends, 6 of each other way. */
static void chance_cost(uint64_t *chance, uint32_t most, struct model_lane_cost *cost)
{
    uint64_t end = 0;
    cost->range_count = 1 + (uint32_t) chance_below(chance, most);
    for (uint32_t i = 0; i < cost->range_count; i++) {
        end += 1 + chance_below(chance, 1 << 20);
        cost->ranges[i] =
            (struct model_lane_range){.largest_bytes = i + 1 < cost->range_count ? end : UINT64_MAX,
                                      .latency_s = chance_time(chance),
                                      .bandwidth_bytes_s = 1e6 + chance_real(chance) * 1e11,
                                      .overhead_send_s = chance_time(chance),
                                      .overhead_receive_s = chance_time(chance),
                                      .reg_cost_s = chance_time(chance),
                                      .reg_growth_s_byte = chance_time(chance) * 1e-5};
    }
}

static void chance_profile(uint64_t *chance, struct lane_file *file)
{
    lane_file_init(file);
    file->has_profile = true;
    file->profile.schema = LANE_FILE_SCHEMA;
    snprintf(file->profile.made, sizeof(file->profile.made), "2026-01-02 03:04 UTC");
    fingerprint_take("4.1.4", &file->profile.machine);
    lane_file_group(file, 0, "node")->bandwidth_bytes_s = 5e9 + chance_real(chance);
    file->lane_count = 1 + (uint32_t) chance_below(chance, 3);
    for (uint32_t i = 0; i < file->lane_count; i++) {
        static const char *const names[] = {"shm:shm@cache", "tcp@host", "vader@node"};
        struct model_lane *lane = &file->lanes[i];
        model_lane_init(lane, names[i]);
        lane->can = MODEL_CAN_SEND | MODEL_CAN_SHORT;
        lane->short_max_bytes = chance_below(chance, 2) ? chance_below(chance, 4096) : 0;
        lane->copied_max_bytes = chance_below(chance, 65536);
        lane->zcopied_max_bytes = chance_below(chance, 2) ? UINT64_MAX : 0;
        lane->reg_cached_s = chance_below(chance, 2) ? chance_time(chance) : -1;
        lane->copy_growth_s_byte = chance_below(chance, 2) ? chance_time(chance) : 0;
        lane->group = i ? 0 : 1;
        for (int way = 0; way < MODEL_WAYS; way++)
            if (way == MODEL_BY_SEND || chance_below(chance, 2))
                chance_cost(chance, way == MODEL_BY_SEND ? 16 : 6, &lane->cost[way]);
        model_lane_set_source(lane, MODEL_WAYS, MODEL_ATTRIBUTES, MODEL_SOURCE_PROFILE);
    }
}

/* The same cost at every size where something may change. */
static bool same_cost(const struct model_lane *a, const struct model_lane *b)
{
    for (int way = 0; way < MODEL_WAYS; way++) {
        if (!a->cost[way].range_count != !b->cost[way].range_count)
            return false;
        for (uint32_t i = 0; i < a->cost[way].range_count; i++) {
            uint64_t end = a->cost[way].ranges[i].largest_bytes;
            const struct model_lane_range *x = model_lane_range_at(a, (enum model_way) way, end);
            const struct model_lane_range *y = model_lane_range_at(b, (enum model_way) way, end);
            if (x->latency_s != y->latency_s || x->bandwidth_bytes_s != y->bandwidth_bytes_s ||
                x->overhead_send_s != y->overhead_send_s ||
                x->overhead_receive_s != y->overhead_receive_s || x->reg_cost_s != y->reg_cost_s ||
                x->reg_growth_s_byte != y->reg_growth_s_byte)
                return false;
        }
    }
    return true;
}

static void profiles_are_read_as_they_were_written(void)
{
    static struct lane_file written, read;
    uint64_t chance = 7;
    for (int round = 0; round < 300; round++) {
        struct error_text error = {""};
        chance_profile(&chance, &written);
        CHECK(profile_write(path, &written, &error), "%s", error.text);
        enum profile_state state =
            profile_read(path, &written.profile.machine, true, &read, &error);
        CHECK(state == PROFILE_READ, "round %d: %s", round, error.text);
        if (state != PROFILE_READ)
            return;
        CHECK(read.lane_count == written.lane_count && read.group_count == 1 &&
                  read.groups[0].bandwidth_bytes_s == written.groups[0].bandwidth_bytes_s,
              "%u lanes", read.lane_count);
        for (uint32_t i = 0; i < read.lane_count; i++) {
            const struct model_lane *a = &written.lanes[i], *b = &read.lanes[i];
            CHECK(!strcmp(a->name, b->name) && a->can == b->can && a->group == b->group &&
                      a->short_max_bytes == b->short_max_bytes &&
                      a->copied_max_bytes == b->copied_max_bytes &&
                      a->zcopied_max_bytes == b->zcopied_max_bytes &&
                      a->reg_cached_s == b->reg_cached_s &&
                      a->copy_growth_s_byte == b->copy_growth_s_byte,
                  "lane %s", a->name);
            CHECK(same_cost(a, b) && same_cost(b, a), "round %d: costs of %s", round, a->name);
            CHECK(a->cost[MODEL_BY_SEND].range_count == b->cost[MODEL_BY_SEND].range_count,
                  "round %d: sends of %s came back in %u ranges", round, a->name,
                  (unsigned) b->cost[MODEL_BY_SEND].range_count);
            CHECK(b->source[MODEL_BY_SEND][0][MODEL_BANDWIDTH] == MODEL_SOURCE_PROFILE, "source");
        }
    }
}

static void text_write(const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, length, file) == length && !fclose(file), "%s", path);
}

static void refused(const char *because)
{
    static struct lane_file read;
    struct fingerprint here;
    struct error_text error = {""};
    fingerprint_take("4.1.4", &here);
    CHECK(profile_read(path, &here, true, &read, &error) == PROFILE_REFUSED, "%s", because);
    CHECK(strstr(error.text, because), "\"%s\" does not say \"%s\"", error.text, because);
    CHECK(!strchr(error.text, '\n'), "one line: %s", error.text);
}

static void every_truncation_is_refused(void)
{
    static struct lane_file written, read;
    static char text[65536];
    struct error_text error;
    uint64_t chance = 11;
    chance_profile(&chance, &written);
    CHECK(profile_write(path, &written, &error), "%s", error.text);
    FILE *file = fopen(path, "r");
    size_t length = fread(text, 1, sizeof(text), file);
    fclose(file);
    for (size_t cut = 0; cut + 2 < length; cut += 1 + length / 200) {
        text_write(text, cut);
        CHECK(profile_read(path, &written.profile.machine, true, &read, &error) == PROFILE_REFUSED,
              "%zu of %zu bytes", cut, length);
    }
}

static void what_does_not_fit_is_refused(void)
{
    static struct lane_file written;
    struct error_text error;
    uint64_t chance = 13;
    chance_profile(&chance, &written);
    snprintf(written.profile.machine.kernel, sizeof(written.profile.machine.kernel), "0.1-ancient");
    CHECK(profile_write(path, &written, &error), "%s", error.text);
    refused("its kernel is \"0.1-ancient\", this one's");

    static const char other_schema[] = "[profile]\nschema = 9\nnew_key = 5\n[end]\n";
    text_write(other_schema, sizeof(other_schema) - 1);
    refused("reads schema 3");
    static const char lanes_only[] = "[lane a]\nbandwidth = 1e9\n";
    text_write(lanes_only, sizeof(lanes_only) - 1);
    refused("no section [profile]");
    static const char impossible[] =
        "[profile]\nschema = 3\n[lane a@node]\nsend_bandwidth = 0\n[end]\n";
    text_write(impossible, sizeof(impossible) - 1);
    refused("bandwidth");
    static const char negative[] =
        "[profile]\nschema = 3\n[lane a@node]\nsend_bandwidth = 1\nsend_latency = -1\n[end]\n";
    text_write(negative, sizeof(negative) - 1);
    refused("send_latency = -1");
    text_write("\x7f"
               "ELF\0\0",
               6);
    refused("not a text file");

    snprintf(path, sizeof(path), "%s", folder);
    refused("not a file");
    snprintf(path, sizeof(path), "%s/pipe", folder);
    CHECK(mkfifo(path, 0600) == 0, "a pipe");
    refused("not a file"); /* and does not wait for a writer */
    unlink(path);
}

/* Bytes of 0x80 and above begin commands of some terminals. */
static void what_is_quoted_can_be_printed(void)
{
    static const char damaged[] = "[profile]\nschema = \x9b"
                                  "31m\xff\n[end]\n";
    snprintf(path, sizeof(path), "%s/profile", folder);
    text_write(damaged, sizeof(damaged) - 1);
    refused("schema = ?31m?");
}

/* The umask holds for the profile, and the user's cache is the user's alone. */
static void what_is_made_is_no_more_open_than_wanted(void)
{
    static struct lane_file written;
    struct error_text error;
    struct stat status;
    uint64_t chance = 19;
    chance_profile(&chance, &written);
    mode_t before = umask(0077);
    setenv("HOME", folder, 1);
    snprintf(path, sizeof(path), "%s/.cache/multilane/profile", folder);
    CHECK(profile_write(path, &written, &error), "%s", error.text);
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600, "mode %o", status.st_mode);
    umask(0022);
    CHECK(profile_write(path, &written, &error), "%s", error.text);
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0644, "mode %o", status.st_mode);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    CHECK(profile_write(strcat(path, "/profile"), &written, &error), "%s", error.text);
    unlink(path);
    *strrchr(path, '/') = '\0';
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0700, "mode %o", status.st_mode);
    rmdir(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    /* A folder whose name only begins as the user's. */
    snprintf(path, sizeof(path), "%s-of-all/profile", folder);
    CHECK(profile_write(path, &written, &error), "%s", error.text);
    unlink(path);
    *strrchr(path, '/') = '\0';
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0755, "mode %o", status.st_mode);
    rmdir(path);
    umask(before);
}

static void absence_is_no_complaint(void)
{
    static struct lane_file read;
    struct fingerprint here;
    struct error_text error;
    fingerprint_take("4.1.4", &here);
    snprintf(path, sizeof(path), "%s/nothing", folder);
    CHECK(profile_read(path, &here, true, &read, &error) == PROFILE_ABSENT, "%s", path);
    snprintf(path, sizeof(path), "%s/no/folder/nothing", folder);
    CHECK(profile_read(path, &here, true, &read, &error) == PROFILE_ABSENT, "%s", path);
}

static void what_cannot_be_written_is_said(void)
{
    static struct lane_file written;
    struct error_text error = {""};
    uint64_t chance = 17;
    chance_profile(&chance, &written);
    CHECK(!profile_write("/proc/nowhere/profile", &written, &error), "written to /proc");
    CHECK(strstr(error.text, "/proc/nowhere"), "%s", error.text);
}

static void paths_follow_the_environment(void)
{
    struct fingerprint here, other;
    char a[PROFILE_PATH_CHARS], b[PROFILE_PATH_CHARS];
    fingerprint_take("4.1.4", &here);
    fingerprint_take("5.0.7", &other);
    setenv("HOME", "/home/someone", 1);
    unsetenv("XDG_CACHE_HOME");
    profile_path(PROFILE_OF_USER, "/site", &here, a);
    CHECK(strncmp(a, "/home/someone/.cache/multilane/profile-", 39) == 0, "%s", a);
    profile_path(PROFILE_OF_USER, "/site", &other, b);
    CHECK(strcmp(a, b) != 0, "two Open MPIs share %s", a);
    setenv("XDG_CACHE_HOME", "/cache", 1);
    profile_path(PROFILE_OF_USER, "/site", &here, a);
    CHECK(strncmp(a, "/cache/multilane/profile-", 25) == 0, "%s", a);
    profile_path(PROFILE_OF_SITE, "/site", &here, a);
    CHECK(strncmp(a, "/site/profile-", 14) == 0, "%s", a);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    profile_path(PROFILE_OF_USER, "/site", &here, a);
    CHECK(!a[0], "%s", a);
}

static void costs_are_replaced_and_abilities_kept(void)
{
    static struct lane_file profile;
    struct model_lane lane;
    struct model_lane_range range = {UINT64_MAX, 1e-6, 1e9, 1e-6, 1e-6, 0, 0};
    lane_file_init(&profile);
    profile.lane_count = 1;
    model_lane_init(&profile.lanes[0], "shm@cache");
    model_lane_set_cost(&profile.lanes[0], MODEL_WAYS, &range);
    model_lane_set_cost(&profile.lanes[0], MODEL_BY_BOTH, &range);
    profile.lanes[0].reg_cached_s = 3e-7;

    model_lane_init(&lane, "shm");
    lane.can = MODEL_CAN_SEND;
    range.bandwidth_bytes_s = 5e9;
    model_lane_set_cost(&lane, MODEL_BY_SEND, &range);
    CHECK(profile_apply(&profile, PROFILE_NODE, &lane), "the other placement inside the node");
    CHECK(lane.can == MODEL_CAN_SEND && !lane.cost[MODEL_BY_GET].range_count, "abilities stay");
    CHECK(lane.cost[MODEL_BY_SEND].ranges[0].bandwidth_bytes_s == 1e9, "costs are the profile's");
    CHECK(lane.source[MODEL_BY_SEND][0][MODEL_LATENCY] == MODEL_SOURCE_PROFILE, "so is the source");
    CHECK(lane.reg_cached_s == 3e-7, "and a registration from the cache");
    profile.lanes[0].reg_cached_s = -1;
    CHECK(profile_apply(&profile, PROFILE_NODE, &lane) && lane.reg_cached_s == 3e-7,
          "what was not measured stays what it was, and not %g", lane.reg_cached_s);
    lane.copy_growth_s_byte = 1e-10;
    profile.lanes[0].copy_growth_s_byte = 2e-10;
    CHECK(profile_apply(&profile, PROFILE_NODE, &lane) && lane.copy_growth_s_byte == 2e-10,
          "a copy that was measured, and not %g", lane.copy_growth_s_byte);
    profile.lanes[0].copy_growth_s_byte = 0;
    CHECK(profile_apply(&profile, PROFILE_NODE, &lane) && lane.copy_growth_s_byte == 0,
          "a profile that knows no choice, and not %g", lane.copy_growth_s_byte);
    profile.lanes[0].copy_growth_s_byte = 2e-10;
    CHECK(profile_apply(&profile, PROFILE_NODE, &lane) && lane.copy_growth_s_byte == 0,
          "a lane that has no choice, and not %g", lane.copy_growth_s_byte);
    CHECK(!profile_apply(&profile, PROFILE_HOST, &lane), "another host is another matter");
    snprintf(lane.name, sizeof(lane.name), "sh");
    CHECK(!profile_apply(&profile, PROFILE_CACHE, &lane), "another name");
}

/* Costs of a machine whose ring and whose kernel copy at these speeds, beside what they take for
 * any size. */
static struct startup_costs costs_of(double ring_bytes_s, double kernel_bytes_s)
{
    struct startup_costs costs = {.empty_s = 1e-7,
                                  .both_s = 6e-7 + (double) STARTUP_BYTES(STARTUP_1M) /
                                                       (2 * kernel_bytes_s)};
    for (int i = 0; i < STARTUP_SIZES; i++) {
        costs.ring_s[i] = 2e-7 + (double) STARTUP_BYTES(i) / ring_bytes_s;
        costs.kernel_s[i] = 6e-7 + (double) STARTUP_BYTES(i) / kernel_bytes_s;
    }
    return costs;
}

static struct model_lane lane_in_memory(void)
{
    static const struct model_lane_range sends[] = {{56, 6e-8, INFINITY, 3e-8, 3e-8, 0, 0},
                                                    {UINT64_MAX, 8e-8, 27e9, 5e-8, 5e-8, 0, 0}};
    struct model_lane_range copies = {UINT64_MAX, 6e-8, 11e9, 1.5e-6, 0, 3e-8, 0};
    struct model_lane lane;
    model_lane_init(&lane, "shm");
    lane.can = MODEL_CAN_SEND | MODEL_CAN_GET | MODEL_CAN_PUT | MODEL_CAN_CONTROL | MODEL_CAN_RING;
    model_lane_set_cost(&lane, MODEL_WAYS, &copies);
    lane.cost[MODEL_BY_SEND].range_count = 2;
    memcpy(lane.cost[MODEL_BY_SEND].ranges, sends, sizeof(sends));
    return lane;
}

static double bandwidth_of(const struct model_lane *lane, enum model_way way, uint64_t bytes)
{
    return model_lane_range_at(lane, way, bytes)->bandwidth_bytes_s;
}

/* Each measured number goes where it belongs; what was not measured stays. */
static void measured_costs_replace_declared_ones(void)
{
    struct error_text error;
    struct model_lane lane = lane_in_memory();
    struct startup_costs costs = costs_of(10e9, 30e9);
    startup_apply(&costs, &lane);
    CHECK(model_lane_check(&lane, &error), "%s", error.text);
    CHECK(isinf(bandwidth_of(&lane, MODEL_BY_SEND, 56)), "a line of the ring stays as declared");
    for (uint64_t bytes = 57; bytes < (1 << 20); bytes *= 3)
        CHECK(fabs(bandwidth_of(&lane, MODEL_BY_SEND, bytes) / 10e9 - 1) < 0.3, "%g at %llu",
              bandwidth_of(&lane, MODEL_BY_SEND, bytes), (unsigned long long) bytes);
    CHECK(fabs(bandwidth_of(&lane, MODEL_BY_GET, 262144) / 30e9 - 1) < 0.1, "gets in caches");
    CHECK(fabs(bandwidth_of(&lane, MODEL_BY_BOTH, 262144) / 30e9 - 1) < 0.1, "both in caches");
    CHECK(fabs(bandwidth_of(&lane, MODEL_BY_BOTH, 262145) / 60e9 - 1) < 0.1, "both beyond them");
    CHECK(fabs(bandwidth_of(&lane, MODEL_BY_GET, 262145) / 30e9 - 1) < 0.1, "one beyond them");
    CHECK(lane.source[MODEL_BY_SEND][1][MODEL_BANDWIDTH] == MODEL_SOURCE_MEASURED &&
              lane.source[MODEL_BY_SEND][1][MODEL_LATENCY] != MODEL_SOURCE_MEASURED,
          "sources");
    /* What was not measured does not say so: a line of the ring. */
    uint32_t last = lane.cost[MODEL_BY_GET].range_count - 1;
    CHECK(lane.source[MODEL_BY_SEND][0][MODEL_BANDWIDTH] != MODEL_SOURCE_MEASURED, "a line");
    for (int way = MODEL_BY_GET; way <= MODEL_BY_BOTH; way++)
        CHECK(lane.source[way][0][MODEL_BANDWIDTH] == MODEL_SOURCE_MEASURED &&
                  lane.source[way][last][MODEL_BANDWIDTH] == MODEL_SOURCE_MEASURED &&
                  lane.source[way][last][MODEL_OVERHEAD_SEND] == MODEL_SOURCE_MEASURED,
              "way %d", way);
}

/* The same code plans differently for unlike machines. */
static void the_machine_decides_who_copies(void)
{
    struct startup_costs fast_kernel = costs_of(10e9, 30e9), slow_kernel = costs_of(30e9, 10e9);
    struct model_lane get = lane_in_memory(), ring = lane_in_memory();
    startup_apply(&fast_kernel, &get);
    startup_apply(&slow_kernel, &ring);
    CHECK(bandwidth_of(&get, MODEL_BY_GET, 65536) > bandwidth_of(&get, MODEL_BY_SEND, 65536) &&
              bandwidth_of(&ring, MODEL_BY_GET, 65536) < bandwidth_of(&ring, MODEL_BY_SEND, 65536),
          "the faster one is faster");
}

/* Where processes share processors, a full ring and the other end's answer both cost a change of
 * processes, and two ends are no faster than one. */
static void a_crowd_waits_for_its_turns(void)
{
    struct error_text error;
    struct startup_costs alone = costs_of(10e9, 10e9), crowded = alone;
    struct model_lane before = lane_in_memory(), lane = before;
    crowded.change_s = 1.9e-6;
    startup_apply(&alone, &before);
    startup_apply(&crowded, &lane);
    CHECK(model_lane_check(&lane, &error), "%s", error.text);
    for (uint64_t bytes = 57; bytes <= 32768; bytes *= 2)
        CHECK(bandwidth_of(&lane, MODEL_BY_SEND, bytes) ==
                  bandwidth_of(&before, MODEL_BY_SEND, bytes),
              "%llu bytes fit the ring", (unsigned long long) bytes);
    /* 64 KiB: 6.6 us, and two rings full with 4 changes each. */
    const struct model_lane_range *range = model_lane_range_at(&lane, MODEL_BY_SEND, 65536);
    double time_s =
        range->overhead_send_s + range->overhead_receive_s + 65536 / range->bandwidth_bytes_s;
    CHECK(fabs(time_s / 21.9e-6 - 1) < 0.05, "64 KiB take %g", time_s);
    for (int way = 0; way < MODEL_WAYS; way++)
        CHECK(model_lane_range_at(&lane, (enum model_way) way, 65536)->latency_s == 1.9e-6 &&
                  lane.source[way][0][MODEL_LATENCY] == MODEL_SOURCE_DEFAULT,
              "the latency of way %d", way);
    CHECK(bandwidth_of(&lane, MODEL_BY_BOTH, 1 << 20) == bandwidth_of(&lane, MODEL_BY_GET, 1 << 20),
          "both ends have one processor");
    /* And what is declared holds beside it, where nothing else was measured. */
    const struct startup_costs busy = {.change_s = STARTUP_CHANGE_S};
    lane = lane_in_memory();
    startup_apply(&busy, &lane);
    CHECK(model_lane_check(&lane, &error), "%s", error.text);
    CHECK(bandwidth_of(&lane, MODEL_BY_SEND, 32768) == 27e9 &&
              fabs(bandwidth_of(&lane, MODEL_BY_SEND, 32769) / 4.54e9 - 1) < 0.01 &&
              lane.source[MODEL_BY_GET][0][MODEL_LATENCY] == MODEL_SOURCE_DEFAULT,
          "a busy machine");
}

static void impossible_costs_change_nothing(void)
{
    const struct model_lane before = lane_in_memory();
    const double wrong[] = {0, -1, NAN, INFINITY, 1e300};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        for (size_t at = 0; at < sizeof(struct startup_costs) / sizeof(double); at++) {
            struct startup_costs costs = costs_of(10e9, 30e9);
            struct model_lane lane = before;
            if (at == offsetof(struct startup_costs, change_s) / sizeof(double) && wrong[i] == 0)
                continue;
            memcpy((char *) &costs + at * sizeof(double), &wrong[i], sizeof(double));
            startup_apply(&costs, &lane);
            CHECK(memcmp(&lane, &before, sizeof(lane)) == 0, "%g as number %zu", wrong[i], at);
        }
}

/* A connection inside a node is as fast as such ones are, not as its interface. */
static void sockets_inside_a_node_are_none_of_their_interface(void)
{
    struct error_text error;
    struct model_lane lane;
    const struct model_lane_range link = {UINT64_MAX, 20e-6, 125e6, 5e-6, 5e-6, 0, 0};
    model_lane_init(&lane, "tcp:eth0");
    lane.can = MODEL_CAN_SEND | MODEL_CAN_PUT;
    model_lane_set_cost(&lane, MODEL_BY_SEND, &link);
    model_lane_set_cost(&lane, MODEL_BY_PUT, &link);
    lane.shared_bytes_s = 125e6;
    declared_inside_node(true, &lane);
    CHECK(model_lane_check(&lane, &error), "%s", error.text);
    double put_bytes_s = bandwidth_of(&lane, MODEL_BY_PUT, 1);
    CHECK(put_bytes_s > 2e9 && put_bytes_s < 50e9 &&
              bandwidth_of(&lane, MODEL_BY_SEND, 1) == put_bytes_s / 2,
          "messages are copied once more than puts");
    const struct model_lane_range *range = model_lane_range_at(&lane, MODEL_BY_PUT, 1);
    double overhead_s = range->overhead_send_s + range->overhead_receive_s;
    CHECK(overhead_s > 2e-6 && overhead_s < 20e-6 && range->latency_s == 0 &&
              lane.shared_bytes_s == 0 && lane.group != 0,
          "what else it takes");
    declared_inside_node(false, &lane);
    CHECK(fabs(range->overhead_send_s + range->overhead_receive_s - overhead_s / 1.5) < 1e-12,
          "without Open MPI's event loop it takes less");
    CHECK(lane.source[MODEL_BY_PUT][0][MODEL_BANDWIDTH] == MODEL_SOURCE_DEFAULT &&
              lane.source[MODEL_BY_SEND][0][MODEL_LATENCY] == MODEL_SOURCE_DEFAULT,
          "sources");
}

/* What this machine says can be computed with; where it is too busy to say, all is zero. */
static void this_machine_is_measured_or_not(void)
{
    static const uint32_t processes[] = {2, 100000};
    struct startup_costs costs, zero = {0};
    struct error_text error;
    for (int i = 0; i < 2; i++) {
        struct model_lane lane = lane_in_memory();
        bool is_measured = startup_measure(processes[i], &costs);
        CHECK((costs.change_s > 0) == (i > 0), "a change takes %g among %u", costs.change_s,
              processes[i]);
        zero.change_s = costs.change_s;
        CHECK(is_measured ? startup_check(&costs) : memcmp(&costs, &zero, sizeof(zero)) == 0,
              "neither measured nor nothing");
        startup_apply(&costs, &lane);
        CHECK(model_lane_check(&lane, &error), "%s", error.text);
    }
}

int main(void)
{
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof(path), "%s/profile", folder);
    profiles_are_read_as_they_were_written();
    every_truncation_is_refused();
    what_does_not_fit_is_refused();
    what_is_quoted_can_be_printed();
    what_is_made_is_no_more_open_than_wanted();
    absence_is_no_complaint();
    what_cannot_be_written_is_said();
    paths_follow_the_environment();
    costs_are_replaced_and_abilities_kept();
    measured_costs_replace_declared_ones();
    the_machine_decides_who_copies();
    a_crowd_waits_for_its_turns();
    impossible_costs_change_nothing();
    sockets_inside_a_node_are_none_of_their_interface();
    this_machine_is_measured_or_not();
    snprintf(path, sizeof(path), "%s/profile", folder);
    unlink(path);
    rmdir(folder);
    return check_end();
}
