/* SPDX-License-Identifier: BSD-3-Clause */
/* Polls the completion queues and hands out what they hold. */
#include "btl/verbs/verbs.h"

#include <arpa/inet.h>
#include <sched.h>

#define BATCH 16

/* Rounds without an event before the processor is yielded, on soft RoCE: it carries the packets
 * that are waited for. */
#define YIELD_SOFT 8u

/* What is done once in so many rounds: greetings are repeated, if any are under way, */
#define GREETING_ROUNDS 64u

/* the send queue is polled, where no report is due (a broken connection reports without), */
#define REPORT_ROUNDS 64u

/* a port without connections is looked at, where only a greeting can come, */
#define PORT_ROUNDS 16u

/* and the device's events are read. */
#define EVENT_ROUNDS 256u

/* False: the other end was told that it has not come, and sends it by another lane. */
static inline bool message_count(verbs_peer_t *peer)
{
    bool counts = true;

    if (OPAL_LIKELY(verbs_peer_state(peer) != PEER_FAILED)) {
        /* Relaxed, and no more than a store: verbs_peer_is_drained orders it, and no other thread
         * counts. */
        atomic_store_explicit(&peer->received,
                              atomic_load_explicit(&peer->received, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        return true;
    }
    OPAL_THREAD_LOCK(&peer->lock);
    counts = !peer->returns.told;
    if (counts)
        atomic_fetch_add_explicit(&peer->received, 1, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return counts;
}

static void message_hand_out(struct verbs_module *module, uint32_t index, const struct ibv_wc *wc)
{
    uint32_t word = ntohl(wc->imm_data);
    verbs_peer_t *peer = verbs_peer_at(module, MESSAGE_WORD_INDEX(word));

    /* The queue pair identifies the sender; the immediate word must agree. */
    if (OPAL_UNLIKELY(!peer || wc->opcode != IBV_WC_RECV || wc->byte_len > module->receive_bytes ||
                      !(wc->wc_flags & IBV_WC_WITH_IMM) ||
                      wc->qp_num != atomic_load_explicit(&peer->qpn, memory_order_relaxed))) {
        verbs_message_broken(module, "a message came whose sender is not the one in its header");
        return;
    }
    if (OPAL_UNLIKELY(verbs_peer_state(peer) == PEER_ANSWERED))
        verbs_connect_confirmed(peer);
    if (OPAL_UNLIKELY(!message_count(peer) || module->finalized))
        return; /* at the end the receiver's callback may be gone */
    /* The sender is passed on even before Open MPI adds it: Open MPI's puts by message abort
     * without it, and the greeting brought all that an answer needs. */
    fragment_deliver(&module->super, peer, MESSAGE_WORD_TAG(word),
                     module->receives.buffers[index].memory, wc->byte_len);
}

static int receives_handle(struct verbs_module *module)
{
    struct ibv_wc completions[BATCH];
    int count = ibv_poll_cq(module->receive_cq, BATCH, completions);

    for (int i = 0; i < count; i++) {
        const struct ibv_wc *wc = &completions[i];
        uint32_t index = GREETING_ID_INDEX(wc->wr_id);

        if ((wc->wr_id & 3) == GREETING_ID_MARK) {
            verbs_greeting_received(module, index, wc);
            continue;
        }
        if (OPAL_LIKELY(wc->status == IBV_WC_SUCCESS))
            message_hand_out(module, index, wc);
        /* A failed receive means a broken connection, which the send queue reports. */
        verbs_receive_again(module, index);
    }
    if (count == 0 && module->receives.unposted_count != 0)
        verbs_receives_post(module); /* while there is nothing else to do */
    if (count == 0 &&
        OPAL_UNLIKELY(atomic_load_explicit(&module->greeter_broken, memory_order_relaxed)))
        verbs_greeter_restart(module);
    if (count < BATCH) /* by the one thread that polls; release: see verbs_peer_is_drained */
        atomic_store_explicit(&module->empty_rounds,
                              atomic_load_explicit(&module->empty_rounds, memory_order_relaxed) + 1,
                              memory_order_release);
    return count < 0 ? 0 : count;
}

/* Only one thread at a time polls the queues. The others do not wait, and neither does a callback
 * that makes progress: it must not handle the next message within its own. */
static inline bool polling_take(struct verbs_module *module)
{
    if (atomic_load_explicit(&module->polling, memory_order_relaxed))
        return false;
    /* Acquire: pairs with the release in polling_leave of the thread before. */
    return !atomic_exchange_explicit(&module->polling, true, memory_order_acquire);
}

static inline void polling_leave(struct verbs_module *module)
{
    atomic_store_explicit(&module->polling, false, memory_order_release);
}

/* --- events of the device --- */

/* Of the queue pair or the port that an event is about. */
static uint32_t number_of(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        return event->element.qp->qp_num;
    default:
        return (uint32_t) event->element.port_num;
    }
}

/* Those with this queue pair, or all (ANY_PAIR). */
static void peers_fail(struct verbs_module *module, uint32_t qpn, const char *why)
{
    verbs_peer_t *peer;

    for (uint32_t i = 0; (peer = verbs_peer_at(module, i)); i++)
        verbs_peer_fail_pair(peer, qpn, why);
}

static void last_buffer_used(struct verbs_module *module, uint32_t qpn)
{
    verbs_peer_t *peer;

    for (uint32_t i = 0; (peer = verbs_peer_at(module, i)); i++)
        verbs_peer_last_buffer(peer, qpn);
}

/* A port has come up or something about it has changed: its address may be another one. */
static void port_look(struct verbs_module *module)
{
    const char *changed = verbs_device_refresh(module);
    verbs_peer_t *peer;

    if (!changed)
        return;
    VERBS_VERBOSE("%s: %s", module->device, changed);
    for (uint32_t i = 0; (peer = verbs_peer_at(module, i)); i++) {
        OPAL_THREAD_LOCK(&peer->lock);
        bool is_connected =
            verbs_peer_state(peer) == PEER_ANSWERED || verbs_peer_state(peer) == PEER_READY;
        if (peer->greeting_path) /* it begins at the old address */
            ibv_destroy_ah(peer->greeting_path);
        peer->greeting_path = NULL;
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (is_connected) /* others are greeted from the new address */
            verbs_peer_fail(peer, changed);
    }
}

static void event_handle(struct verbs_module *module, enum ibv_event_type type, uint32_t number)
{
    const char *name = ibv_event_type_str(type);

    switch (type) {
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
        if (number != module->port_number)
            return;
        module->port_down = type == IBV_EVENT_PORT_ERR;
        module->port_down_since_ms = verbs_now_ms();
        VERBS_VERBOSE("%s: its port is %s", module->device,
                      module->port_down ? "down" : "up again");
        if (!module->port_down)
            port_look(module);
        return;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        if (number == module->port_number)
            port_look(module);
        return;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        /* Nothing more comes, but what came was acknowledged, and its sender does not send it
         * again. */
        while (receives_handle(module) > 0)
            ;
        verbs_module_die(module, name);
        return;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        last_buffer_used(module, number);
        return;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        verbs_receives_grow(module);
        return;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        peers_fail(module, number, name);
        return;
    case IBV_EVENT_COMM_EST:
        return; /* the message itself shows it */
    default:
        VERBS_VERBOSE("%s: %s", module->device, name);
    }
}

/* Acknowledged before it is handled: a thread that destroys a queue pair waits for the
 * acknowledgement, and holds its peer's lock, which the handler takes. */
static void events_read(struct verbs_module *module)
{
    struct ibv_async_event read;

    while (ibv_get_async_event(module->context, &read) == 0) {
        uint32_t number = number_of(&read); /* its queue pair may be gone then */

        ibv_ack_async_event(&read);
        event_handle(module, read.event_type, number);
    }
}

/* --- progress --- */

static __attribute__((noinline)) void round_extra(struct verbs_module *module, uint32_t round)
{
    bool greeting = peer_list_count(&module->greeting) != 0;

    /* A port that is down may be up again, which decides what greetings do. */
    if (round % EVENT_ROUNDS == 0 || module->port_down ||
        atomic_load_explicit(&module->draining, memory_order_relaxed) != 0)
        events_read(module);
    if (OPAL_UNLIKELY(module->look_due) && round % EVENT_ROUNDS == 0)
        port_look(module);
    if (greeting && !atomic_load_explicit(&module->dead, memory_order_relaxed))
        verbs_greetings_repeat(module);
}

/* A dead device reports nothing, but its messages are returned. */
static __attribute__((noinline)) int progress_dead(struct verbs_module *module)
{
    if (!atomic_load_explicit(&module->returns_due, memory_order_relaxed) || !polling_take(module))
        return 0;
    int events = verbs_returns_make_all(module);
    polling_leave(module);
    return events;
}

int verbs_progress_module(struct verbs_module *module)
{
    if (OPAL_UNLIKELY(atomic_load_explicit(&module->dead, memory_order_relaxed)))
        return progress_dead(module);
    if (!polling_take(module))
        return 0;
    uint32_t round = module->round++;
    /* Relaxed, here and below: what another thread begins now is seen in a later round. */
    if (atomic_load_explicit(&module->pair_count, memory_order_relaxed) == 0 &&
        round % PORT_ROUNDS != 0) {
        polling_leave(module);
        return 0;
    }
    int events = receives_handle(module);
    if (atomic_load_explicit(&module->reports_due, memory_order_relaxed) != 0 ||
        round % REPORT_ROUNDS == 0)
        events += verbs_completions_poll(module);
    if (OPAL_UNLIKELY(peer_list_count(&module->waiting) != 0))
        events += verbs_submit_waiting(module);
    if (OPAL_UNLIKELY(atomic_load_explicit(&module->returns_due, memory_order_relaxed)))
        events += verbs_returns_make_all(module);
    if (OPAL_UNLIKELY(round % GREETING_ROUNDS == 0))
        round_extra(module, round);
    polling_leave(module);
    return events;
}

int verbs_progress_all(void)
{
    static _Thread_local uint32_t idle_rounds;
    bool soft = false;
    int events = 0;

    for (uint32_t i = 0; i < verbs.module_count; i++) {
        events += verbs_progress_module(verbs.modules[i]);
        soft |= verbs.modules[i]->soft;
    }
    idle_rounds = events ? 0 : idle_rounds + 1;
    if (OPAL_UNLIKELY(soft && idle_rounds >= YIELD_SOFT))
        sched_yield();
    return events;
}

static bool module_is_quiet(struct verbs_module *module)
{
    verbs_peer_t *peer;

    for (uint32_t i = 0; (peer = verbs_peer_at(module, i)); i++)
        if (!verbs_peer_is_quiet(peer))
            return false;
    return true;
}

bool verbs_progress_drain(struct verbs_module *module, uint64_t limit_ms)
{
    uint64_t end = verbs_now_ms() + limit_ms;

    while (!module_is_quiet(module)) {
        if (verbs_now_ms() >= end)
            return false;
        (void) verbs_progress_module(module);
    }
    return true;
}
