/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers over two lanes that are none, which break, are made anew and answer, or do not, in a time
 * that passes only here: a lane that can be made anew is, and a peer counts as lost if none of its
 * own lanes shows life, and else does not. */
#include "check.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own_page.h"
#include "base/parameters.h"
#include "base/tool_events.h"
#include "common/compat/tcp.h"
#include "delivery/delivery.h"
#include "delivery/schedule.h"
#include "lanes_standin.h"
#include "liveness/errors.h"
#include "liveness/notes.h"
#include "liveness/watch.h"
#include "progress_standin.h"

#include "opal/runtime/opal.h"

#define PEERS       2
#define LANES       2
#define MILLISECOND UINT64_C(1000000)
#define LOST_MS     3000
#define LONG_MS     (3 * LOST_MS)
#define RENEWED_MS  500

static mca_btl_base_module_t *verbs[LANES], *tcp[LANES];
static struct peer all_peers[PEERS];
static struct peer *const peer = &all_peers[0], *const other = &all_peers[1];
static struct peer *_Atomic by_rank[PEERS + 1]; /* as of standin_peer: from rank 1 on */
static struct lane all_lanes[PEERS][LANES];
static struct lane *const lanes = all_lanes[0];
static struct compat_tcp_endpoint endpoints[PEERS][LANES];
static bool healthy[PEERS * LANES];  /* by socket */
static unsigned looks;               /* at a socket */
static unsigned asked[PEERS][LANES]; /* the last question on each lane */
static unsigned renewed[LANES];
static bool answers[LANES], is_lost, other_is_lost;

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

static unsigned noted[LANES]; /* notes by lane, */
static unsigned given[LANES]; /* and frames to `peer` */

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

static const struct multilane_extension noting = {.fence_ask = note_ask, .fence_hear = note_hear};

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
        memcpy(&ask, bytes + sizeof(base), sizeof(ask));
        asked[lane->peer - all_peers][lane->index] = ask.number;
    }
    if (base.type == WIRE_NOTE)
        noted[lane->index]++;
    if (base.type == WIRE_FRAME && lane->peer == peer)
        given[lane->index]++;
    return true;
}

/* A lane is made anew. */
static int verbs_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **ends, struct opal_bitmap_t *reachable)
{
    int index = btl == verbs[0] ? 0 : 1;
    (void) reachable;
    CHECK(count == 1 && btl == verbs[index], "%zu processes", count);
    renewed[index]++;
    ends[0] = all_lanes[procs[0]->proc_name.vpid - 1][index].endpoint;
    return OPAL_SUCCESS;
}

/* The kernel, which has sent again twice on each connection: one is healthy if the other end was
 * heard of just now, and is not if that is as long ago as the peer was asked. */
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict length)
{
    struct tcp_info info = {.tcpi_state = TCP_ESTABLISHED, .tcpi_retransmits = 2};
    CHECK(level == IPPROTO_TCP && name == TCP_INFO && *length >= sizeof(info), "option %d", name);
    if (*length > sizeof(info)) /* the kernel's own, of which this one tells nothing more */
        return -1;
    looks++;
    if (fd < 0 || fd >= PEERS * LANES)
        return -1;
    info.tcpi_last_ack_recv = healthy[fd] ? 0 : LOST_MS - 1;
    memcpy(value, &info, sizeof(info));
    return 0;
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
        struct compat_tcp_endpoint *endpoint = &endpoints[number][i];
        this->lanes[i] =
            (struct lane){.btl = verbs[i],
                          .endpoint = (struct mca_btl_base_endpoint_t *) (void *) endpoint,
                          .peer = this,
                          .flags = MCA_BTL_FLAGS_SEND,
                          .index = (uint8_t) i,
                          .framed = true,
                          .renewable = true,
                          .largest = 64 << 10};
    }
}

static void begin(void)
{
    deliveries_fini();
    memset(asked, 0, sizeof(asked));
    memset(renewed, 0, sizeof(renewed));
    memset(healthy, 0, sizeof(healthy));
    is_lost = other_is_lost = false;
    looks = 0;
    for (int i = 0; i < LANES; i++)
        answers[i] = true;
    for (int i = 0; i < PEERS; i++)
        peer_begin(&all_peers[i]);
    schedule_init(watch_progress);
    schedule_begin();
}

/* One of Open MPI's tcp from now on, with a socket. */
static void lane_make_tcp(struct lane *lane, bool is_healthy)
{
    int number = (int) (lane->peer - all_peers), socket = number * LANES + lane->index;
    struct compat_tcp_endpoint *endpoint = &endpoints[number][lane->index];
    endpoint->module = tcp[lane->index];
    endpoint->socket = socket;
    lane->btl = tcp[lane->index];
    lane->renewable = false;
    healthy[socket] = is_healthy;
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
        struct wire_heard heard = {.heard = 0, .ask = asked[0][i]};
        if (asked[0][i] && answers[i])
            delivery_heard(peer, &lanes[i], &heard);
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

static void keep_one_for(struct peer *this)
{
    CHECK(delivery_send(&this->lanes[0], "what the peer is slow to acknowledge", 37, NULL, NULL) ==
              LANE_UNDER_WAY,
          "there is room");
}

static void keep_one(void)
{
    keep_one_for(peer);
}

static void break_lane(int index)
{
    answers[index] = false;
    CHECK(delivery_lane_broke(&lanes[index], "reported an error", "a cut wire"), "lane %d", index);
}

/* The first is made anew and never comes back; then the other one breaks. */
static void break_one_after_the_other(void)
{
    keep_one();
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
    begin();
    keep_one();
    answers[0] = answers[1] = false;
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    CHECK(lane_is_up(&lanes[0]) && lane_is_up(&lanes[1]), "no lane answers, so none is suspect");
    end();
}

/* The same over the lane that is left. */
static void test_kept_while_it_computes_over_one_lane(void)
{
    begin();
    keep_one();
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

/* --- what the kernel knows of tcp ---------------------------------------------------------------
 */

/* Two tcp lanes; the peer answers on none, and both, one or no socket is healthy. */
static bool lost_over_tcp(bool first, bool second)
{
    begin();
    lane_make_tcp(&lanes[0], first);
    lane_make_tcp(&lanes[1], second);
    answers[0] = answers[1] = false;
    keep_one();
    pass(LONG_MS);
    end();
    return is_lost;
}

static void test_one_healthy_socket_is_life(void)
{
    CHECK(!lost_over_tcp(true, true), "it computes");
    CHECK(!lost_over_tcp(true, false), "it computes, and lane 1 is cut");
    CHECK(!lost_over_tcp(false, true), "it computes, and lane 0 is cut");
    CHECK(lost_over_tcp(false, false), "it is cut off");
}

/* A host dies: those that compute on another one are not lost with it. */
static void test_trouble_is_of_one_peer(void)
{
    begin();
    for (int i = 0; i < LANES; i++) {
        lane_make_tcp(&lanes[i], false);
        lane_make_tcp(&other->lanes[i], true);
    }
    answers[0] = answers[1] = false;
    keep_one();
    keep_one_for(other);
    pass(LONG_MS);
    CHECK(is_lost, "none of its sockets is healthy");
    CHECK(!other_is_lost, "its own sockets are healthy");
    end();
}

/* A peer with lanes of both kinds lives if any of them shows life. */
static bool lost_over_both(bool socket_lives, bool verbs_lives)
{
    begin();
    lane_make_tcp(&lanes[0], socket_lives);
    answers[0] = answers[1] = false;
    keep_one();
    pass(1);
    if (!verbs_lives)
        break_lane(1);
    pass(LONG_MS);
    end();
    return is_lost;
}

static void test_any_kind_of_lane_shows_life(void)
{
    CHECK(!lost_over_both(false, true), "the device acknowledges");
    CHECK(!lost_over_both(true, false), "the kernel acknowledges");
    CHECK(lost_over_both(false, false), "nothing shows life");
}

/* Nothing is kept for messages by the other lane, shared memory: it reports itself that the peer is
 * gone. */
static void test_lane_that_delivers_shows_life(void)
{
    begin();
    lane_make_tcp(&lanes[0], false);
    lanes[1].framed = lanes[1].renewable = false;
    answers[0] = answers[1] = false;
    keep_one();
    pass(LONG_MS);
    CHECK(!is_lost, "the peer computes");
    end();
}

/* As a tcp lane that never connects, beside shared memory. */
static void test_silent_beside_a_lane_that_delivers(void)
{
    begin();
    lane_make_tcp(&lanes[0], false);
    lanes[1].framed = lanes[1].renewable = false;
    answers[0] = false;
    keep_one();
    pass(RENEWED_MS);
    CHECK(lane_state(&lanes[0]) == LANE_SILENT, "lane 0 is waited for");
    CHECK(lane_is_up(&lanes[1]), "lane 1 delivers");
    answers[1] = false;
    pass(RENEWED_MS);
    CHECK(lane_is_up(&lanes[1]), "lane 1 delivers, whether or not the peer answers");
    end();
}

/* A lane that is cut brings no word of its other end: another one does. */
static void test_other_end_of_a_broken_lane_is_told(void)
{
    struct wire_note note = {.length = 4, .bytes = "why"};
    begin();
    lanes[0].extension = &noting;
    memset(noted, 0, sizeof(noted));
    struct delivery *delivery = delivery_of(&all_peers[0]);
    pass(100);
    atomic_store(&lanes[0].health.state, LANE_BROKEN); /* the plans know it already */
    lanes[0].health.asked_ns = active_time_ns();
    schedule_add(delivery);
    pass(100);
    CHECK(noted[0] == 0 && noted[1] >= 1 && noted[1] <= 6, "%u and %u", noted[0], noted[1]);
    unsigned before = noted[1];
    CHECK(notes_heard(&all_peers[0], &lanes[1], &note) && noted[1] == before + 1, "%u", noted[1]);
    note.length = sizeof(note.bytes) + 1;
    CHECK(!notes_heard(&all_peers[0], &lanes[1], &note), "a note that does not fit is read");
    note.length = 0;
    CHECK(!notes_heard(&all_peers[0], &lanes[1], &note), "an empty note is read");
    lanes[0].extension = NULL;
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

static int attributes(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      struct multilane_lane_attributes *out)
{
    (void) btl, (void) endpoint;
    out->memory = MODEL_MEMORY_HOST;
    out->copied_max_bytes = 64 << 10;
    out->cost[MODEL_BY_SEND].range_count = 1;
    out->cost[MODEL_BY_SEND].ranges[0] =
        (struct model_lane_range){.largest_bytes = UINT64_MAX, .latency_s = 1e-6};
    return OPAL_SUCCESS;
}

static const struct multilane_extension proving = {.attributes = attributes,
                                                   .is_proven = is_proven};

static void begin_unproven(bool first, bool second)
{
    begin();
    proven[0] = first, proven[1] = second;
    for (int i = 0; i < LANES; i++) {
        lanes[i].extension = &proving;
        lanes[i].health.state = LANE_UNPROVEN;
        given[i] = 0;
    }
}

static void test_nothing_is_given_to_a_lane_that_is_not_proven(void)
{
    begin_unproven(false, false);
    keep_one();
    pass(500);
    CHECK(given[0] == 0 && given[1] == 0, "%u and %u", given[0], given[1]);
    CHECK(lane_state(&lanes[0]) == LANE_UNPROVEN && lane_state(&lanes[1]) == LANE_UNPROVEN,
          "none carries, so none is late");
    proven[1] = true;
    pass(5);
    CHECK(given[0] == 0 && given[1] == 1, "%u and %u", given[0], given[1]);
    CHECK(lane_is_up(&lanes[1]) && !lanes[0].lost, "it is waited for");
    end();
}

static void test_lane_that_leads_nowhere_is_left_out(void)
{
    begin_unproven(false, true);
    keep_one();
    unsigned said = standin_said;
    pass(190);
    CHECK(!lanes[0].lost && standin_said == said, "it is waited for");
    pass(20);
    CHECK(lanes[0].lost && lane_state(&lanes[0]) == LANE_SILENT, "200 ms are over");
    CHECK(standin_said == said + 1 && strstr(standin_sentence, "has no connection: no answer"),
          "%s", standin_sentence);
    answers[0] = false;
    pass(LONG_MS);
    CHECK(standin_said == said + 1 && given[0] == 0, "%u said", standin_said - said);
    answers[0] = proven[0] = true;
    pass(LONG_MS);
    CHECK(lane_is_up(&lanes[0]) && !lanes[0].lost, "it is used");
    end();
}

static void test_lane_that_is_proven_in_time_changes_nothing(void)
{
    begin_unproven(false, true);
    keep_one();
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
    keep_one();
    pass(100);
    renewed[0] = 0;
    break_lane(0);
    pass((unsigned) parameters.suspect_ms / 2);
    CHECK(renewed[0] == 1 && lane_state(&lanes[0]) == LANE_SILENT, "%u times", renewed[0]);
    end();
}

/* What a silent lane was given while there was no other one goes by the one that is back. */
static void test_silent_lane_keeps_nothing_when_another_is_back(void)
{
    begin();
    given[0] = given[1] = 0;
    for (int i = 0; i < LANES; i++)
        atomic_store(&lanes[i].health.state, LANE_SILENT);
    answers[0] = answers[1] = false;
    keep_one();
    pass(1);
    CHECK(given[0] == 1 && given[1] == 0, "%u and %u", given[0], given[1]);
    answers[1] = true;
    pass(LONG_MS / 4);
    CHECK(lane_is_up(&lanes[1]) && given[1] > 0, "%u and %u", given[0], given[1]);
    end();
}

/* What cannot be an endpoint of btl/tcp, as it names another module, is none. */
static void test_unknown_endpoint_shows_nothing(void)
{
    begin();
    for (int i = 0; i < LANES; i++) {
        lane_make_tcp(&lanes[i], true);
        endpoints[0][i].module = verbs[i];
    }
    answers[0] = answers[1] = false;
    keep_one();
    pass(LONG_MS);
    CHECK(is_lost, "nothing is known of it");
    end();
}

/* Each of a peer's own sockets at most once a second, whatever the number of looks; and once a
 * second what it has sent again, which counts here where the two structs are of one size. */
static void test_sockets_are_asked_once_a_second(void)
{
    begin();
    for (int i = 0; i < LANES; i++) {
        lane_make_tcp(&lanes[i], i == LANES - 1);
        lane_make_tcp(&other->lanes[i], i == LANES - 1);
    }
    answers[0] = answers[1] = false;
    keep_one();
    keep_one_for(other);
    pass(LONG_MS);
    CHECK(!is_lost && !other_is_lost, "one socket of each is healthy");
    CHECK(looks > 0 && looks <= PEERS * LANES * (LONG_MS - LOST_MS + 1000 + LONG_MS + 1000) / 1000,
          "%u looks", looks);
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
        tcp[i] = standin_btl("tcp", 1000);
    }
    for (int i = 0; i < PEERS; i++) {
        all_peers[i].proc = standin_peer()->proc;
        by_rank[all_peers[i].proc->super.proc_name.vpid] = &all_peers[i];
    }
    multilane.local_peers = by_rank;
    multilane.local_peer_count = PEERS + 1;
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

static uint64_t quiet_for_ms[LANES];
static unsigned closed[LANES];

static uint64_t quiet_ms(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    (void) btl;
    return quiet_for_ms[lane_of(endpoint)->index];
}

static int close_lane(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    (void) btl;
    closed[lane_of(endpoint)->index]++;
    return OPAL_ERR_RESOURCE_BUSY;
}

static const struct multilane_extension returning = {
    .attributes = attributes, .fence = close_lane, .quiet_ms = quiet_ms};

/* Nothing is kept by the PML: what is under way on a lane makes it ask. */
static void begin_quiet(uint64_t first_ms, bool first_answers)
{
    begin();
    for (int i = 0; i < LANES; i++) {
        lanes[i].extension = &returning;
        lanes[i].returns = true;
        lanes[i].framed = false;
        closed[i] = 0;
    }
    quiet_for_ms[0] = first_ms;
    quiet_for_ms[1] = 0;
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
    for (int i = 0; i < LANES; i++)
        lanes[i].extension = NULL;
}

int main(void)
{
    around_begin();
    test_lost_when_no_lane_comes_back();
    test_kept_when_the_last_lane_comes_back();
    test_kept_while_it_computes();
    test_kept_while_it_computes_over_one_lane();
    test_unused_lane_breaks();
    test_one_healthy_socket_is_life();
    test_trouble_is_of_one_peer();
    test_any_kind_of_lane_shows_life();
    test_lane_that_delivers_shows_life();
    test_silent_beside_a_lane_that_delivers();
    test_other_end_of_a_broken_lane_is_told();
    test_quiet_lane_is_asked_and_closed();
    test_nothing_is_given_to_a_lane_that_is_not_proven();
    test_lane_that_leads_nowhere_is_left_out();
    test_lane_that_is_proven_in_time_changes_nothing();
    test_lane_that_is_tried_is_made_anew_soon();
    test_silent_lane_keeps_nothing_when_another_is_back();
    test_unknown_endpoint_shows_nothing();
    test_sockets_are_asked_once_a_second();
    test_changes_of_lanes_are_kept();
    deliveries_fini();
    (void) opal_finalize_util();
    return check_end();
}
