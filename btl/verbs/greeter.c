/* SPDX-License-Identifier: BSD-3-Clause */
/* The datagram queue pair of a port, which greetings are sent and received by. */
#include "btl/verbs/greeting.h"

#include <stdlib.h>
#include <string.h>

/* Datagrams begin with 40 bytes for the route of their sender, used or not. */
#define ROUTE_BYTES 40u

#define GREETING_BYTES 256u
#define GREETING_KEY   0x4d4c4e31u

/* Of a port, after a path could not be made, or its queue pair not be reset. For a path the peer
 * itself waits twice as long, so that other peers are tried first. */
#define PAUSE_FIRST_MS 1000u

#define PAUSE_LONGEST_MS 16000u

_Static_assert(sizeof(struct greeting) <= GREETING_BYTES, "a greeting is one datagram");

_Static_assert(GREETINGS_OUT < 32, "one bit a buffer");

struct verbs_greeter {
    struct ibv_qp *qp;
    struct verbs_memory memory; /* GREETINGS_IN buffers, then GREETINGS_OUT */
    opal_mutex_t lock;          /* guards `busy` and the send queue; taken inside a peer's lock */
    uint32_t busy;              /* one bit a buffer to send from */
    struct verbs_pause path_pause;  /* of the port, for all peers; under `lock` */
    struct verbs_pause reset_pause; /* until the next attempt to reset it; likewise */
};

#define IN_BYTES (ROUTE_BYTES + GREETING_BYTES)

static unsigned char *buffer_in(struct verbs_greeter *greeter, uint32_t index)
{
    return greeter->memory.bytes + index * IN_BYTES;
}

static unsigned char *buffer_out(struct verbs_greeter *greeter, uint32_t index)
{
    return greeter->memory.bytes + GREETINGS_IN * IN_BYTES + index * GREETING_BYTES;
}

/* --- pauses --- */

static void pause_begin(struct verbs_pause *pause, uint64_t now, uint32_t times)
{
    pause->length_ms = pause->length_ms == 0 ? PAUSE_FIRST_MS : 2 * pause->length_ms;
    if (pause->length_ms > PAUSE_LONGEST_MS)
        pause->length_ms = PAUSE_LONGEST_MS;
    pause->until_ms = now + times * pause->length_ms;
}

static void pause_end(struct verbs_pause *pause)
{
    *pause = (struct verbs_pause){.until_ms = 0};
}

/* --- the datagram queue pair --- */

static bool post_in(struct verbs_greeter *greeter, uint32_t index)
{
    struct ibv_sge part = {.addr = (uint64_t) (uintptr_t) buffer_in(greeter, index),
                           .length = IN_BYTES,
                           .lkey = greeter->memory.region->lkey};
    struct ibv_recv_wr request = {.wr_id = GREETING_ID(index), .sg_list = &part, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return ibv_post_recv(greeter->qp, &request, &bad) == 0;
}

static bool greeter_start(struct verbs_module *module, struct ibv_qp *qp)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                     .pkey_index = module->pkey_index,
                                     .port_num = (uint8_t) module->port_number,
                                     .qkey = GREETING_KEY};

    if (ibv_modify_qp(qp, &attributes,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0)
        return false;
    attributes.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attributes, IBV_QP_STATE) != 0)
        return false;
    attributes.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
        return false;
    for (uint32_t i = 0; i < GREETINGS_IN; i++)
        if (!post_in(module->greeter, i))
            return false;
    return true;
}

/* Under the greeter's lock. */
static void greeter_reset(struct verbs_module *module, uint64_t now)
{
    struct verbs_greeter *greeter = module->greeter;
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

    if (ibv_modify_qp(greeter->qp, &reset, IBV_QP_STATE) != 0 ||
        !greeter_start(module, greeter->qp)) {
        VERBS_VERBOSE("%s: its datagrams cannot be sent again yet", module->device);
        pause_begin(&greeter->reset_pause, now, 1);
        return;
    }
    pause_end(&greeter->reset_pause);
    /* Relaxed: set and read under the lock, or for the next round. */
    atomic_store_explicit(&module->greeter_broken, false, memory_order_relaxed);
}

void verbs_greeter_restart(struct verbs_module *module)
{
    struct verbs_greeter *greeter = module->greeter;
    uint64_t now = verbs_now_ms();

    opal_mutex_lock(&greeter->lock);
    if (greeter->busy == 0 && now >= greeter->reset_pause.until_ms)
        greeter_reset(module, now);
    opal_mutex_unlock(&greeter->lock);
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
    if (!verbs_memory_make(&greeter->memory, module->pd, bytes, IBV_ACCESS_LOCAL_WRITE))
        return OPAL_ERR_OUT_OF_RESOURCE;
    memset(greeter->memory.bytes, 0, bytes);
    greeter->qp = ibv_create_qp(module->pd, &init);
    if (!greeter->qp || !greeter_start(module, greeter->qp))
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
    verbs_memory_free(&greeter->memory);
    OBJ_DESTRUCT(&greeter->lock);
    free(greeter);
}

/* --- the path to a peer --- */

/* Under peer->lock. */
static bool path_is_paused(verbs_peer_t *peer)
{
    struct verbs_greeter *greeter = peer->module->greeter;
    uint64_t now = verbs_now_ms();
    bool paused = now < peer->path_pause.until_ms;

    opal_mutex_lock(&greeter->lock);
    paused |= now < greeter->path_pause.until_ms;
    opal_mutex_unlock(&greeter->lock);
    return paused;
}

void verbs_path_works(verbs_peer_t *peer)
{
    struct verbs_greeter *greeter = peer->module->greeter;

    pause_end(&peer->path_pause);
    opal_mutex_lock(&greeter->lock);
    pause_end(&greeter->path_pause);
    opal_mutex_unlock(&greeter->lock);
}

/* Under peer->lock. On RoCE a failing attempt to make a path blocks for a second. Growing pauses
 * follow, or all other lanes would wait for a dead one. */
static void path_fails(verbs_peer_t *peer)
{
    struct verbs_greeter *greeter = peer->module->greeter;
    uint64_t now = verbs_now_ms();

    pause_begin(&peer->path_pause, now, 2);
    opal_mutex_lock(&greeter->lock);
    pause_begin(&greeter->path_pause, now, 1);
    opal_mutex_unlock(&greeter->lock);
}

/* Under peer->lock. */
static bool path_find(verbs_peer_t *peer)
{
    struct ibv_ah_attr path;

    if (peer->greeting_path)
        return true;
    if (path_is_paused(peer))
        return false;
    verbs_path_fill(peer->module, &peer->port.address, &path);
    peer->greeting_path = ibv_create_ah(peer->module->pd, &path);
    if (!peer->greeting_path)
        path_fails(peer);
    else
        verbs_path_works(peer);
    return peer->greeting_path != NULL;
}

/* --- greetings --- */

void verbs_greeting_fill(const verbs_peer_t *peer, struct greeting *greeting)
{
    struct verbs_module *module = peer->module;

    memset(greeting, 0, sizeof(*greeting));
    greeting->version = GREETING_VERSION;
    greeting->kind = GREETING_HELLO;
    greeting->bytes = sizeof(*greeting);
    greeting->to_nonce = peer->nonce;
    greeting->from_nonce = verbs.record.nonce;
    greeting->from = opal_proc_local_get()->proc_name;
    greeting->from_port = module->port_index;
    greeting->to_port = peer->their_port;
    verbs_pair_end(peer, &greeting->end);
    greeting->heard_qpn = verbs_peer_state(peer) >= PEER_ANSWERED ? peer->their_qpn : 0;
    greeting->is_sure = verbs_peer_state(peer) == PEER_READY;
}

enum sending verbs_greeting_send(verbs_peer_t *peer, const struct greeting *greeting)
{
    struct verbs_greeter *greeter = peer->module->greeter;
    enum sending sending = SENDING_LATER;
    struct ibv_send_wr request, *bad;
    struct ibv_sge part;

    if (atomic_load_explicit(&peer->module->dead, memory_order_relaxed) || !path_find(peer))
        return SENDING_NOWHERE;
    opal_mutex_lock(&greeter->lock);
    uint32_t index = (uint32_t) __builtin_ctz(~greeter->busy);
    if (index < GREETINGS_OUT &&
        !atomic_load_explicit(&peer->module->greeter_broken, memory_order_relaxed)) {
        memcpy(buffer_out(greeter, index), greeting, sizeof(*greeting));
        part = (struct ibv_sge){.addr = (uint64_t) (uintptr_t) buffer_out(greeter, index),
                                .length = sizeof(*greeting),
                                .lkey = greeter->memory.region->lkey};
        request = (struct ibv_send_wr){
            .wr_id = GREETING_ID(index),
            .opcode = IBV_WR_SEND,
            .send_flags = IBV_SEND_SIGNALED,
            .sg_list = &part,
            .num_sge = 1,
            .wr.ud = {.ah = peer->greeting_path,
                      .remote_qpn = peer->port.greeting_qpn,
                      .remote_qkey = GREETING_KEY},
        };
        sending = ibv_post_send(greeter->qp, &request, &bad) == 0 ? SENDING_DONE : SENDING_NOWHERE;
        if (sending == SENDING_DONE) {
            greeter->busy |= 1u << index;
            atomic_fetch_add_explicit(&peer->module->reports_due, 1, memory_order_relaxed);
        }
    }
    opal_mutex_unlock(&greeter->lock);
    return sending;
}

/* A datagram that cannot be sent, as its port is down, breaks the queue pair: nothing more is sent,
 * and on some devices nothing received, until it was reset. */
void verbs_greeting_sent(struct verbs_module *module, uint32_t index, bool good)
{
    opal_mutex_lock(&module->greeter->lock);
    if (OPAL_UNLIKELY(!good))
        atomic_store_explicit(&module->greeter_broken, true, memory_order_relaxed);
    module->greeter->busy &= ~(1u << index);
    atomic_fetch_sub_explicit(&module->reports_due, 1, memory_order_relaxed);
    opal_mutex_unlock(&module->greeter->lock);
}

bool verbs_greeting_take(struct verbs_module *module, uint32_t index, const struct ibv_wc *wc,
                         struct greeting *heard)
{
    if (wc->status != IBV_WC_SUCCESS) { /* relaxed: see greeter_reset */
        atomic_store_explicit(&module->greeter_broken, true, memory_order_relaxed);
        return false;
    }
    memcpy(heard, buffer_in(module->greeter, index) + ROUTE_BYTES, sizeof(*heard));
    (void) post_in(module->greeter, index);
    heard->end.port.address.name[CHOICE_NAME_BYTES - 1] = '\0';
    return wc->byte_len == ROUTE_BYTES + sizeof(*heard);
}
