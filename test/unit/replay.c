/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings of small jobs, replayed: times by hand, and files that are damaged. Takes half a
 * second. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "model_lanes.h"
#include "tools/replay/replay.h"

#define RANKS    4
#define EVENTS   64
#define US       UINT64_C(1000)
#define MANY     1000 /* damaged recordings */
#define BYTES_1M 1000000

/* A job that is being written: what a rank does next, and for how long it computed before. */
static struct {
    struct record_head head[RANKS];
    struct record_event events[RANKS][EVENTS];
    uint32_t count[RANKS], ranks;
} job;

static char folder[] = "/tmp/multilane-replay-XXXXXX";

static void job_begin(uint32_t ranks)
{
    memset(&job, 0, sizeof(job));
    job.ranks = ranks;
    for (uint32_t i = 0; i < ranks; i++) {
        job.head[i] = (struct record_head){.magic = RECORD_MAGIC,
                                           .version = RECORD_VERSION,
                                           .event_bytes = sizeof(struct record_event),
                                           .job = 7,
                                           .rank = i,
                                           .job_size = ranks,
                                           .began_ns = 1000 * US};
        job.head[i].host[0] = (char) ('a' + i / (ranks / 2)); /* two nodes */
    }
}

static uint32_t did(uint32_t rank, uint64_t computed_us, struct record_event event)
{
    uint32_t number = job.count[rank]++;
    uint64_t before = number ? job.events[rank][number - 1].time_ns : 0;
    event.computed_ns = computed_us * US;
    event.time_ns = before + computed_us * US;
    job.events[rank][number] = event;
    return number;
}

static uint32_t sends(uint32_t rank, uint64_t computed_us, uint32_t to, int tag, uint64_t bytes)
{
    return did(rank, computed_us,
               (struct record_event){.kind = RECORD_SEND, .peer = to, .tag = tag, .bytes = bytes});
}

static uint32_t receives(uint32_t rank, uint64_t computed_us, uint32_t from, int tag)
{
    return did(rank, computed_us,
               (struct record_event){.kind = RECORD_RECEIVE, .peer = from, .tag = tag});
}

static void done(uint32_t rank, uint64_t computed_us, uint32_t number, uint32_t from, int tag)
{
    did(rank, computed_us,
        (struct record_event){.kind = RECORD_DONE, .number = number, .peer = from, .tag = tag});
}

static void path_of(uint32_t rank, char path[64])
{
    snprintf(path, 64, "%s/" RECORD_FILE_NAME ".7.%u", folder, rank);
}

static void file_write(uint32_t rank, const void *bytes, size_t length)
{
    char path[64];
    path_of(rank, path);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, length, file) == length, "%s", path);
    if (file)
        fclose(file);
}

static size_t job_bytes(uint32_t rank, char *bytes)
{
    size_t events = job.count[rank] * sizeof(struct record_event);
    memcpy(bytes, &job.head[rank], sizeof(job.head[rank]));
    memcpy(bytes + sizeof(job.head[rank]), job.events[rank], events);
    return sizeof(job.head[rank]) + events;
}

static void files_remove(void)
{
    char path[64];
    for (uint32_t i = 0; i < RANKS; i++) {
        path_of(i, path);
        (void) unlink(path);
    }
}

static void job_write(void)
{
    static char bytes[sizeof(job)];
    files_remove();
    for (uint32_t i = 0; i < job.ranks; i++)
        file_write(i, bytes, job_bytes(i, bytes));
}

static void job_end(void)
{
    for (uint32_t i = 0; i < job.ranks; i++)
        did(i, 0, (struct record_event){.kind = RECORD_END, .peer = RECORD_ANY});
    job_write();
}

/* --- lanes: 100 MB/s, 20 us, 10 us ------------------------------------------------------------ */

static struct model_lane lanes_made[2];

static void lanes_make(struct replay_lanes *lanes, uint32_t count, double shared,
                       const char *protocol)
{
    static struct plan_override overrides[PLAN_OVERRIDES_MAX];
    struct error_text why;
    *lanes = (struct replay_lanes){.is_profile = false};
    for (uint32_t i = 0; i < count; i++) {
        fake_lane(&lanes_made[i], "rail", MODEL_USE_BOTH, 20e-6, 1e8, 10e-6, 0, 0);
        lanes_made[i].can = MODEL_CAN_SEND;
        lanes_made[i].shared_bytes_s = shared;
    }
    for (int place = 0; place < REPLAY_PLACES; place++) {
        struct plan_input *input = &lanes->input[place];
        plan_input_init(input);
        input->lanes = lanes_made;
        input->lane_count = count;
        input->around.bias = 1;
        input->overrides = overrides;
        CHECK(plan_overrides_parse(protocol, overrides, &input->override_count, &why), "%s",
              why.text);
        for (int view = 0; view < 2; view++) {
            input->view = (enum cost_view) view;
            lanes->plan[place][view] = plan_build(input, &why);
            CHECK(lanes->plan[place][view], "%s", why.text);
        }
    }
}

static void lanes_free(struct replay_lanes *lanes)
{
    for (int i = 0; i < REPLAY_PLACES * 2; i++)
        plan_free(lanes->plan[i / 2][i % 2]);
}

/* Loads and replays what was written; false: *why. */
static bool replayed(struct replay_lanes *lanes, struct replay_result *result,
                     struct error_text *why)
{
    struct recording recording;
    *result = (struct replay_result){.ranks = NULL};
    bool is_good = recording_load(folder, &recording, why);
    if (is_good)
        is_good = replay_run(&recording, lanes, result, why);
    recording_free(&recording);
    return is_good;
}

/* In microseconds; the lanes are freed. */
static double takes_us(struct replay_lanes *lanes, struct replay_result *result)
{
    struct error_text why = {""};
    CHECK(replayed(lanes, result, &why), "%s", why.text);
    lanes_free(lanes);
    return 1e6 * result->takes_s;
}

static bool is_about(double value, double wanted)
{
    return fabs(value - wanted) < 1e-3 * wanted + 1e-3;
}

/* --- what must hold --------------------------------------------------------------------------- */

/* O_s 5 us, 1000 B 10 us, L 20 us, O_r 5 us. */
static void one_message(void)
{
    struct replay_lanes lanes;
    struct replay_result result;
    job_begin(2);
    done(1, 0, receives(1, 0, 0, 3), 0, 3);
    did(0, 100, (struct record_event){.kind = RECORD_SEND, .peer = 1, .tag = 3, .bytes = 1000});
    job_end();
    lanes_make(&lanes, 1, 0, "eager-zcopy");
    double us = takes_us(&lanes, &result);
    CHECK(is_about(us, 140), "%f", us);
    CHECK(is_about(1e6 * result.ranks[1].waits_s, 140), "%g", result.ranks[1].waits_s);
    CHECK(is_about(1e6 * result.ranks[0].waits_s, 5), "%g", result.ranks[0].waits_s);
    CHECK(result.messages == 1 && result.bytes == 1000 && result.nodes == 2 && !result.unmatched,
          "%g bytes", result.bytes);
    replay_free(&result);
}

/* Two lanes carry half each; overheads of two. */
static void more_lanes(void)
{
    struct replay_lanes lanes;
    struct replay_result one, two;
    job_begin(2);
    done(1, 0, receives(1, 0, RECORD_ANY, RECORD_ANY_TAG), 0, 3);
    (void) sends(0, 0, 1, 3, BYTES_1M);
    job_end();
    lanes_make(&lanes, 1, 0, "eager-zcopy");
    double us = takes_us(&lanes, &one);
    CHECK(is_about(us, 10030), "%f", us);
    lanes_make(&lanes, 2, 0, "eager-zcopy");
    us = takes_us(&lanes, &two);
    CHECK(is_about(us, 5040), "%f", us);
    replay_free(&one);
    replay_free(&two);
}

/* Each rank's lane carries 100 MB/s, that of the node too, or twice that. */
static void shared_lane(void)
{
    for (int twice = 1; twice < 3; twice++) {
        struct replay_lanes lanes;
        struct replay_result result;
        job_begin(4);
        for (uint32_t i = 0; i < 2; i++) {
            done(i + 2, 0, receives(i + 2, 0, i, 3), i, 3);
            (void) sends(i, 0, i + 2, 3, BYTES_1M);
        }
        job_end();
        lanes_make(&lanes, 1, twice * 1e8, "eager-zcopy");
        double us = takes_us(&lanes, &result);
        CHECK(is_about(us, twice == 1 ? 20030 : 10030), "%d: %f", twice, us);
        replay_free(&result);
    }
}

/* A rendezvous needs its receiver's call, an eager message does not: the receiver computes 20 ms.
 */
static void who_computes(void)
{
    const char *const protocols[] = {"eager-zcopy", "rndv-am"};
    /* 5 us of its receive's end; then RTR and data, 2 latencies, and the receiver's 10 us */
    const double wanted_us[] = {20005, 20000 + 20 + 10000 + 40 + 10};
    for (int i = 0; i < 2; i++) {
        struct replay_lanes lanes;
        struct replay_result result;
        job_begin(2);
        done(1, 20000, receives(1, 0, 0, 3), 0, 3);
        done(0, 0, sends(0, 0, 1, 3, BYTES_1M), RECORD_ANY, 0);
        job_end();
        lanes_make(&lanes, 1, 0, protocols[i]);
        double us = takes_us(&lanes, &result);
        CHECK(is_about(us, wanted_us[i]), "%s: %f", protocols[i], us);
        replay_free(&result);
    }
}

/* Receives are posted in another order than messages are sent, one from any source: the tag says
 * which message each got. The one that rank 0 sends after a second is what rank 1 waits for. */
static void order_of_tags(void)
{
    struct replay_lanes lanes;
    struct replay_result result;
    job_begin(2);
    uint32_t late = receives(1, 0, RECORD_ANY, 4), soon = receives(1, 0, RECORD_ANY, 3);
    done(1, 0, soon, 0, 3);
    did(1, 500, (struct record_event){.kind = RECORD_SEND, .peer = 0, .tag = 9}); /* not received */
    done(1, 0, late, 0, 4);
    (void) sends(0, 0, 1, 3, 8);
    (void) sends(0, 1000000, 1, 4, 8);
    job_end();
    lanes_make(&lanes, 1, 0, "eager-zcopy");
    double us = takes_us(&lanes, &result);
    CHECK(us > 1000000 && us < 1000100, "%f", us);
    CHECK(result.messages == 2 && result.unmatched == 1, "%" PRIu64 " unmatched", result.unmatched);
    replay_free(&result);
}

/* Both send first: an eager message does not wait for its receive, a rendezvous does. */
static void send_first(void)
{
    for (int rendezvous = 0; rendezvous < 2; rendezvous++) {
        struct replay_lanes lanes;
        struct replay_result result;
        struct error_text why = {""};
        job_begin(2);
        for (uint32_t i = 0; i < 2; i++) {
            done(i, 0, sends(i, 0, 1 - i, 3, 100), RECORD_ANY, 0);
            done(i, 0, receives(i, 0, 1 - i, 3), 1 - i, 3);
        }
        job_end();
        lanes_make(&lanes, 1, 0, rendezvous ? "rndv-am" : "eager-zcopy");
        bool is_good = replayed(&lanes, &result, &why);
        CHECK(is_good != rendezvous, "%s", why.text);
        CHECK(!rendezvous || strstr(why.text, "rank 0 waits for good at event 1"), "%s", why.text);
        lanes_free(&lanes);
        replay_free(&result);
    }
}

static void is_refused(const char *what)
{
    struct recording recording;
    struct error_text why = {""};
    CHECK(!recording_load(folder, &recording, &why) && strstr(why.text, what), "%s: \"%s\"", what,
          why.text);
    recording_free(&recording);
}

static void bad_folders(void)
{
    char path[64];
    files_remove();
    is_refused("no recording is there");
    job_begin(2);
    did(0, 0, (struct record_event){.kind = RECORD_END, .peer = RECORD_ANY});
    did(1, 0, (struct record_event){.kind = RECORD_END, .peer = RECORD_ANY});
    job.head[1].job = 8;
    job_write();
    is_refused("two jobs are there");
    job.head[1].job = 7;
    job.head[1].version++;
    job_write();
    is_refused("has version 2");
    job_write();
    path_of(1, path);
    (void) unlink(path);
    is_refused("rank 1 of 2 is not there");
    job.head[1].version--;
    job.head[1].host[0] = '\033';
    job_write();
    is_refused("rank 1 of 2, or its node, cannot be");
    job.head[1].host[0] = 'b';
    job.events[1][0] = (struct record_event){.kind = RECORD_DONE, .number = 0};
    job_write();
    is_refused("event 0 of 1 cannot be");
    file_write(1, &job.head[1], sizeof(job.head[1]));
    is_refused("nothing was recorded");
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0, "%s", path);
    is_refused("it is not a file");
}

/* Whatever was damaged: it is refused with a sentence, or replayed to an end. */
static void damaged(void)
{
    static char bytes[sizeof(job)];
    uint64_t chance = 5;
    unsigned refused = 0, replays = 0;
    for (int turn = 0; turn < MANY; turn++) {
        struct replay_lanes lanes;
        struct replay_result result;
        struct error_text why = {""};
        job_begin(2);
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t rank = i % 2, number = receives(rank, 5, 1 - rank, (int) i / 2);
            done(rank, 5, sends(rank, 5, 1 - rank, (int) i / 2, i * 1000), RECORD_ANY, 0);
            done(rank, 5, number, 1 - rank, (int) i / 2);
        }
        job_end();
        size_t length = job_bytes(0, bytes);
        for (uint64_t times = 1 + chance_below(&chance, 3); times; times--)
            bytes[chance_below(&chance, length)] ^= (char) (1u << chance_below(&chance, 8));
        if (chance_below(&chance, 4) == 0)
            length = chance_below(&chance, length);
        file_write(0, bytes, length);
        lanes_make(&lanes, 1, 0, turn % 2 ? "rndv-am" : "auto");
        bool is_good = replayed(&lanes, &result, &why);
        CHECK(is_good ? result.takes_s >= 0 && result.takes_s < 1e300 : why.text[0] != '\0',
              "turn %d: %g", turn, result.takes_s);
        refused += !is_good;
        replays += is_good;
        lanes_free(&lanes);
        replay_free(&result);
    }
    CHECK(refused > MANY / 10 && replays > MANY / 10, "%u refused, %u replayed", refused, replays);
}

int main(void)
{
    CHECK(mkdtemp(folder), "%s", folder);
    one_message();
    more_lanes();
    shared_lane();
    who_computes();
    order_of_tags();
    send_first();
    bad_folders();
    damaged();
    files_remove();
    CHECK(rmdir(folder) == 0, "%s", folder);
    return check_end();
}
