/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers over two lanes that are none, which say nothing, break, are made anew and answer, or do
 * not, in a time that passes only here: a lane that can be made anew is, and a peer counts as lost
 * if none of its own lanes shows life, and else does not. */
#include "check.h"

#include <stdarg.h>
#include <string.h>

#include "base/own_page.h"
#include "base/parameters.h"
#include "lanes_standin.h"
#include "liveness/liveness.h"
#include "progress_standin.h"

#include "opal/runtime/opal.h"

#define PEERS       2
#define LANES       2
#define MILLISECOND UINT64_C(1000000)
#define LOST_MS     3000
#define LONG_MS     (3 * LOST_MS)
#define RENEWED_MS  500

static mca_btl_base_module_t *verbs[LANES];
static struct peer all_peers[PEERS];
static struct peer *const peer = &all_peers[0], *const other = &all_peers[1];
static struct peer *_Atomic by_rank[PEERS + 1]; /* as of standin_peer: from rank 1 on */
static struct lane all_lanes[PEERS][LANES];
static struct lane *const lanes = all_lanes[0];
static char endpoints[PEERS][LANES];
static unsigned asked[PEERS][LANES]; /* the last question on each lane */
static unsigned renewed[LANES];
static bool answers[LANES], is_lost, other_is_lost;
static bool renews_alone, is_cut; /* the lanes of `verbs` */

/* --- what lies around --------------------------------------------------------------------------
 */

/* The end of a job, of which Open MPI's own would tell all others. */
__attribute__((visibility("default"))) void
ompi_mpi_errors_are_fatal_comm_handler(struct ompi_communicator_t **comm, int *error_code, ...);

void ompi_mpi_errors_are_fatal_comm_handler(struct ompi_communicator_t **comm, int *error_code, ...)
{
    va_list values;
    unsigned rank = 0;
    (void) comm;
    va_start(values, error_code);
    const char *sentence = va_arg(values, const char *);
    va_end(values);
    CHECK(sscanf(sentence, "multilane: rank %u of job 0", &rank) == 1 && rank >= 1 && rank <= PEERS,
          "%s", sentence);
    *(rank == 1 ? &is_lost : &other_is_lost) = true;
}

static struct lane *lane_of(const struct mca_btl_base_endpoint_t *endpoint)
{
    for (int i = 0; i < PEERS * LANES; i++)
        if (all_lanes[i / LANES][i % LANES].endpoint == endpoint)
            return &all_lanes[i / LANES][i % LANES];
    abort();
}

static unsigned noted[LANES]; /* notes by lane */

static size_t note_ask(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       void *note)
{
    (void) btl, (void) endpoint;
    memcpy(note, "why", 4);
    return 4;
}

static size_t note_hear(const void *note, size_t length, void *answer)
{
    memcpy(answer, note, length);
    return length;
}

static uint64_t quiet_for_ms[LANES]; /* toward `peer` */
static unsigned closed[LANES];

static uint64_t quiet_ms(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    const struct lane *lane = lane_of(endpoint);
    (void) btl;
    return lane->peer == peer ? quiet_for_ms[lane->index] : 0;
}

static int close_lane(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    (void) btl;
    closed[lane_of(endpoint)->index]++;
    return OPAL_ERR_RESOURCE_BUSY;
}

static void return_to(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      multilane_returned returned, void *context)
{
    (void) btl, (void) endpoint, (void) context;
    CHECK(returned == NULL, "it has given up the peer");
}

static int attributes(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      struct multilane_lane_attributes *out)
{
    (void) btl, (void) endpoint;
    out->capabilities = renews_alone ? MULTILANE_CAN_RENEW : 0;
    out->memory = MODEL_MEMORY_HOST;
    out->copied_max_bytes = 64 << 10;
    out->cost[MODEL_BY_SEND].range_count = 1;
    out->cost[MODEL_BY_SEND].ranges[0] =
        (struct model_lane_range){.largest_bytes = UINT64_MAX, .latency_s = 1e-6};
    return OPAL_SUCCESS;
}

static const struct multilane_extension returning = {.attributes = attributes,
                                                     .fence = close_lane,
                                                     .return_to = return_to,
                                                     .quiet_ms = quiet_ms,
                                                     .fence_ask = note_ask,
                                                     .fence_hear = note_hear};

static bool question_taken(const mca_btl_base_module_t *btl,
                           const struct mca_btl_base_endpoint_t *endpoint,
                           const unsigned char *bytes, size_t length)
{
    const struct lane *lane = lane_of(endpoint);
    struct wire_base base;
    struct wire_ask ask;
    CHECK(btl == lane->btl && length >= sizeof(base), "%zu bytes", length);
    memcpy(&base, bytes, sizeof(base));
    if (base.type == WIRE_ASK) {
        size_t named = base.flags & WIRE_NAMED ? sizeof(struct wire_name) : 0;
        memcpy(&ask, bytes + sizeof(base) + named, sizeof(ask));
        asked[lane->peer - all_peers][lane->index] = ask.number;
    }
    if (base.type == WIRE_FENCE)
        noted[lane->index]++;
    return true;
}

/* A lane is made anew. */
static int verbs_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **ends, struct opal_bitmap_t *reachable)
{
    int index = btl == verbs[0] ? 0 : 1;
    (void) reachable;
    CHECK(count == 1 && btl == verbs[index], "%zu processes", count);
    renewed[index] += !is_cut;
    ends[0] = is_cut ? NULL : all_lanes[procs[0]->proc_name.vpid - 1][index].endpoint;
    return OPAL_SUCCESS;
}

/* --- the tests ---------------------------------------------------------------------------------
 */

static void peer_begin(struct peer *this)
{
    int number = (int) (this - all_peers);
    ompi_proc_t *proc = this->proc;
    memset(this, 0, sizeof(*this));
    this->proc = proc;
    this->name = proc->super.proc_name;
    this->lanes = all_lanes[number];
    this->lane_count = LANES;
    this->reachable = true;
    for (int i = 0; i < LANES; i++) {
        char *endpoint = &endpoints[number][i];
        this->lanes[i] =
            (struct lane){.btl = verbs[i],
                          .endpoint = (struct mca_btl_base_endpoint_t *) (void *) endpoint,
                          .peer = this,
                          .extension = &returning,
                          .alloc = verbs[i]->btl_alloc,
                          .prepare = verbs[i]->btl_prepare_src,
                          .send = verbs[i]->btl_send,
                          .flags = MCA_BTL_FLAGS_SEND,
                          .index = (uint8_t) i,
                          .returns = true,
                          .largest = 64 << 10};
    }
}

static void begin(void)
{
    livenesses_fini();
    memset(asked, 0, sizeof(asked));
    memset(renewed, 0, sizeof(renewed));
    memset(closed, 0, sizeof(closed));
    memset(quiet_for_ms, 0, sizeof(quiet_for_ms));
    is_lost = other_is_lost = renews_alone = is_cut = false;
    for (int i = 0; i < LANES; i++)
        answers[i] = true;
    for (int i = 0; i < PEERS; i++)
        peer_begin(&all_peers[i]);
    schedule_begin();
}

static void end(void)
{
    schedule_fini();
    free(atomic_exchange(&peer->histories, NULL));
    free(atomic_exchange(&other->histories, NULL));
}

static void answer_all(void)
{
    for (int i = 0; i < LANES; i++) {
        struct wire_ask answer = {.number = asked[0][i]};
        if (asked[0][i] && answers[i])
            CHECK(liveness_answered(peer, &lanes[i], &answer), "it was asked that");
        asked[0][i] = 0;
    }
}

static void pass(unsigned milliseconds)
{
    for (unsigned i = 0; i < milliseconds; i++) {
        standin_now_ns += MILLISECOND;
        progress_standin_run();
        answer_all();
    }
}

/* Something is under way on the first, and does not arrive. */
static void begin_late(void)
{
    begin();
    quiet_for_ms[0] = 1000;
    watch_peer(peer);
}

static void break_lane(int index)
{
    answers[index] = false;
    CHECK(lane_break(&lanes[index], "reported an error", "a cut wire"), "lane %d", index);
}

/* The first is made anew and never comes back; then the other one breaks. */
static void break_one_after_the_other(void)
{
    pass(RENEWED_MS);
    break_lane(0);
    pass(RENEWED_MS);
    CHECK(renewed[0] > 0 && lane_state(&lanes[0]) == LANE_SILENT, "lane 0 is not made anew");
    break_lane(1);
    pass(RENEWED_MS);
    CHECK(renewed[1] > 0, "lane 1 is not made anew");
}

static void test_lost_when_no_lane_comes_back(void)
{
    begin();
    break_one_after_the_other();
    pass(LONG_MS);
    CHECK(is_lost, "the peer is waited for, though nothing vouches for it");
    CHECK(!other_is_lost, "its own lanes are up");
    end();
}

static void test_kept_when_the_last_lane_comes_back(void)
{
    begin();
    break_one_after_the_other();
    answers[1] = true;
    pass(LONG_MS);
    CHECK(!is_lost, "the peer answers");
    CHECK(lane_is_up(&lanes[1]), "lane 1 answers");
    end();
}

/* It calls MPI too rarely to answer; its devices acknowledge, so no error comes. */
static void test_kept_while_it_computes(void)
{
    begin_late();
    answers[0] = answers[1] = false;
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    CHECK(lane_is_up(&lanes[0]) && lane_is_up(&lanes[1]), "no lane answers, so none is suspect");
    end();
}

/* The same over the lane that is left. */
static void test_kept_while_it_computes_over_one_lane(void)
{
    begin_late();
    pass(RENEWED_MS);
    break_lane(0);
    answers[1] = false;
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    CHECK(lane_is_up(&lanes[1]), "lane 1 is not suspect");
    end();
}

/* Nothing was ever sent on it, so nothing is lost, and the other one takes what is to come. */
static void test_unused_lane_breaks(void)
{
    begin();
    break_lane(0);
    pass(1);
    CHECK(lanes[0].lost, "plans do without the lane");
    CHECK(!is_lost, "lane 1 is left");
    end();
}

/* It says that messages are lost, which no other lane brings. */
static void test_lane_that_has_lost_messages_is_the_peers_end(void)
{
    begin();
    errors_from_btl(verbs[0], 0, &peer->proc->super, "a cut wire");
    pass(1);
    CHECK(!is_lost, "lane 1 is left");
    errors_from_btl(verbs[0], MCA_BTL_ERROR_FLAGS_FATAL, &peer->proc->super, "2 messages are lost");
    CHECK(is_lost && !other_is_lost, "later messages wait for the lost ones");
    end();
}

/* The only lane is cut for so long. */
static void only_lane_breaks(unsigned milliseconds)
{
    begin();
    peer->lane_count = 1;
    renews_alone = is_cut = true;
    break_lane(0);
    pass(milliseconds);
    is_cut = false;
}

static void test_only_lane_is_waited_for(void)
{
    only_lane_breaks(LOST_MS / 2);
    CHECK(!is_lost && lanes[0].lost && renewed[0] == 0, "it may come back");
    answers[0] = true;
    pass(RENEWED_MS);
    CHECK(renewed[0] == 1 && lane_is_up(&lanes[0]) && !lanes[0].lost, "it has come back");
    pass(LONG_MS);
    CHECK(!is_lost, "the peer answers");
    end();
    only_lane_breaks(LONG_MS);
    CHECK(is_lost, "it is waited for, though its time is over");
    end();
}

/* Of another job, in no communicator: it may connect again, and its lane is still tried. */
static void test_disconnected_process_is_not_given_up(void)
{
    begin();
    peer->lane_count = 1;
    peer->is_of_other_job = renews_alone = is_cut = true;
    break_lane(0);
    pass(LONG_MS);
    CHECK(!is_lost, "it is given up");
    is_cut = false;
    answers[0] = true;
    pass(LONG_MS);
    CHECK(renewed[0] == 1 && lane_is_up(&lanes[0]), "its lane does not come back");
    end();
}

static void test_only_lane_that_is_not_made_anew_is_the_peers_end(void)
{
    begin();
    peer->lane_count = 1;
    break_lane(0);
    pass(1);
    CHECK(is_lost, "it is waited for");
    end();
}

/* The other lane is shared memory, or one of Open MPI: it reports itself that the peer is gone. */
static void test_lane_that_delivers_shows_life(void)
{
    begin();
    lanes[1].extension = NULL;
    lanes[1].returns = false;
    answers[1] = false;
    break_lane(0);
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    CHECK(lane_is_up(&lanes[1]), "lane 1 delivers, whether or not the peer answers");
    CHECK(!lane_break(&lanes[1], "reported an error", "a cut wire"), "another one takes over");
    end();
}

/* A lane that is cut brings no word of its other end: another one does. */
static void test_other_end_of_a_broken_lane_is_told(void)
{
    struct wire_fence note = {.length = 4, .bytes = "why"};
    begin();
    memset(noted, 0, sizeof(noted));
    struct liveness *liveness = liveness_of(&all_peers[0]);
    pass(100);
    atomic_store(&lanes[0].health.state, LANE_BROKEN); /* the plans know it already */
    lanes[0].health.asked_ns = active_time_ns();
    schedule_add(liveness);
    pass(100);
    CHECK(noted[0] == 0 && noted[1] >= 1 && noted[1] <= 6, "%u and %u", noted[0], noted[1]);
    unsigned before = noted[1];
    CHECK(fence_heard(&all_peers[0], &lanes[1], &note) && noted[1] == before + 1, "%u", noted[1]);
    note.length = sizeof(note.bytes) + 1;
    CHECK(!fence_heard(&all_peers[0], &lanes[1], &note), "a note that does not fit is read");
    note.length = 0;
    CHECK(!fence_heard(&all_peers[0], &lanes[1], &note), "an empty note is read");
    end();
}

/* --- lanes that have to be tried ---------------------------------------------------------------
 */

static bool proven[LANES];

static bool is_proven(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      char *why, size_t room)
{
    (void) btl;
    snprintf(why, room, "has no connection: no answer");
    return proven[lane_of(endpoint)->index];
}

static const struct multilane_extension proving = {
    .attributes = attributes, .fence = close_lane, .return_to = return_to, .is_proven = is_proven};

static void begin_unproven(bool first, bool second)
{
    begin();
    proven[0] = first, proven[1] = second;
    for (int i = 0; i < LANES; i++) {
        lanes[i].extension = &proving;
        lanes[i].health.state = LANE_UNPROVEN;
    }
    lane_watch(&lanes[0]);
}

static void test_nothing_is_given_to_a_lane_that_is_not_proven(void)
{
    begin_unproven(false, false);
    pass(500);
    CHECK(!peer_lane_instead(&lanes[0], 8), "a message");
    CHECK(lane_state(&lanes[0]) == LANE_UNPROVEN && lane_state(&lanes[1]) == LANE_UNPROVEN,
          "none carries, so none is late");
    proven[1] = true;
    pass(5);
    CHECK(peer_lane_instead(&lanes[0], 8) == &lanes[1], "a message");
    CHECK(lane_is_up(&lanes[1]) && !lanes[0].lost, "it is waited for");
    end();
}

static void test_lane_that_leads_nowhere_is_left_out(void)
{
    begin_unproven(false, true);
    unsigned said = standin_said;
    pass(190);
    CHECK(!lanes[0].lost && standin_said == said, "it is waited for");
    pass(20);
    CHECK(lanes[0].lost && lane_state(&lanes[0]) == LANE_SILENT, "200 ms are over");
    CHECK(standin_said == said + 1 && strstr(standin_sentence, "has no connection: no answer"),
          "%s", standin_sentence);
    answers[0] = false;
    pass(LONG_MS);
    CHECK(standin_said == said + 1, "%u said", standin_said - said);
    answers[0] = proven[0] = true;
    pass(LONG_MS);
    CHECK(lane_is_up(&lanes[0]) && !lanes[0].lost, "it is used");
    end();
}

static void test_lane_that_is_proven_in_time_changes_nothing(void)
{
    begin_unproven(false, true);
    unsigned said = standin_said;
    uint64_t returned = multilane.lanes_returned;
    pass(100);
    proven[0] = true;
    pass(LONG_MS);
    CHECK(lane_is_up(&lanes[0]) && standin_said == said && multilane.lanes_returned == returned,
          "%s", standin_sentence);
    end();
}

/* To try costs nothing, and no message waits for it. */
static void test_lane_that_is_tried_is_made_anew_soon(void)
{
    begin();
    lanes[0].extension = &proving;
    pass(100);
    renewed[0] = 0;
    break_lane(0);
    pass((unsigned) parameters.suspect_ms / 2);
    CHECK(renewed[0] == 1 && lane_state(&lanes[0]) == LANE_SILENT, "%u times", renewed[0]);
    end();
}

static void around_begin(void)
{
    standin_begin();
    /* What the user says of our lanes is looked up there. */
    CHECK(opal_init_util(NULL, NULL) == OPAL_SUCCESS, "Open MPI's parameters");
    standin_takes = question_taken;
    errors_begin();
    parameters.failover = true;
    parameters.suspect_ms = 40;
    parameters.lost_s = LOST_MS / 1000;
    for (int i = 0; i < LANES; i++) {
        verbs[i] = standin_btl("verbs", 1000);
        verbs[i]->btl_add_procs = verbs_add_procs;
    }
    for (int i = 0; i < PEERS; i++) {
        all_peers[i].proc = standin_peer()->proc;
        all_peers[i].name = all_peers[i].proc->super.proc_name;
        by_rank[all_peers[i].name.vpid] = &all_peers[i];
    }
    multilane.local_peers = by_rank;
    multilane.local_peer_count = PEERS + 1;
    opal_progress_register(watch_progress);
}

static void test_changes_of_lanes_are_kept(void)
{
    static struct page page;
    static struct page_event events[PAGE_EVENTS];
    own_page = &page;
    own_events = events;
    tool_event_raise(TOOL_LANE_LOST, &other->name, 1);
    tool_event_raise(TOOL_PEER_SUSPECTED, &other->name, -1);
    const struct page_event *last = &events[1];
    while (last[1].kind)
        last++;
    CHECK(last[-1].kind == PAGE_EVENT_LANE && last[-1].first == PAGE_LANE_LOST &&
              last[-1].tag == 1 && last[-1].rank == (int32_t) other->name.vpid,
          "kind %u, change %u", last[-1].kind, last[-1].first);
    CHECK(last->number == last[-1].number + 1 && last->first == PAGE_PEER_SUSPECTED &&
              last->tag == -1,
          "number %u, change %u", last->number, last->first);
    own_events = NULL;
    own_page = NULL;
}

/* --- lanes that return messages, and say nothing when they are cut -----------------------------
 */

/* Nothing is kept by the PML: what is under way on a lane makes it ask. */
static void begin_quiet(uint64_t first_ms, bool first_answers)
{
    begin();
    quiet_for_ms[0] = first_ms;
    watch_peer(peer);
    answers[0] = first_answers;
    pass(RENEWED_MS / 5);
    CHECK(closed[1] == 0 && lane_is_up(&lanes[1]), "lane 1 is closed");
}

static void test_quiet_lane_is_asked_and_closed(void)
{
    begin_quiet(1000, false);
    CHECK(lane_state(&lanes[0]) == LANE_BROKEN && closed[0] >= 1, "lane 0 is not closed");
    end();
    begin_quiet(1000, true);
    CHECK(lane_is_up(&lanes[0]) && closed[0] == 0, "it answers: the peer computes, or is slow");
    end();
    begin_quiet(0, false);
    CHECK(lane_is_up(&lanes[0]) && closed[0] == 0, "nothing is under way");
    end();
}

/* As of a wait that spins, of a program that tests now and then, and of a wait that sleeps. */
static void test_time_passes_however_often_it_is_looked(void)
{
    static const uint64_t pauses_ns[] = {1000, 100000, MILLISECOND, 10 * MILLISECOND};

    begin();
    for (size_t i = 0; i < sizeof(pauses_ns) / sizeof(pauses_ns[0]); i++) {
        uint64_t began = active_time_ns();
        for (uint64_t passed_ns = 0; passed_ns < 1000 * MILLISECOND; passed_ns += pauses_ns[i]) {
            standin_now_ns += pauses_ns[i];
            progress_standin_run();
        }
        CHECK(active_time_ns() - began >= 850 * MILLISECOND,
              "%llu ns of a second, with calls %llu ns apart",
              (unsigned long long) (active_time_ns() - began), (unsigned long long) pauses_ns[i]);
    }
    end();
}

int main(void)
{
    around_begin();
    test_time_passes_however_often_it_is_looked();
    test_lost_when_no_lane_comes_back();
    test_kept_when_the_last_lane_comes_back();
    test_kept_while_it_computes();
    test_kept_while_it_computes_over_one_lane();
    test_unused_lane_breaks();
    test_lane_that_has_lost_messages_is_the_peers_end();
    test_only_lane_is_waited_for();
    test_disconnected_process_is_not_given_up();
    test_only_lane_that_is_not_made_anew_is_the_peers_end();
    test_lane_that_delivers_shows_life();
    test_other_end_of_a_broken_lane_is_told();
    test_quiet_lane_is_asked_and_closed();
    test_nothing_is_given_to_a_lane_that_is_not_proven();
    test_lane_that_leads_nowhere_is_left_out();
    test_lane_that_is_proven_in_time_changes_nothing();
    test_lane_that_is_tried_is_made_anew_soon();
    test_changes_of_lanes_are_kept();
    livenesses_fini();
    (void) opal_finalize_util();
    return check_end();
}
