/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that fail, over a device that exists in this file: what they had of the completion
 * queue that all share comes back, and none is made anew before the other end has broken its own.
 */
#include "check.h"

#include <string.h>

#include "btl/verbs/greeting.h"
#include "common/compat/component.h"

#define PLACES 256
#define DEPTH  32u
#define PEERS  200u

/* Nothing of Open MPI is started here, and its own starts something at the first line. */
void opal_output(int stream, const char *format, ...)
{
    (void) stream, (void) format;
}

/* --- a device -----------------------------------------------------------------------------------
 */

static struct {
    struct ibv_wc due[PLACES]; /* of all that was posted; a status of success: not to be reported */
    unsigned due_count;
    bool reports_all; /* of a broken queue pair also what did not ask for it */
    uint32_t last_qpn;
} device;

static int device_post(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    struct ibv_wc *due = &device.due[device.due_count++];

    (void) bad;
    CHECK(device.due_count <= PLACES, "more than the completion queue holds");
    *due = (struct ibv_wc){.wr_id = request->wr_id, .qp_num = qp->qp_num};
    if (device.reports_all || (request->send_flags & IBV_SEND_SIGNALED) != 0)
        due->status = IBV_WC_WR_FLUSH_ERR;
    return 0;
}

static struct ibv_context context = {.ops.post_send = device_post};
static mca_btl_base_component_t component;
static struct verbs_module module = {
    .super.btl_component = &component, .inline_max = 64, .send_cq_size = PLACES};

/* What was posted comes back, in order. */
static void device_breaks(void)
{
    unsigned count = device.due_count;

    for (unsigned i = 0; i < count; i++) {
        device.due_count--;
        if (device.due[i].status != IBV_WC_SUCCESS)
            verbs_work_completed(&module, &device.due[i]);
        CHECK(module.send_cq_room <= PLACES - (int) device.due_count, "%d free places, %u due",
              (int) module.send_cq_room, device.due_count);
    }
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask)
{
    (void) qp, (void) mask;
    CHECK(attributes->qp_state == IBV_QPS_ERR || attributes->qp_state == IBV_QPS_INIT, "state %d",
          (int) attributes->qp_state);
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes)
{
    struct ibv_qp *qp = calloc(1, sizeof(*qp));

    (void) domain, (void) attributes;
    *qp = (struct ibv_qp){.context = &context, .qp_num = ++device.last_qpn};
    return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    free(qp);
    return 0;
}

int ibv_destroy_ah(struct ibv_ah *way)
{
    (void) way;
    return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_WR_FLUSH_ERR ? "flushed" : "another";
}

/* --- the other files of btl/verbs ---------------------------------------------------------------
 */

bool verbs_connect_begin(verbs_peer_t *peer)
{
    CHECK(verbs_pair_create(peer), "no queue pair");
    verbs_peer_state_set(peer, PEER_READY);
    return true;
}

void verbs_greeting_sent(struct verbs_module *it, uint32_t index, bool good)
{
    (void) it, (void) index, (void) good;
}

void verbs_greeting_fill(const verbs_peer_t *peer, struct greeting *greeting)
{
    (void) peer;
    memset(greeting, 0, sizeof(*greeting));
}

static unsigned fences_asked;

enum sending verbs_greeting_send(verbs_peer_t *peer, const struct greeting *greeting)
{
    CHECK(peer->state == PEER_FAILED && greeting->kind == GREETING_FENCE, "state %u, kind %u",
          peer->state, greeting->kind);
    fences_asked++;
    return SENDING_DONE;
}

void verbs_slots_begin(verbs_peer_t *peer)
{
    (void) peer;
}

void verbs_slots_close(verbs_peer_t *peer)
{
    (void) peer;
}

uint64_t verbs_now_ms(void)
{
    return 0;
}

int verbs_progress_module(struct verbs_module *it)
{
    (void) it;
    return 0;
}

uint32_t verbs_cache_key(const mca_rcache_base_registration_t *registration)
{
    (void) registration;
    return 0;
}

/* Each process has one port, which can be reached. */
void *component_record_of(const mca_btl_base_component_t *of, const opal_proc_t *proc,
                          bool (*fits)(const void *record, size_t bytes))
{
    void *record = malloc(sizeof(verbs.record));

    (void) proc;
    memcpy(record, &verbs.record, sizeof(verbs.record));
    CHECK(of == &component && fits(record, VERBS_RECORD_BYTES(1)), "a record that does not fit");
    return record;
}

/* --- what cases need ----------------------------------------------------------------------------
 */

static void begin(bool reports_all)
{
    device.reports_all = reports_all;
    device.due_count = 0;
    atomic_init(&module.send_cq_room, PLACES);
    OBJ_CONSTRUCT(&module.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&module.waiting_lock, opal_mutex_t);
}

static void end(void)
{
    verbs_peers_close(&module);
    memset(module.chunks, 0, sizeof(module.chunks));
}

static verbs_peer_t *peer_new(void)
{
    return verbs_peer_create(&module, &(opal_process_name_t){.vpid = module.peer_count});
}

/* A broken queue pair has used its last buffer, and all that it received was polled. */
static void drained(verbs_peer_t *peer)
{
    verbs_peer_last_buffer(peer, peer->qpn);
    module.empty_rounds += 2;
}

static void message(verbs_peer_t *peer)
{
    struct ibv_sge part = {.length = 8};

    if (peer->state == PEER_IDLE)
        verbs_connect_begin(peer);
    CHECK(verbs_submit_inline(peer, &part, 1, 0) == OPAL_SUCCESS, "%d free places",
          (int) module.send_cq_room);
}

static void put(verbs_peer_t *peer, opal_free_list_t *list)
{
    struct verbs_work *work = OBJ_NEW(struct_verbs_work);
    size_t ours = offsetof(struct verbs_work, peer);

    memset((char *) work + ours, 0, sizeof(*work) - ours);
    work->kind = WORK_PUT;
    work->list = list;
    work->size = 4096;
    CHECK(verbs_submit(peer, work) == OPAL_SUCCESS, "state %u", peer->state);
}

static void works_free(opal_free_list_t *list)
{
    opal_list_item_t *work;

    while ((work = (opal_list_item_t *) opal_lifo_pop(&list->super)))
        OBJ_RELEASE(work);
    OBJ_DESTRUCT(list);
}

/* --- cases --------------------------------------------------------------------------------------
 */

static void many_failures(bool reports_all)
{
    opal_free_list_t list;

    begin(reports_all);
    OBJ_CONSTRUCT(&list, opal_free_list_t);
    for (unsigned i = 0; i < PEERS; i++) {
        verbs_peer_t *peer = peer_new();

        for (unsigned n = 0; n < i % 20 + 1; n++)
            message(peer);
        put(peer, &list);
        for (unsigned n = 0; n < i % 5; n++)
            message(peer);
        verbs_peer_fail(peer, "it is cut");
        device_breaks();
        CHECK(peer->outstanding == 0, "%u", peer->outstanding);
    }
    /* Messages that are not reported are sent only while half of the places are free. */
    CHECK(module.send_cq_room >= PLACES / 2 - (int) DEPTH, "%d", (int) module.send_cq_room);
    for (unsigned i = 0; i < PEERS; i++)
        drained(verbs_peer_at(&module, i));
    for (unsigned i = 0; i < PEERS; i++)
        CHECK(verbs_peer_renew(verbs_peer_at(&module, i)), "peer %u", i);
    CHECK(module.send_cq_room == PLACES, "%d", (int) module.send_cq_room);
    end();
    works_free(&list);
}

static verbs_peer_t *added(void)
{
    static opal_proc_t process = {.proc_name.vpid = 7};
    opal_proc_t *processes = &process;
    verbs_peer_t *peer;

    CHECK(verbs_add_procs(&module.super, 1, &processes, &peer, NULL) == OPAL_SUCCESS, "an error");
    return peer;
}

/* Until it is known that nothing late can arrive at the other end, there is no lane. */
static void added_before_fenced(void)
{
    verbs_peer_t *peer;

    begin(false);
    peer = added();
    CHECK(peer && peer->state == PEER_IDLE, "a process that was not met before");
    message(peer);
    verbs_peer_fail(peer, "it is cut");
    device_breaks();
    fences_asked = 0;
    CHECK(!added() && peer->state == PEER_FAILED, "state %u", peer->state);
    CHECK(fences_asked == 1, "%u", fences_asked);
    CHECK(verbs_fence(&module.super, peer) == OPAL_ERR_RESOURCE_BUSY, "it is fenced");
    peer->fence_confirmed = true;
    CHECK(verbs_fence(&module.super, peer) == OPAL_SUCCESS, "it is not fenced");
    drained(peer);
    CHECK(added() == peer && peer->state == PEER_IDLE, "state %u", peer->state);
    end();
}

/* What was posted may still be written by the device. */
static void added_before_drained(void)
{
    opal_free_list_t list;
    verbs_peer_t *peer;

    begin(false);
    OBJ_CONSTRUCT(&list, opal_free_list_t);
    peer = added();
    message(peer);
    put(peer, &list);
    verbs_peer_fail(peer, "it is cut");
    peer->fence_confirmed = true;
    drained(peer);
    CHECK(!added(), "%u under way", peer->outstanding);
    device_breaks();
    CHECK(added() == peer, "state %u", peer->state);
    end();
    works_free(&list);
}

/* Nothing was sent over it that could be late. */
static void added_before_connected(void)
{
    verbs_peer_t *peer;

    begin(false);
    peer = added();
    verbs_connect_begin(peer);
    verbs_peer_state_set(peer, PEER_GREETING);
    verbs_peer_fail(peer, "the peer does not answer");
    CHECK(added() == peer && peer->state == PEER_IDLE, "state %u", peer->state);
    end();
}

/* What is said of a queue pair may come when the peer has another, and has to take its lock first.
 */
static void connection_outlives_what_is_said_of_the_last(void)
{
    verbs_peer_t *peer;
    uint32_t last;

    begin(false);
    peer = added();
    verbs_connect_begin(peer);
    last = peer->qpn;
    verbs_peer_fail(peer, "it is cut");
    peer->fence_confirmed = true;
    drained(peer);
    CHECK(verbs_peer_renew(peer), "state %u", peer->state);
    verbs_connect_begin(peer);
    verbs_peer_fail_pair(peer, last, "it was cut");
    CHECK(peer->state == PEER_READY, "state %u", peer->state);
    verbs_peer_fail_pair(peer, peer->qpn, "it is cut");
    CHECK(peer->state == PEER_FAILED, "state %u", peer->state);
    end();
}

/* A device takes what a queue pair received, and was not polled, away with the queue pair: with it
 * go buffers that all share. */
static void pair_is_kept_until_it_is_drained(void)
{
    verbs_peer_t *peer;

    begin(false);
    peer = added();
    message(peer);
    verbs_peer_fail(peer, "it is cut");
    device_breaks();
    peer->fence_confirmed = true;
    CHECK(!verbs_peer_renew(peer) && peer->qp, "it may still use a buffer");
    verbs_peer_last_buffer(peer, peer->qpn + 1);
    module.empty_rounds += 2;
    CHECK(!verbs_peer_renew(peer) && peer->qp, "that was said of another queue pair");
    verbs_peer_last_buffer(peer, peer->qpn);
    module.empty_rounds++;
    CHECK(!verbs_peer_renew(peer) && peer->qp, "what it received may not have been polled");
    module.empty_rounds++;
    CHECK(verbs_peer_renew(peer) && !peer->qp, "state %u", peer->state);
    end();
}

/* A dead device reports nothing: what it had ends without it, and no fence waits. */
static void works_end_with_a_dead_device(void)
{
    opal_free_list_t list;
    verbs_peer_t *peer;

    begin(false);
    OBJ_CONSTRUCT(&list, opal_free_list_t);
    peer = added();
    message(peer);
    put(peer, &list);
    put(peer, &list);
    CHECK(peer->outstanding == 2, "%u", peer->outstanding);
    verbs_module_die(&module, "it was pulled out");
    CHECK(peer->outstanding == 0 && peer->state == PEER_FAILED, "%u in state %u", peer->outstanding,
          peer->state);
    CHECK(verbs_fence(&module.super, peer) == OPAL_SUCCESS, "it is not fenced");
    CHECK(!added(), "a dead device is a lane");
    device.due_count = 0;
    module.dead = false;
    end();
    works_free(&list);
}

/* The longest row of places that are taken: no search takes more steps. */
static uint32_t longest_search(void)
{
    uint32_t longest = 0, row = 0;

    /* Twice around, for a row over the end. */
    for (uint32_t i = 0; i < 2 * module.place_count; i++) {
        row = module.places[i % module.place_count] ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    return longest;
}

/* Each of many processes costs little memory while it is idle, and no more time than the first. */
static void many_peers_are_cheap(void)
{
    enum { MANY = 10000 };

    begin(false);
    for (uint32_t i = 0; i < MANY; i++) {
        opal_process_name_t name = {.jobid = 3 + i % 2, .vpid = i / 2};

        CHECK(!verbs_peer_find(&module, &name), "%u is known before", i);
        CHECK(verbs_peer_create(&module, &name)->index == i, "%u", i);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        opal_process_name_t name = {.jobid = 3 + i % 2, .vpid = i / 2};
        const verbs_peer_t *found = verbs_peer_find(&module, &name);

        CHECK(found && found->index == i, "%u", i);
    }
    CHECK(longest_search() <= 32, "%u steps", longest_search());
    size_t bytes = module.place_count * sizeof(module.places[0]) +
                   module.waiting_room * 3 * sizeof(verbs_peer_t *) +
                   MANY * (sizeof(verbs_peer_t) + sizeof(verbs_peer_t *));
    CHECK(bytes / MANY <= 1024, "%zu bytes for each", bytes / MANY);
    /* Only those that are greeted are looked at. */
    for (uint32_t i = 0; i < 100; i++)
        verbs_peer_state_set(verbs_peer_at(&module, i * 100), PEER_GREETING);
    for (uint32_t i = 0; i < 50; i++)
        verbs_peer_state_set(verbs_peer_at(&module, i * 200), PEER_IDLE);
    CHECK(module.greeting_count == 50, "%u", module.greeting_count);
    for (uint32_t place = 0; place < 50; place++)
        CHECK(verbs_peer_greeted(&module, &place)->state == PEER_GREETING, "place %u", place);
    uint32_t beyond = 50;
    CHECK(verbs_peer_greeted(&module, &beyond) && beyond == 0, "place %u", beyond);
    end();
}

int main(void)
{
    verbs.depth.requests = DEPTH;
    verbs.modules[0] = &module;
    verbs.module_count = 1;
    many_failures(false);
    many_failures(true);
    verbs.record = (struct verbs_record){.version = VERBS_RECORD_VERSION, .port_count = 1};
    verbs.record.ports[0].address.link = CHOICE_ROCE_V2;
    verbs.record.ports[0].address.pkey = 0xffff;
    added_before_fenced();
    added_before_drained();
    added_before_connected();
    connection_outlives_what_is_said_of_the_last();
    pair_is_kept_until_it_is_drained();
    works_end_with_a_dead_device();
    many_peers_are_cheap();
    return check_end();
}
