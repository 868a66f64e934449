/* SPDX-License-Identifier: BSD-3-Clause */
/* Making connections. The two ends of a lane greet each other by datagrams, each greeting telling
 * all that the other end needs to make its queue pair ready; a greeting that was lost is repeated
 * until the peer is known to be ready. It does not matter who begins, or whether both do. */
#include "btl/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Datagrams begin with 40 bytes for the route of their sender, used or not. */
#define ROUTE_BYTES      40u
#define GREETING_BYTES   256u
#define GREETINGS_IN     32u
#define GREETINGS_OUT    16u
#define GREETING_KEY     0x4d4c4e31u
#define GREETING_VERSION 3u
#define PAUSE_FIRST_MS   50u
#define PAUSE_LONGEST_MS 1000u
/* So long unanswered, it is said: who waits for a message would else not know for what. */
#define UNANSWERED_MS 10000u
/* Of a port, where no way could be made; of the peer that it was for twice that, so that others are
 * tried before it. */
#define WAY_PAUSE_FIRST_MS   1000u
#define WAY_PAUSE_LONGEST_MS 16000u
/* Where the port is down: as long as a wire that comes back soon may take. */
#define DOWN_LONGEST_MS         8000u
#define RECEIVER_NOT_READY_CODE 12 /* 0.64 ms until it is tried again */
#define HOPS_MAX                64

enum greeting_kind {
    GREETING_HELLO, /* of one end of a lane to the other */
    GREETING_FENCE, /* the sender's `qpn` is broken: break what is connected with it, and */
    GREETING_FENCED /* say so: nothing is, any more. These two come by any port. */
};

struct greeting {
    uint16_t version;
    uint16_t kind; /* enum greeting_kind */
    uint32_t bytes;
    uint64_t to_nonce;   /* of the process it is for */
    uint64_t from_nonce; /* of the sender, */
    opal_process_name_t from;
    uint32_t from_place; /* and which of its ports this is about, */
    uint32_t to_place;   /* and of the receiver's, */
    struct verbs_port port;
    uint32_t qpn; /* with the queue pair that waits there, */
    uint32_t psn;
    uint32_t index;      /* and what to call the receiver's end in messages */
    uint32_t read_depth; /* gets under way that the sender's end answers */
    uint32_t heard_qpn;  /* the receiver's queue pair, 0 where nothing was heard of it yet */
    uint32_t is_sure;    /* the sender knows that the receiver's queue pair is ready */
    struct verbs_slots_place slots; /* of the sender's end */
};

_Static_assert(sizeof(struct greeting) <= GREETING_BYTES, "a greeting is one datagram");

struct verbs_greeter {
    struct ibv_qp *qp;
    unsigned char *memory; /* GREETINGS_IN buffers, then GREETINGS_OUT */
    struct ibv_mr *mr;
    opal_mutex_t lock;            /* guards `busy` and the send queue; taken inside a peer's lock */
    uint32_t busy;                /* one bit a buffer to send from */
    struct verbs_pause way_pause; /* of the port, whoever it leads to; under `lock` */
    uint32_t next; /* of the peers, who is looked at first; only for who makes progress */
};

#define IN_BYTES (ROUTE_BYTES + GREETING_BYTES)

static unsigned char *buffer_in(struct verbs_greeter *greeter, uint32_t index)
{
    return greeter->memory + index * IN_BYTES;
}

static unsigned char *buffer_out(struct verbs_greeter *greeter, uint32_t index)
{
    return greeter->memory + GREETINGS_IN * IN_BYTES + index * GREETING_BYTES;
}

/* --- the datagram queue pair --- */

static bool post_in(struct verbs_greeter *greeter, uint32_t index)
{
    struct ibv_sge part = {.addr = (uint64_t) (uintptr_t) buffer_in(greeter, index),
                           .length = IN_BYTES,
                           .lkey = greeter->mr->lkey};
    struct ibv_recv_wr request = {.wr_id = GREETING_ID(index), .sg_list = &part, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return ibv_post_recv(greeter->qp, &request, &bad) == 0;
}

static bool greeter_start(struct verbs_module *module, struct ibv_qp *qp)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                     .pkey_index = (uint16_t) verbs.pkey_index,
                                     .port_num = (uint8_t) module->port_number,
                                     .qkey = GREETING_KEY};

    if (ibv_modify_qp(qp, &attributes,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0)
        return false;
    attributes.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attributes, IBV_QP_STATE) != 0)
        return false;
    attributes.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
}

int verbs_greeter_open(struct verbs_module *module, uint32_t *qpn)
{
    struct ibv_qp_init_attr init = {
        .send_cq = module->send_cq,
        .recv_cq = module->receive_cq,
        .cap = {.max_send_wr = GREETINGS_OUT,
                .max_recv_wr = GREETINGS_IN,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
    };
    struct verbs_greeter *greeter = calloc(1, sizeof(*greeter));
    size_t bytes = GREETINGS_IN * IN_BYTES + GREETINGS_OUT * GREETING_BYTES;

    if (!greeter)
        return OPAL_ERR_OUT_OF_RESOURCE;
    module->greeter = greeter;
    OBJ_CONSTRUCT(&greeter->lock, opal_mutex_t);
    if (posix_memalign((void **) &greeter->memory, 4096, bytes) != 0) {
        greeter->memory = NULL;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    memset(greeter->memory, 0, bytes);
    greeter->mr = ibv_reg_mr(module->pd, greeter->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (greeter->mr)
        greeter->qp = ibv_create_qp(module->pd, &init);
    if (!greeter->qp || !greeter_start(module, greeter->qp))
        return OPAL_ERR_OUT_OF_RESOURCE;
    for (uint32_t i = 0; i < GREETINGS_IN; i++)
        if (!post_in(greeter, i))
            return OPAL_ERR_OUT_OF_RESOURCE;
    *qpn = greeter->qp->qp_num;
    return OPAL_SUCCESS;
}

void verbs_greeter_close(struct verbs_module *module)
{
    struct verbs_greeter *greeter = module->greeter;

    if (!greeter)
        return;
    module->greeter = NULL;
    if (greeter->qp)
        ibv_destroy_qp(greeter->qp);
    if (greeter->mr)
        ibv_dereg_mr(greeter->mr);
    free(greeter->memory);
    OBJ_DESTRUCT(&greeter->lock);
    free(greeter);
}

static void way_fill(struct verbs_module *module, const struct choice_address *address,
                     struct ibv_ah_attr *way)
{
    memset(way, 0, sizeof(*way));
    way->dlid = address->lid;
    way->sl = (uint8_t) verbs.service_level;
    way->port_num = (uint8_t) module->port_number;
    if (!verbs_choice_is_routed(&verbs.record.ports[module->place].address, address))
        return;
    way->is_global = 1;
    memcpy(way->grh.dgid.raw, address->gid, CHOICE_GID_BYTES);
    way->grh.sgid_index = (uint8_t) module->gid_index;
    way->grh.hop_limit = HOPS_MAX;
    way->grh.traffic_class = (uint8_t) verbs.traffic_class;
}

/* --- greeting --- */

static void greeting_fill(const verbs_peer_t *peer, struct greeting *greeting)
{
    struct verbs_module *module = peer->module;

    memset(greeting, 0, sizeof(*greeting));
    greeting->version = GREETING_VERSION;
    greeting->kind = GREETING_HELLO;
    greeting->bytes = sizeof(*greeting);
    greeting->to_nonce = peer->nonce;
    greeting->from_nonce = verbs.record.nonce;
    greeting->from = opal_proc_local_get()->proc_name;
    greeting->from_place = module->place;
    greeting->to_place = peer->their_port;
    greeting->port = verbs.record.ports[module->place];
    greeting->qpn = atomic_load_explicit(&peer->qpn, memory_order_relaxed);
    greeting->psn = peer->my_psn;
    greeting->index = peer->index;
    greeting->read_depth = module->read_depth_in;
    greeting->heard_qpn = peer->state >= PEER_ANSWERED ? peer->their_qpn : 0;
    greeting->is_sure = peer->state == PEER_READY;
    verbs_slots_tell(peer, &greeting->slots);
}

enum sending {
    SENDING_DONE,
    SENDING_LATER,  /* all buffers are in use */
    SENDING_NOWHERE /* no way leads there now, or the device does not take it */
};

static void pause_begin(struct verbs_pause *pause, uint64_t now, uint32_t times)
{
    pause->length_ms = pause->length_ms == 0 ? WAY_PAUSE_FIRST_MS : 2 * pause->length_ms;
    if (pause->length_ms > WAY_PAUSE_LONGEST_MS)
        pause->length_ms = WAY_PAUSE_LONGEST_MS;
    pause->until_ms = now + times * pause->length_ms;
}

static void pause_end(struct verbs_pause *pause)
{
    *pause = (struct verbs_pause){.until_ms = 0};
}

/* Under peer->lock. */
static bool way_is_paused(verbs_peer_t *peer)
{
    struct verbs_greeter *greeter = peer->module->greeter;
    uint64_t now = verbs_now_ms();
    bool paused = now < peer->way_pause.until_ms;

    opal_mutex_lock(&greeter->lock);
    paused |= now < greeter->way_pause.until_ms;
    opal_mutex_unlock(&greeter->lock);
    return paused;
}

/* Under peer->lock. */
static void way_works(verbs_peer_t *peer)
{
    struct verbs_greeter *greeter = peer->module->greeter;

    pause_end(&peer->way_pause);
    opal_mutex_lock(&greeter->lock);
    pause_end(&greeter->way_pause);
    opal_mutex_unlock(&greeter->lock);
}

/* Under peer->lock. On RoCE a way that is asked for in vain takes a second, in which nothing else
 * is done: longer and longer pauses follow, or all other lanes would wait with a dead one. */
static void way_fails(verbs_peer_t *peer)
{
    struct verbs_greeter *greeter = peer->module->greeter;
    uint64_t now = verbs_now_ms();

    pause_begin(&peer->way_pause, now, 2);
    opal_mutex_lock(&greeter->lock);
    pause_begin(&greeter->way_pause, now, 1);
    opal_mutex_unlock(&greeter->lock);
}

/* Under peer->lock. */
static bool way_find(verbs_peer_t *peer)
{
    struct ibv_ah_attr way;

    if (peer->greeting_way)
        return true;
    if (way_is_paused(peer))
        return false;
    way_fill(peer->module, &peer->port.address, &way);
    peer->greeting_way = ibv_create_ah(peer->module->pd, &way);
    if (!peer->greeting_way)
        way_fails(peer);
    else
        way_works(peer);
    return peer->greeting_way != NULL;
}

/* Under peer->lock. Sends a greeting by the port that `peer` belongs to, whatever it is about. */
static enum sending greeting_send(verbs_peer_t *peer, const struct greeting *greeting)
{
    struct verbs_greeter *greeter = peer->module->greeter;
    enum sending sending = SENDING_LATER;
    struct ibv_send_wr request, *bad;
    struct ibv_sge part;
    uint32_t index;

    if (!way_find(peer))
        return SENDING_NOWHERE;
    opal_mutex_lock(&greeter->lock);
    index = (uint32_t) __builtin_ctz(~greeter->busy);
    if (index < GREETINGS_OUT) {
        memcpy(buffer_out(greeter, index), greeting, sizeof(*greeting));
        part = (struct ibv_sge){.addr = (uint64_t) (uintptr_t) buffer_out(greeter, index),
                                .length = sizeof(*greeting),
                                .lkey = greeter->mr->lkey};
        request = (struct ibv_send_wr){
            .wr_id = GREETING_ID(index),
            .opcode = IBV_WR_SEND,
            .send_flags = IBV_SEND_SIGNALED,
            .sg_list = &part,
            .num_sge = 1,
            .wr.ud = {.ah = peer->greeting_way,
                      .remote_qpn = peer->port.greeting_qpn,
                      .remote_qkey = GREETING_KEY},
        };
        sending = ibv_post_send(greeter->qp, &request, &bad) == 0 ? SENDING_DONE : SENDING_NOWHERE;
        if (sending == SENDING_DONE)
            greeter->busy |= 1u << index;
    }
    opal_mutex_unlock(&greeter->lock);
    return sending;
}

/* Under peer->lock. What finds no buffer is due as soon as there is one. */
static enum sending greet(verbs_peer_t *peer)
{
    struct greeting greeting;
    enum sending sending;

    greeting_fill(peer, &greeting);
    sending = greeting_send(peer, &greeting);
    if (sending == SENDING_LATER)
        peer->greet_next_ms = 0;
    return sending;
}

_Static_assert(GREETINGS_OUT < 32, "one bit a buffer");

void verbs_greeting_sent(struct verbs_module *module, uint32_t index)
{
    if (index >= GREETINGS_OUT)
        return;
    opal_mutex_lock(&module->greeter->lock);
    module->greeter->busy &= ~(1u << index);
    opal_mutex_unlock(&module->greeter->lock);
}

/* --- the queue pair to a peer --- */

static bool pair_create(verbs_peer_t *peer)
{
    struct verbs_module *module = peer->module;
    struct ibv_qp_init_attr init = {
        .send_cq = module->send_cq,
        .recv_cq = module->receive_cq,
        .srq = module->srq,
        .cap = {.max_send_wr = (uint32_t) verbs.queue_depth,
                .max_send_sge = 2,
                .max_inline_data = module->inline_max},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t) verbs.pkey_index,
        .port_num = (uint8_t) module->port_number,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           (module->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0),
    };
    struct ibv_qp *qp = ibv_create_qp(module->pd, &init);

    if (!qp ||
        ibv_modify_qp(qp, &attributes,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
        VERBS_SAY("%s: no queue pair for process %s can be made: %s", module->device,
                  OPAL_NAME_PRINT(peer->name), strerror(errno));
        if (qp)
            ibv_destroy_qp(qp);
        return false;
    }
    peer->qp = qp;
    peer->send_room = (uint32_t) verbs.queue_depth;
    peer->unsignaled = 0;
    verbs_slots_begin(peer);
    peer->my_psn = (uint32_t) (verbs.record.nonce ^ qp->qp_num * 2654435761u) & 0xffffff;
    atomic_store_explicit(&peer->qpn, qp->qp_num, memory_order_relaxed);
    return true;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Makes our queue pair ready for the one that was heard of. */
static bool pair_connect(verbs_peer_t *peer, const struct greeting *heard)
{
    struct verbs_module *module = peer->module;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu =
            heard->port.mtu < (uint32_t) module->mtu ? (enum ibv_mtu) heard->port.mtu : module->mtu,
        .dest_qp_num = heard->qpn,
        .rq_psn = heard->psn,
        .max_dest_rd_atomic = (uint8_t) module->read_depth_in,
        .min_rnr_timer = RECEIVER_NOT_READY_CODE,
    };

    way_fill(module, &heard->port.address, &attributes.ah_attr);
    if (ibv_modify_qp(peer->qp, &attributes,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
        return false;
    attributes = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t) verbs.timeout,
        .retry_cnt = (uint8_t) verbs.retry_count,
        .rnr_retry = 7, /* for ever: a receiver without buffers is slow, not lost */
        .sq_psn = peer->my_psn,
        .max_rd_atomic = (uint8_t) smaller(module->read_depth_out, heard->read_depth),
    };
    return ibv_modify_qp(peer->qp, &attributes,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

bool verbs_pair_to_itself(verbs_peer_t *peer)
{
    struct greeting own;

    if (!pair_create(peer))
        return false;
    greeting_fill(peer, &own);
    verbs_peer_state_set(peer, pair_connect(peer, &own) ? PEER_READY : PEER_FAILED);
    return peer->state == PEER_READY;
}

static void state_set(verbs_peer_t *peer, enum peer_state state)
{
    bool was = peer->state == PEER_GREETING || peer->state == PEER_ANSWERED;
    bool is = state == PEER_GREETING || state == PEER_ANSWERED;

    if (is != was)
        atomic_fetch_add_explicit(&peer->module->greeting_count, is ? 1u : UINT32_MAX,
                                  memory_order_relaxed);
    peer->state = (uint8_t) state;
}

void verbs_peer_state_set(verbs_peer_t *peer, enum peer_state state)
{
    state_set(peer, state);
}

/* Longer by a part that differs from peer to peer: those that all greet one process at once shall
 * not do so again, as it has buffers for a few. */
static void greet_after_pause(verbs_peer_t *peer, uint64_t now)
{
    peer->greet_next_ms = now + peer->greet_pause_ms + peer->my_psn % (peer->greet_pause_ms / 2);
}

static void greet_soon(verbs_peer_t *peer)
{
    peer->greet_pause_ms = PAUSE_FIRST_MS;
    peer->greet_begun_ms = verbs_now_ms();
    greet_after_pause(peer, peer->greet_begun_ms);
}

bool verbs_connect_begin(verbs_peer_t *peer)
{
    if (!pair_create(peer))
        return false;
    state_set(peer, PEER_GREETING);
    greet_soon(peer);
    (void) greet(peer);
    return true;
}

void verbs_connect_confirmed(verbs_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->state == PEER_ANSWERED) {
        state_set(peer, PEER_READY);
        verbs_work_wake(peer);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* Under peer->lock. Once a port, as it may be a whole job that does not answer. */
static void unanswered_say(const verbs_peer_t *peer, uint64_t now)
{
    struct verbs_module *module = peer->module;

    if (peer->state != PEER_GREETING || now - peer->greet_begun_ms < UNANSWERED_MS ||
        atomic_exchange_explicit(&module->unanswered_said, true, memory_order_relaxed))
        return;
    VERBS_SAY("process %s by %s has not answered %s of process %s for %u s: it makes no MPI calls, "
              "or nothing gets through between the two ports. Messages to it wait.",
              OPAL_NAME_PRINT(peer->name), peer->port.address.name, module->device,
              OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), UNANSWERED_MS / 1000);
}

static bool is_greeted(const verbs_peer_t *peer)
{
    return peer->state == PEER_GREETING || peer->state == PEER_ANSWERED;
}

/* Under peer->lock. Greets again if it is time to; false: there was no buffer to do so. */
static bool greet_again(verbs_peer_t *peer, uint64_t now)
{
    enum sending sending;

    if (!is_greeted(peer) || now < peer->greet_next_ms)
        return true;
    sending = greet(peer);
    if (sending == SENDING_LATER)
        return false;
    now = verbs_now_ms(); /* to look for a way may have taken long */
    unanswered_say(peer, now);
    greet_after_pause(peer, now);
    if (sending == SENDING_DONE && peer->greet_pause_ms < PAUSE_LONGEST_MS)
        peer->greet_pause_ms *= 2;
    return true;
}

/* The same; and gives up one that there is no use in greeting. */
static bool greet_or_give_up(verbs_peer_t *peer, uint64_t now)
{
    const struct verbs_module *module = peer->module;
    bool useless, sent;

    OPAL_THREAD_LOCK(&peer->lock);
    sent = greet_again(peer, now);
    useless =
        is_greeted(peer) && module->port_down && now - module->port_down_since_ms > DOWN_LONGEST_MS;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (useless)
        verbs_peer_fail(peer, "its port is down, and nobody has answered there");
    return sent;
}

/* Begins where it ended for want of buffers, or the first peers would have them all each time. */
void verbs_greetings_repeat(struct verbs_module *module)
{
    struct verbs_greeter *greeter = module->greeter;
    uint64_t now = verbs_now_ms();
    uint32_t count = atomic_load_explicit(&module->peer_count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++) {
        verbs_peer_t *peer = verbs_peer_at(module, greeter->next % count);

        if (!greet_or_give_up(peer, now) &&
            (verbs_completions_handle(module) == 0 || !greet_or_give_up(peer, now)))
            return;
        greeter->next = (greeter->next + 1) % count;
    }
}

/* --- hearing --- */

/* The peer that greets, made known if it was not; NULL: the greeting is not for us. */
static verbs_peer_t *greeting_peer(struct verbs_module *module, const struct greeting *heard)
{
    verbs_peer_t *peer;

    OPAL_THREAD_LOCK(&module->lock);
    peer = verbs_peer_find(module, &heard->from);
    if (!peer)
        peer = verbs_peer_create(module, &heard->from);
    OPAL_THREAD_UNLOCK(&module->lock);
    return peer;
}

static bool greeting_is_valid(const struct verbs_module *module, const struct greeting *heard,
                              size_t bytes)
{
    return bytes == sizeof(*heard) && heard->version == GREETING_VERSION &&
           heard->bytes == sizeof(*heard) && verbs.record.nonce == heard->to_nonce &&
           verbs.record.nonce != heard->from_nonce && heard->from_place < CHOICE_PORTS_MAX &&
           (heard->kind != GREETING_HELLO ||
            (heard->to_place == module->place &&
             heard->port.address.link == verbs.record.ports[module->place].address.link &&
             heard->port.mtu >= IBV_MTU_256 && heard->port.mtu <= IBV_MTU_4096 && heard->qpn != 0 &&
             heard->index < PEERS_CHUNK * PEERS_CHUNKS));
}

/* Under peer->lock: takes over what the greeting says of the other end. */
static void peer_learn(verbs_peer_t *peer, const struct greeting *heard)
{
    if (peer->greeting_way && memcmp(&peer->port, &heard->port, sizeof(peer->port)) != 0) {
        ibv_destroy_ah(peer->greeting_way);
        peer->greeting_way = NULL;
    }
    way_works(peer); /* what leads here mostly leads back */
    peer->port = heard->port;
    peer->nonce = heard->from_nonce;
    peer->their_port = heard->from_place;
}

/* Under peer->lock. Returns why the connection that there was is over, or NULL. */
static const char *peer_hear(verbs_peer_t *peer, const struct greeting *heard)
{
    uint32_t mine;

    if (peer->state == PEER_FAILED && !verbs_peer_renew(peer))
        return NULL; /* it greets again */
    if (peer->state >= PEER_ANSWERED && peer->state != PEER_FAILED && heard->qpn != peer->their_qpn)
        return "the other end has begun a new connection";
    peer_learn(peer, heard);
    if (peer->state == PEER_IDLE) {
        if (!pair_create(peer))
            return NULL;
        state_set(peer, PEER_GREETING);
        greet_soon(peer);
    }
    mine = atomic_load_explicit(&peer->qpn, memory_order_relaxed);
    if (heard->heard_qpn != 0 && mine != heard->heard_qpn) {
        /* It speaks of an earlier queue pair of ours: hearing of this one, it begins anew. */
        (void) greet(peer);
        return NULL;
    }
    if (peer->state == PEER_GREETING) {
        peer->their_qpn = heard->qpn;
        peer->their_index = heard->index;
        if (!verbs_slots_learn(peer, &heard->slots) || !pair_connect(peer, heard))
            return "its queue pair does not take what the greeting said";
        state_set(peer, PEER_ANSWERED);
    }
    if (peer->state == PEER_ANSWERED && mine == heard->heard_qpn) {
        state_set(peer, PEER_READY);
        verbs_work_wake(peer);
    }
    if (!heard->is_sure)
        (void) greet(peer);
    return NULL;
}

/* --- fences --- */

/* By every port that has met the process: the one that is to be fenced may be cut off. */
static void greeting_send_anyhow(const opal_process_name_t *to, uint64_t nonce,
                                 struct greeting *greeting)
{
    greeting->to_nonce = nonce;
    for (uint32_t i = 0; i < verbs.module_count; i++) {
        struct verbs_module *module = verbs.modules[i];
        verbs_peer_t *way;

        OPAL_THREAD_LOCK(&module->lock);
        way = verbs_peer_find(module, to);
        OPAL_THREAD_UNLOCK(&module->lock);
        if (!way)
            continue;
        OPAL_THREAD_LOCK(&way->lock);
        if (nonce == way->nonce)
            (void) greeting_send(way, greeting); /* who asks or is asked does so again */
        OPAL_THREAD_UNLOCK(&way->lock);
    }
}

void verbs_fence_ask(verbs_peer_t *peer)
{
    struct greeting greeting;
    uint64_t nonce;
    bool is_broken;

    OPAL_THREAD_LOCK(&peer->lock);
    greeting_fill(peer, &greeting);
    nonce = peer->nonce;
    is_broken = peer->state == PEER_FAILED; /* another thread may have begun anew */
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!is_broken)
        return;
    greeting.kind = GREETING_FENCE;
    greeting_send_anyhow(&peer->name, nonce, &greeting);
}

/* The lane that a greeting about a fence speaks of; NULL: there is none. */
static verbs_peer_t *fence_peer(const struct greeting *heard)
{
    struct verbs_module *module = verbs_module_at(heard->to_place);
    verbs_peer_t *peer = NULL;

    if (module) {
        OPAL_THREAD_LOCK(&module->lock);
        peer = verbs_peer_find(module, &heard->from);
        OPAL_THREAD_UNLOCK(&module->lock);
    }
    return peer && heard->from_nonce == peer->nonce ? peer : NULL;
}

static void fence_heard(const struct greeting *heard)
{
    verbs_peer_t *peer = fence_peer(heard);
    struct greeting answer = *heard;
    bool connected = false;

    if (!peer)
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    connected = peer->state >= PEER_ANSWERED && heard->qpn == peer->their_qpn;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (connected)
        verbs_peer_fail(peer, "the other end uses it no more");
    answer.kind = GREETING_FENCED;
    answer.from = opal_proc_local_get()->proc_name;
    answer.from_nonce = verbs.record.nonce;
    answer.from_place = heard->to_place;
    answer.to_place = heard->from_place;
    answer.heard_qpn = heard->qpn;
    greeting_send_anyhow(&peer->name, heard->from_nonce, &answer);
}

static void fenced_heard(const struct greeting *heard)
{
    verbs_peer_t *peer = fence_peer(heard);

    if (!peer)
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->state == PEER_FAILED &&
        heard->heard_qpn == atomic_load_explicit(&peer->qpn, memory_order_relaxed))
        peer->fence_confirmed = true;
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* --- what comes --- */

/* Under peer->lock. Does it speak of the connection that has failed here, and that the other end,
 * where it may not have failed, still has? Nothing begins anew before that one is over too. */
static bool is_of_failed(const verbs_peer_t *peer, const struct greeting *heard)
{
    return verbs_peer_is_unfenced(peer) && heard->from_nonce == peer->nonce &&
           heard->qpn == peer->their_qpn;
}

static void hello_heard(struct verbs_module *module, const struct greeting *heard)
{
    verbs_peer_t *peer = greeting_peer(module, heard);
    const char *over = NULL;
    bool late;

    if (!peer)
        return;
    OPAL_THREAD_LOCK(&peer->lock);
    late = is_of_failed(peer, heard);
    if (!late)
        over = peer_hear(peer, heard);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (late)
        verbs_fence_ask(peer);
    if (over)
        verbs_peer_fail(peer, over);
}

void verbs_greeting_received(struct verbs_module *module, uint32_t index, const struct ibv_wc *wc)
{
    struct greeting heard;
    bool valid;

    if (index >= GREETINGS_IN || wc->status != IBV_WC_SUCCESS)
        return;
    memcpy(&heard, buffer_in(module->greeter, index) + ROUTE_BYTES, sizeof(heard));
    valid = wc->byte_len >= ROUTE_BYTES &&
            greeting_is_valid(module, &heard, wc->byte_len - ROUTE_BYTES);
    (void) post_in(module->greeter, index);
    heard.port.address.name[CHOICE_NAME_BYTES - 1] = '\0';
    if (!valid)
        atomic_fetch_add_explicit(&module->broken_messages, 1, memory_order_relaxed);
    else if (module->finalized)
        return;
    else if (heard.kind == GREETING_HELLO)
        hello_heard(module, &heard);
    else if (heard.kind == GREETING_FENCE)
        fence_heard(&heard);
    else if (heard.kind == GREETING_FENCED)
        fenced_heard(&heard);
}
