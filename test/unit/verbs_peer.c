/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that fail, over a device that exists in this file: what they had of the completion
 * queue that all share comes back, none is made anew before the other end has broken its own, and
 * messages that have not arrived are returned.
 */
#include "check.h"

#include <string.h>

#include "btl/verbs/greeting.h"
#include "common/compat/component.h"

#define PLACES 256
#define DEPTH  32u
#define PEERS  200u
#define TAG    0x50 /* of the PML */

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
static struct verbs_module module = {.super = {.btl_component = &component,
                                               .btl_alloc = verbs_work_alloc,
                                               .btl_free = verbs_work_free},
                                     .inline_max = 64,
                                     .send_cq_size = PLACES};

/* The oldest message has reached the other device. */
static void device_reports(void)
{
    struct ibv_wc wc = device.due[0];

    wc.status = IBV_WC_SUCCESS;
    memmove(device.due, device.due + 1, --device.due_count * sizeof(wc));
    verbs_work_completed(&module, &wc);
}

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

/* Nothing is registered here. */
struct ibv_mr *(ibv_reg_mr) (struct ibv_pd *pd, void *base, size_t size, int access)
{
    (void) pd, (void) base, (void) size, (void) access;
    return NULL;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t size, uint64_t remote,
                                unsigned access)
{
    (void) pd, (void) base, (void) size, (void) remote, (void) access;
    return NULL;
}

int ibv_dereg_mr(struct ibv_mr *region)
{
    (void) region;
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
    verbs_returns_begin(peer);
    peer->their_qpn = 1000 + peer->qpn;
    verbs_peer_state_set(peer, PEER_READY);
    return true;
}

void verbs_greeting_sent(struct verbs_module *it, uint32_t index, bool good)
{
    (void) it, (void) index, (void) good;
}

void verbs_greeting_fill(const verbs_peer_t *peer, struct greeting *greeting)
{
    memset(greeting, 0, sizeof(*greeting));
    greeting->end.qpn = peer->qpn;
}

static unsigned fences_asked;

enum sending verbs_greeting_send(verbs_peer_t *peer, const struct greeting *greeting)
{
    CHECK(peer->state == PEER_FAILED && greeting->kind == GREETING_FENCE, "state %u, kind %u",
          peer->state, greeting->kind);
    fences_asked++;
    return SENDING_DONE;
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
    verbs_peers_open(&module);
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

static struct verbs_work *work_new(void)
{
    struct verbs_work *work = calloc(1, sizeof(*work));

    OBJ_CONSTRUCT(&work->base, mca_btl_base_descriptor_t);
    return work;
}

static void put(verbs_peer_t *peer, opal_free_list_t *list)
{
    struct verbs_work *work = work_new();

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

/* --- what is returned --- */

#define MESSAGES 8

static struct {
    struct verbs_work *works[MESSAGES];
    char room[MESSAGES][VERBS_FRAG_SMALL];
    char returned[64], arrived[64], failed[64]; /* the messages in these ways, in order */
    unsigned losses;                            /* that the PML was told of */
    bool refuses;
} kept;

static bool message_returned(void *context, uint8_t tag, const void *bytes, size_t length,
                             const void *payload, size_t payload_length)
{
    (void) tag;
    CHECK(context == &kept, "another context");
    strncat(kept.returned, bytes, length);
    if (payload)
        strncat(kept.returned, payload, payload_length);
    return !kept.refuses;
}

static void message_ended(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                          mca_btl_base_descriptor_t *descriptor, int status)
{
    const mca_btl_base_segment_t *segment = descriptor->des_segments;

    CHECK(btl == &module.super && peer, "another module");
    strncat(status == OPAL_SUCCESS ? kept.arrived : kept.failed, segment->seg_addr.pval,
            segment->seg_len);
}

static void lane_failed(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *why)
{
    CHECK(btl == &module.super && proc && why, "another lane");
    kept.losses += flags == MCA_BTL_ERROR_FLAGS_FATAL;
}

static verbs_peer_t *keeping(void)
{
    verbs_peer_t *peer;

    begin(false);
    memset(&kept, 0, sizeof(kept));
    lane_error_to(&module.super, lane_failed);
    OBJ_CONSTRUCT(&module.frags_small, opal_free_list_t);
    module.super.btl_max_send_size = VERBS_FRAG_SMALL;
    for (int i = 0; i < MESSAGES; i++) {
        kept.works[i] = work_new();
        kept.works[i]->base.super.ptr = kept.room[i];
        kept.works[i]->number = 1; /* of what it carried before */
        opal_free_list_return(&module.frags_small, &kept.works[i]->base.super);
    }
    peer = added();
    verbs_connect_begin(peer);
    verbs_return_to(&module.super, peer, message_returned, &kept);
    return peer;
}

static void keeping_end(void)
{
    device.due_count = 0;
    end();
    module.dead = false;
    works_free(&module.frags_small);
}

static void short_message(verbs_peer_t *peer, const char *text)
{
    CHECK(verbs_send_immediate(&module.super, peer, NULL, (void *) text, strlen(text), 0, 0, 0, TAG,
                               NULL) == OPAL_SUCCESS,
          "state %u", peer->state);
}

static void sent(verbs_peer_t *peer, mca_btl_base_descriptor_t *descriptor, const char *text)
{
    memcpy(descriptor->des_segments->seg_addr.pval, text, strlen(text));
    descriptor->des_cbfunc = message_ended;
    CHECK(verbs_send_start(&module.super, peer, descriptor, TAG) == OPAL_SUCCESS, "state %u",
          peer->state);
}

static void whole(verbs_peer_t *peer, const char *text)
{
    sent(peer,
         verbs_work_alloc(&module.super, peer, MCA_BTL_NO_ORDER, strlen(text),
                          MCA_BTL_DES_FLAGS_BTL_OWNERSHIP),
         text);
}

static void in_place(verbs_peer_t *peer, const char *header, const char *payload)
{
    mca_btl_base_registration_handle_t registration = {.local_key = 1};

    sent(peer,
         verbs_work_in_place(&module.super, peer, &registration, strlen(header), payload,
                             strlen(payload), MCA_BTL_DES_FLAGS_BTL_OWNERSHIP),
         header);
}

/* "1" to "6", of which the device reports the first, and breaks. */
static void six_and_a_break(verbs_peer_t *peer)
{
    short_message(peer, "1");
    whole(peer, "2");
    in_place(peer, "3", "three");
    in_place(peer, "4", "four");
    short_message(peer, "5");
    peer->send_room = 0;
    whole(peer, "6");
    device_reports();
    verbs_peer_fail(peer, "it is cut");
    CHECK(verbs_returns_make_all(&module) == 0, "before the device has reported all");
    device_breaks();
}

/* The other end says that its queue pair is broken, and what it has received. */
static void told(verbs_peer_t *peer, uint64_t received)
{
    verbs_fenced_heard(&(struct greeting){.kind = GREETING_FENCED,
                                          .from = peer->name,
                                          .from_nonce = peer->nonce,
                                          .heard_qpn = peer->qpn,
                                          .received = received});
}

static int fence(verbs_peer_t *peer)
{
    return verbs_fence(&module.super, peer);
}

static void what_has_not_arrived_is_returned(void)
{
    verbs_peer_t *peer = keeping();

    six_and_a_break(peer);
    told(peer, 3);
    drained(peer);
    CHECK(fence(peer) == OPAL_ERR_RESOURCE_BUSY && !verbs_peer_renew(peer), "not all is returned");
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "4four56") == 0, "\"%s\" is returned", kept.returned);
    CHECK(kept.losses == 0, "none is lost");
    CHECK(strcmp(kept.arrived, "2346") == 0 && !kept.failed[0],
          "\"%s\" is said to be sent, \"%s\""
          " not",
          kept.arrived, kept.failed);
    CHECK(fence(peer) == OPAL_SUCCESS && verbs_peer_renew(peer), "it is not over");
    keeping_end();
}

/* All has arrived but what was never posted. */
static void what_has_arrived_is_not_returned(void)
{
    verbs_peer_t *peer = keeping();

    six_and_a_break(peer);
    told(peer, 5);
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "6") == 0, "\"%s\" is returned", kept.returned);
    keeping_end();
}

/* osc/rdma goes on giving them to the lane that it chose. */
static void what_others_give_to_a_broken_lane_is_returned(void)
{
    verbs_peer_t *peer = keeping();

    six_and_a_break(peer);
    mca_btl_base_descriptor_t *descriptor =
        verbs_work_alloc(&module.super, peer, MCA_BTL_NO_ORDER, 1, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    descriptor->des_cbfunc = NULL;
    memcpy(descriptor->des_segments->seg_addr.pval, "7", 1);
    CHECK(verbs_send_start(&module.super, peer, descriptor, TAG) == OPAL_ERR_UNREACH,
          "the PML has other lanes");
    CHECK(verbs_send_start(&module.super, peer, descriptor, 0x61) == OPAL_SUCCESS, "it is refused");
    told(peer, 5);
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "67") == 0, "\"%s\" is returned", kept.returned);
    keeping_end();
}

static void nothing_is_returned_without_the_other_ends_word(void)
{
    verbs_peer_t *peer = keeping();

    six_and_a_break(peer);
    fences_asked = 0;
    CHECK(fence(peer) == OPAL_ERR_RESOURCE_BUSY && fences_asked == 1, "%u", fences_asked);
    peer->fence_next_ms = 0;
    CHECK(fence(peer) == OPAL_ERR_RESOURCE_BUSY && fences_asked == 2, "%u", fences_asked);
    verbs_returns_make_all(&module);
    drained(peer);
    CHECK(!kept.returned[0] && !kept.arrived[0] && !kept.failed[0], "without a word");
    CHECK(!added(), "it began anew");
    kept.refuses = true;
    told(peer, 1);
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "23three4four56") == 0, "\"%s\"", kept.returned);
    CHECK(strcmp(kept.failed, "2346") == 0, "\"%s\" failed", kept.failed);
    keeping_end();
}

/* It has connected anew since: any of those that were posted may have come. */
static void an_end_that_has_forgotten_its_count_is_not_asked_again(void)
{
    verbs_peer_t *peer = keeping();

    six_and_a_break(peer);
    told(peer, COUNT_UNKNOWN);
    drained(peer);
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "6") == 0, "\"%s\" is returned", kept.returned);
    CHECK(fence(peer) == OPAL_SUCCESS, "it is not over");
    keeping_end();
}

static void what_is_not_returned_any_more_fails(void)
{
    verbs_peer_t *peer = keeping();

    six_and_a_break(peer);
    verbs_return_to(&module.super, peer, NULL, NULL);
    verbs_returns_make_all(&module);
    CHECK(!kept.returned[0] && strcmp(kept.failed, "2346") == 0, "\"%s\" failed", kept.failed);
    told(peer, 0);
    CHECK(fence(peer) == OPAL_SUCCESS, "it is not fenced");
    keeping_end();
}

/* Any of those that were posted may have come. */
static void false_count_returns_nothing_posted(void)
{
    verbs_peer_t *peer = keeping();

    six_and_a_break(peer);
    told(peer, 6);
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "6") == 0, "\"%s\" is returned", kept.returned);
    CHECK(strcmp(kept.failed, "234") == 0, "\"%s\" failed", kept.failed);
    keeping_end();
}

/* Nothing was posted, so none of it can have arrived. */
static void pending_is_returned_without_a_connection(void)
{
    verbs_peer_t *peer = keeping();
    opal_free_list_t list;

    OBJ_CONSTRUCT(&list, opal_free_list_t);
    verbs_peer_state_set(peer, PEER_GREETING);
    whole(peer, "1");
    put(peer, &list);
    whole(peer, "2");
    whole(peer, "3");
    verbs_peer_fail(peer, "the peer does not answer");
    CHECK(opal_list_get_size(&peer->pending) == 3 && !kept.failed[0], "\"%s\" failed", kept.failed);
    CHECK(fence(peer) == OPAL_ERR_RESOURCE_BUSY, "before all are returned");
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "123") == 0, "\"%s\" is returned", kept.returned);
    CHECK(fence(peer) == OPAL_SUCCESS, "it is not fenced");
    keeping_end();
    works_free(&list);
}

/* Its own counts are final, and the other end's are still asked for. */
static void dead_device_returns_too(void)
{
    verbs_peer_t *peer = keeping();
    unsigned char note[MULTILANE_FENCE_BYTES];

    short_message(peer, "1");
    in_place(peer, "2", "two");
    verbs_module_die(&module, "it was pulled out");
    verbs_returns_make_all(&module);
    CHECK(!kept.returned[0] && fence(peer) == OPAL_ERR_RESOURCE_BUSY, "without a word");
    CHECK(verbs_fence_message(&module.super, peer, note) != 0, "nothing is asked");
    told(peer, 1);
    CHECK(verbs_fence_message(&module.super, peer, note) == 0, "it is known");
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "2two") == 0, "\"%s\" is returned", kept.returned);
    CHECK(fence(peer) == OPAL_SUCCESS, "it is not fenced");
    keeping_end();
}

/* The other device has acknowledged them all, and died before its process could see the last two.
 */
static void count_goes_before_the_report(void)
{
    verbs_peer_t *peer = keeping();

    whole(peer, "1");
    whole(peer, "2");
    whole(peer, "3");
    device_reports();
    device_reports();
    verbs_peer_fail(peer, "the other end has closed it");
    told(peer, 1);
    device_reports();
    verbs_returns_make_all(&module);
    CHECK(strcmp(kept.returned, "3") == 0, "\"%s\" is returned", kept.returned);
    CHECK(strcmp(kept.arrived, "123") == 0, "\"%s\" sent", kept.arrived);
    CHECK(kept.losses == 1, "the PML is told %u times of what is lost", kept.losses);
    keeping_end();
}

/* The longest row of names with one hash: no search takes more steps. */
static uint32_t longest_search(void)
{
    uint32_t longest = 0;

    for (uint32_t i = 0; i < PEER_BUCKETS; i++) {
        uint32_t row = 0;

        for (struct peer_entry *entry = module.names.buckets[i]; entry; entry = entry->next)
            row++;
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

        CHECK(!peer_table_find(&module.names, &name), "%u is known before", i);
        CHECK(verbs_peer_create(&module, &name)->index == i, "%u", i);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        opal_process_name_t name = {.jobid = 3 + i % 2, .vpid = i / 2};
        const verbs_peer_t *found = peer_table_find(&module.names, &name);

        CHECK(found && found->index == i, "%u", i);
    }
    CHECK(longest_search() <= 32, "%u steps", longest_search());
    size_t bytes = MANY * (sizeof(verbs_peer_t) + sizeof(verbs_peer_t *));
    CHECK(bytes / MANY <= 1024, "%zu bytes for each", bytes / MANY);
    /* Only those that are greeted are looked at. */
    for (uint32_t i = 0; i < 100; i++)
        verbs_peer_state_set(verbs_peer_at(&module, i * 100), PEER_GREETING);
    for (uint32_t i = 0; i < 50; i++)
        verbs_peer_state_set(verbs_peer_at(&module, i * 200), PEER_IDLE);
    CHECK(peer_list_count(&module.greeting) == 50, "%u", peer_list_count(&module.greeting));
    const verbs_peer_t *first = peer_list_first(&module.greeting);
    for (uint32_t turn = 0; turn < 50; turn++) {
        const verbs_peer_t *peer = peer_list_turn(&module.greeting);
        CHECK(peer->state == PEER_GREETING && (turn == 0) == (peer == first), "turn %u", turn);
    }
    CHECK(peer_list_take(&module.greeting) == first, "the first comes after the last");
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
    what_has_not_arrived_is_returned();
    what_has_arrived_is_not_returned();
    what_others_give_to_a_broken_lane_is_returned();
    nothing_is_returned_without_the_other_ends_word();
    an_end_that_has_forgotten_its_count_is_not_asked_again();
    what_is_not_returned_any_more_fails();
    false_count_returns_nothing_posted();
    pending_is_returned_without_a_connection();
    dead_device_returns_too();
    count_goes_before_the_report();
    return check_end();
}
