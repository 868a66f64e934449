/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and atomics: by the kernel's copying where the peer was proven, otherwise by messages
 * that the owner of the memory answers (serve.c).
 *
 * MPI's windows need all three of one BTL in Open MPI 4.1: without them osc/rdma takes none, and
 * osc/pt2pt, which Debian leaves out, takes none of a program with threads. From 5.0 on Open MPI
 * does them by messages itself where a BTL does not. */
#include "btl/shm/remote.h"

#include <string.h>

#include "common/compat/tsan.h"

static struct {
    /* Guards all of it, the peers' lists of operations and the operations: the thread that asks and
     * the thread that receives an answer work on the same one. Taken before a peer's lock. */
    opal_mutex_t lock;
    opal_free_list_t operations;
    uint64_t operation_next;
} remote;

/* What Open MPI wants of a peer's memory. */
struct wanted {
    uint8_t op;
    uint64_t address, size;
    const mca_btl_base_registration_handle_t *handle; /* of that memory; valid while asking */
    struct remote_request request;
};

/* Something asked of a peer. */
struct shm_operation {
    opal_free_list_item_t super;
    uint64_t id;
    struct wanted wanted;
    mca_btl_base_registration_handle_t handle;
    int status;     /* the first error that the peer answered with */
    uint64_t asked; /* bytes of it that a request was sent for */
    uint64_t answered;
};

/* Pieces asked for and not yet answered, so that neither end queues a whole large transfer. */
#define PIECES_UNDER_WAY 4u

int shm_remote_init(void)
{
    OBJ_CONSTRUCT(&remote.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&remote.operations, opal_free_list_t);
    return opal_free_list_init(&remote.operations, sizeof(struct shm_operation), 8,
                               OBJ_CLASS(opal_free_list_item_t), 0, 0, 0, -1, 8, NULL, 0, NULL,
                               NULL, NULL);
}

void shm_remote_finish(void)
{
    OBJ_DESTRUCT(&remote.operations);
    OBJ_DESTRUCT(&remote.lock);
}

/* --- asking --- */

/* With remote.lock held, as all up to operation_report, and transfer_begin. */
static struct shm_operation *operation_create(shm_peer_t *peer, const struct wanted *wanted)
{
    struct shm_operation *operation = (struct shm_operation *) tsan_list_get(&remote.operations);

    if (!operation)
        return NULL;
    operation->wanted = *wanted;
    operation->handle = *wanted->handle;
    operation->status = OPAL_SUCCESS;
    operation->asked = operation->answered = 0;
    operation->id = ++remote.operation_next;
    opal_list_append(&peer->remote_operations, &operation->super.super);
    return operation;
}

static struct shm_operation *operation_find(shm_peer_t *peer, uint64_t id)
{
    struct shm_operation *operation, *found = NULL;

    OPAL_LIST_FOREACH(operation, &peer->remote_operations, struct shm_operation)
    if (operation->id == id)
        found = operation;
    return found;
}

static void *local_at(const struct wanted *wanted, uint64_t offset)
{
    return (unsigned char *) wanted->request.local + offset;
}

/* Sends requests for the bytes not asked for yet, as far as the window allows. */
static int pieces_ask(shm_peer_t *peer, struct shm_operation *operation)
{
    const struct wanted *wanted = &operation->wanted;
    bool put = wanted->op == REMOTE_PUT;

    while (operation->asked < wanted->size &&
           operation->asked - operation->answered < PIECES_UNDER_WAY * remote_piece_max()) {
        uint64_t left = wanted->size - operation->asked;
        uint64_t size = left < remote_piece_max() ? left : remote_piece_max();
        struct remote_message message = {.op = wanted->op,
                                         .id = operation->id,
                                         .address = wanted->address + operation->asked,
                                         .handle = operation->handle,
                                         .piece = {.size = size, .offset = operation->asked}};
        int status =
            shm_send_remote(peer, &message, sizeof(message),
                            put ? local_at(wanted, operation->asked) : NULL, put ? size : 0);

        if (status != OPAL_SUCCESS)
            return status;
        operation->asked += size;
    }
    return OPAL_SUCCESS;
}

/* After a request could not be sent, and none was sent before. */
static int operation_abandon(shm_peer_t *peer, struct shm_operation *operation, int status)
{
    opal_list_remove_item(&peer->remote_operations, &operation->super.super);
    tsan_list_return(&remote.operations, &operation->super);
    return status;
}

/* With no lock held: the operation is off the list. */
static void operation_report(shm_peer_t *peer, struct shm_operation *operation, int status)
{
    remote_request_end(&shm_module, peer, &operation->wanted.request, status);
    tsan_list_return(&remote.operations, &operation->super);
}

static int transfer_begin(shm_peer_t *peer, const struct wanted *wanted)
{
    struct shm_operation *operation = operation_create(peer, wanted);

    if (!operation)
        return OPAL_ERR_OUT_OF_RESOURCE;
    int status = pieces_ask(peer, operation);
    if (status != OPAL_SUCCESS && operation->asked == 0)
        return operation_abandon(peer, operation, status);
    /* The rest is asked for when an answer comes. */
    return OPAL_SUCCESS;
}

/* After the kernel was asked to copy: if it does not, now or for good, messages do. */
static int transfer_after(int copied, shm_peer_t *peer, const struct wanted *wanted)
{
    bool by_message = copied == OPAL_ERR_NOT_SUPPORTED;

    if (OPAL_UNLIKELY(by_message && !wanted->handle))
        return OPAL_ERR_NOT_AVAILABLE;
    if (OPAL_UNLIKELY(by_message && wanted->size != 0)) {
        OPAL_THREAD_LOCK(&remote.lock);
        int status = transfer_begin(peer, wanted);
        OPAL_THREAD_UNLOCK(&remote.lock);
        return status;
    }
    if (by_message) /* no answer would come */
        copied = OPAL_SUCCESS;
    if (copied == OPAL_SUCCESS)
        remote_request_end(&shm_module, peer, &wanted->request, OPAL_SUCCESS);
    return copied;
}

int shm_remote_put(REMOTE_FROM(shm_peer_t), size_t size, REMOTE_ENDING)
{
    const struct wanted wanted = {REMOTE_PUT, remote_address, size, remote_handle, REMOTE_REQUEST};

    return transfer_after(shm_copy_to(btl, peer, local_address, remote_address, size), peer,
                          &wanted);
}

int shm_remote_get(REMOTE_FROM(shm_peer_t), size_t size, REMOTE_ENDING)
{
    const struct wanted wanted = {REMOTE_GET, remote_address, size, remote_handle, REMOTE_REQUEST};

    return transfer_after(shm_copy_from(btl, peer, local_address, remote_address, size), peer,
                          &wanted);
}

/* Of 4 or 8 bytes, which is all that `flags` say. */
static int atomic_ask(shm_peer_t *peer, struct wanted wanted, int flags, uint16_t atomic,
                      uint64_t first, uint64_t second)
{
    struct remote_message message = {.op = wanted.op,
                                     .narrow = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0,
                                     .atomic = atomic,
                                     .address = wanted.address,
                                     .operands = {first, second}};
    int status = OPAL_ERR_OUT_OF_RESOURCE;

    if (!wanted.handle)
        return OPAL_ERR_NOT_AVAILABLE;
    message.handle = *wanted.handle;
    wanted.size = remote_atomic_bytes(&message);
    if (wanted.address % wanted.size != 0)
        return OPAL_ERR_NOT_SUPPORTED;
    OPAL_THREAD_LOCK(&remote.lock);
    struct shm_operation *operation = operation_create(peer, &wanted);
    if (operation) {
        operation->asked = wanted.size;
        message.id = operation->id;
        status = shm_send_remote(peer, &message, sizeof(message), NULL, 0);
        if (status != OPAL_SUCCESS)
            (void) operation_abandon(peer, operation, status);
    }
    OPAL_THREAD_UNLOCK(&remote.lock);
    return status;
}

int shm_remote_atomic(mca_btl_base_module_t *btl, shm_peer_t *peer, uint64_t remote_address,
                      mca_btl_base_registration_handle_t *handle, mca_btl_base_atomic_op_t op,
                      uint64_t operand, REMOTE_ENDING)
{
    return shm_remote_fetch_atomic(btl, peer, NULL, remote_address, NULL, handle, op, operand,
                                   flags, order, callback, context, data);
}

int shm_remote_fetch_atomic(REMOTE_FROM(shm_peer_t), mca_btl_base_atomic_op_t op, uint64_t operand,
                            REMOTE_ENDING)
{
    const struct wanted wanted = {REMOTE_ATOMIC, remote_address, 0, remote_handle, REMOTE_REQUEST};
    uint64_t value;

    /* Now: osc/rdma, which does it by other means then, looks at no status later. */
    if (!remote_atomic_value((uint16_t) op, 0, operand, &value))
        return OPAL_ERR_NOT_SUPPORTED;
    return atomic_ask(peer, wanted, flags, (uint16_t) op, operand, 0);
}

int shm_remote_compare_swap(REMOTE_FROM(shm_peer_t), uint64_t compare, uint64_t value,
                            REMOTE_ENDING)
{
    const struct wanted wanted = {REMOTE_SWAP_IF, remote_address, 0, remote_handle, REMOTE_REQUEST};

    return atomic_ask(peer, wanted, flags, 0, compare, value);
}

/* --- answers --- */

/* An answer ends a put, or brings bytes of a get or the value of an atomic. False: it does not
 * match the request. With remote.lock held. */
static bool value_answered(struct shm_operation *operation, const struct remote_message *answer,
                           size_t data_bytes)
{
    if (data_bytes != 0)
        return false;
    if (answer->status == OPAL_SUCCESS && operation->wanted.request.local)
        memcpy(operation->wanted.request.local, &answer->operands[0], operation->wanted.size);
    operation->answered = operation->wanted.size;
    return true;
}

static bool piece_answered(struct shm_operation *operation, const struct remote_message *answer,
                           const void *data, size_t data_bytes)
{
    uint64_t size = answer->piece.size, offset = answer->piece.offset;
    bool found = operation->wanted.op == REMOTE_GET && answer->status == OPAL_SUCCESS;

    if (offset > operation->wanted.size || size > operation->wanted.size - offset ||
        size > operation->asked - operation->answered || data_bytes != (found ? size : 0))
        return false;
    if (found)
        memcpy(local_at(&operation->wanted, offset), data, size);
    operation->answered += size;
    return true;
}

/* *ended is the operation if that was its last answer. With remote.lock held. */
static bool answer_count(shm_peer_t *peer, const struct remote_message *answer, const void *data,
                         size_t data_bytes, struct shm_operation **ended)
{
    struct shm_operation *operation = operation_find(peer, answer->id);
    bool fits;

    if (!operation)
        return false;
    if (operation->wanted.op == REMOTE_PUT || operation->wanted.op == REMOTE_GET)
        fits = piece_answered(operation, answer, data, data_bytes);
    else
        fits = value_answered(operation, answer, data_bytes);
    if (!fits)
        return false;
    if (operation->status == 0)
        operation->status = answer->status;
    if (operation->status == 0)
        operation->status = pieces_ask(peer, operation);
    if (operation->answered == operation->asked &&
        (operation->asked == operation->wanted.size || operation->status != 0)) {
        opal_list_remove_item(&peer->remote_operations, &operation->super.super);
        *ended = operation;
    }
    return true;
}

bool shm_remote_answered(shm_peer_t *peer, const struct remote_message *answer, const void *data,
                         size_t data_bytes)
{
    struct shm_operation *ended = NULL;

    OPAL_THREAD_LOCK(&remote.lock);
    bool fits = answer_count(peer, answer, data, data_bytes, &ended);
    OPAL_THREAD_UNLOCK(&remote.lock);
    if (ended)
        operation_report(peer, ended, ended->status);
    return fits;
}

void shm_remote_fail(shm_peer_t *peer)
{
    struct shm_operation *operation;

    do {
        OPAL_THREAD_LOCK(&remote.lock);
        operation = (struct shm_operation *) opal_list_remove_first(&peer->remote_operations);
        OPAL_THREAD_UNLOCK(&remote.lock);
        if (operation)
            operation_report(peer, operation, OPAL_ERR_UNREACH);
    } while (operation);
}
