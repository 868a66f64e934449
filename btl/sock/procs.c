/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that Open MPI adds and takes back. */
#include "btl/sock/sock.h"

#include <stdlib.h>

#include "common/compat/component.h"

/* So long what is kept for a peer may take to be received when Open MPI removes it. */
#define DRAIN_MS 1000u

static bool record_fits(const void *data, size_t bytes)
{
    const struct sock_record *record = data;

    if (bytes < SOCK_RECORD_BYTES(0) || record->version != SOCK_RECORD_VERSION ||
        record->count > ADDRESSES_MAX || SOCK_RECORD_BYTES(record->count) != bytes)
        return false;
    for (uint32_t i = 0; i < record->count; i++)
        if (record->addresses[i].name[ADDRESS_NAME_BYTES - 1] != '\0' ||
            (record->addresses[i].family != 0 && record->addresses[i].family != 4 &&
             record->addresses[i].family != 6))
            return false;
    return true;
}

/* A longer frame than the other end takes would break each connection, and so would plain text. */
static bool speaks_alike(const opal_proc_t *proc, const struct sock_record *record)
{
    if (record->message_bytes == sock.record.message_bytes &&
        record->put_bytes == sock.record.put_bytes &&
        record->is_encrypted == sock.record.is_encrypted)
        return true;
    SAY_ONCE(SOCK_SAY,
             "process %s has another btl_sock_max_send_size, btl_sock_put_limit or btl_sock_tls "
             "than this one; messages between such processes take another lane. Give all of "
             "the job the same.",
             OPAL_NAME_PRINT(proc->proc_name));
    return false;
}

/* The address of the process that this module leads to; -1: none. */
static int address_of(const struct sock_module *module, const opal_proc_t *proc,
                      const struct sock_record *record)
{
    int pairs[ADDRESSES_MAX];

    sock_addresses_pair(sock.record.addresses, sock.record.count, record->addresses, record->count,
                        record->host == sock.record.host,
                        sock_name_is_before(&opal_proc_local_get()->proc_name, &proc->proc_name),
                        pairs);
    return pairs[module->address];
}

/* Under the peer's lock. False: it was given up, and the two ends do not know yet that both have.
 */
static bool peer_revive(sock_peer_t *peer)
{
    if (sock_peer_state(peer) == PEER_ENDED)
        atomic_store_explicit(&peer->state, PEER_UP, memory_order_relaxed);
    if (sock_peer_state(peer) != PEER_FAILED)
        return true;
    if (sock_peer_is_unfenced(peer) || peer->link || !sock_queue_is_empty(peer))
        return false;
    sock_peer_begin(peer, peer->session + 1);
    return true;
}

/* NULL: this module leads to no address of it, which is no error. */
static sock_peer_t *peer_add(mca_btl_base_module_t *btl, opal_proc_t *proc, int *status)
{
    struct sock_module *module = module_of(btl);
    struct sock_record *record = component_record_of(btl->btl_component, proc, record_fits);
    if (!record)
        return NULL;
    int address = speaks_alike(proc, record) ? address_of(module, proc, record) : -1;
    sock_peer_t *peer = address < 0 ? NULL : sock_peer_get(module, &proc->proc_name);
    if (address >= 0 && !peer)
        *status = OPAL_ERR_OUT_OF_RESOURCE;
    if (peer && !sock_peer_is_of_this_job(peer))
        sock.others_until_ms = 0; /* a session begins, where a tool has kept this BTL open */
    if (peer) {
        OPAL_THREAD_LOCK(&peer->lock);
        bool is_new = !peer->known;
        sock_peer_know(peer, proc, &record->addresses[address], &record->secret,
                       sock_rail((uint32_t) address, module->nth), record->links);
        bool is_alive = peer_revive(peer);
        OPAL_THREAD_UNLOCK(&peer->lock);
        /* Who had the lane before waits for the fence. Others get it, and learn from the first
         * message that it failed. */
        if (!is_new && !is_alive)
            peer = NULL;
    }
    free(record);
    return peer;
}

int sock_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                   sock_peer_t **peers, opal_bitmap_t *reachable)
{
    return lane_add_procs(btl, count, procs, peers, reachable, peer_add);
}

/* A process of another job may compute still, and has not waited for this one; all of them have so
 * long together. */
static uint64_t drain_limit_ms(const sock_peer_t *peer)
{
    uint64_t now_ms = sock_now_ms();

    if (sock_peer_is_of_this_job(peer))
        return DRAIN_MS;
    if (sock.others_until_ms == 0)
        sock.others_until_ms = now_ms + (uint64_t) sock.lost_s * 1000;
    return sock.others_until_ms > now_ms ? sock.others_until_ms - now_ms : 0;
}

static void peer_part(sock_peer_t *peer)
{
    sock_progress_drain(peer, drain_limit_ms(peer));
    sock_link_return_to(&peer->module->super, peer, NULL, NULL);
    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->bye_state == 0)
        peer->bye_state = 1;
    sock_queue_write(peer);
    peer->known = false;
    peer->proc = NULL;
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* With the further connections of a first one, which is the first to go: then they do not come
 * back. */
int sock_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                   sock_peer_t **peers)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t nth = 0; peers[i] && nth < SOCK_LINKS_MAX; nth++) {
            struct sock_module *module = sock_module_nth(module_of(btl), nth);
            sock_peer_t *peer = module ? peer_table_find(&module->peers, &peers[i]->name) : NULL;
            if (peer)
                peer_part(peer);
        }
    return OPAL_SUCCESS;
}
