/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and atomics: by the kernel's copying where the peer was proven, otherwise by messages
 * that the owner of the memory answers (serve.c). */
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

/* Something asked of a peer. */
struct shm_operation {
    opal_free_list_item_t super;
    uint64_t id;
    uint8_t op;
    int status; /* the first error that the peer answered with */
    uint64_t size;
    uint64_t asked; /* bytes of it that a request was sent for */
    uint64_t answered;
    unsigned char *local;
    uint64_t address;
    mca_btl_base_registration_handle_t handle;
    mca_btl_base_registration_handle_t *local_handle;
    mca_btl_base_rdma_completion_fn_t callback;
    void *context;
    void *data;
};

typedef struct shm_operation struct_shm_operation;

OBJ_CLASS_INSTANCE(struct_shm_operation, opal_free_list_item_t, NULL, NULL);

/* Pieces asked for and not yet answered, so that neither end queues a whole large transfer. */
#define PIECES_UNDER_WAY 4u

int shm_remote_init(void)
{
    OBJ_CONSTRUCT(&remote.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&remote.operations, opal_free_list_t);
    return opal_free_list_init(&remote.operations, sizeof(struct shm_operation), 8,
                               OBJ_CLASS(struct_shm_operation), 0, 0, 0, -1, 8, NULL, 0, NULL, NULL,
                               NULL);
}

void shm_remote_finish(void)
{
    OBJ_DESTRUCT(&remote.operations);
    OBJ_DESTRUCT(&remote.lock);
}

/* --- asking --- */

/* With remote.lock held, as all up to operation_report, and transfer_begin. */
static struct shm_operation *operation_create(shm_peer_t *peer, uint8_t op, void *local,
                                              uint64_t address, uint64_t size,
                                              const mca_btl_base_registration_handle_t *handle,
                                              mca_btl_base_rdma_completion_fn_t callback,
                                              void *context, void *data)
{
    struct shm_operation *operation = (struct shm_operation *) tsan_list_get(&remote.operations);

    if (!operation)
        return NULL;
    operation->op = op;
    operation->status = OPAL_SUCCESS;
    operation->size = size;
    operation->asked = operation->answered = 0;
    operation->local = local;
    operation->address = address;
    operation->handle = *handle;
    operation->local_handle = NULL;
    operation->callback = callback;
    operation->context = context;
    operation->data = data;
    operation->id = ++remote.operation_next;
    opal_list_append(&peer->remote_operations, &operation->super.super);
    return operation;
}

static struct shm_operation *operation_find(shm_peer_t *peer, uint64_t id)
{
    struct shm_operation *operation, *found = NULL;

    OPAL_LIST_FOREACH(operation, &peer->remote_operations, struct_shm_operation)
    if (operation->id == id)
        found = operation;
    return found;
}

/* Sends requests for the bytes not asked for yet, as far as the window allows. */
static int pieces_ask(shm_peer_t *peer, struct shm_operation *operation)
{
    while (operation->asked < operation->size &&
           operation->asked - operation->answered < PIECES_UNDER_WAY * remote_piece_max()) {
        uint64_t left = operation->size - operation->asked;
        uint64_t size = left < remote_piece_max() ? left : remote_piece_max();
        struct remote_message message = {.op = operation->op,
                                         .id = operation->id,
                                         .address = operation->address + operation->asked,
                                         .handle = operation->handle,
                                         .piece = {.size = size, .offset = operation->asked}};
        bool put = operation->op == REMOTE_PUT;
        int status =
            shm_send_remote(peer, &message, sizeof(message),
                            put ? operation->local + operation->asked : NULL, put ? size : 0);

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
    if (operation->callback)
        operation->callback(&shm_module, peer, operation->local, operation->local_handle,
                            operation->context, operation->data, status);
    tsan_list_return(&remote.operations, &operation->super);
}

static int transfer_begin(shm_peer_t *peer, uint8_t op, void *local, uint64_t address,
                          uint64_t size, mca_btl_base_registration_handle_t *local_handle,
                          const mca_btl_base_registration_handle_t *handle,
                          mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct shm_operation *operation =
        operation_create(peer, op, local, address, size, handle, callback, context, data);

    if (!operation)
        return OPAL_ERR_OUT_OF_RESOURCE;
    operation->local_handle = local_handle;
    int status = pieces_ask(peer, operation);
    if (status != OPAL_SUCCESS && operation->asked == 0)
        return operation_abandon(peer, operation, status);
    /* The rest is asked for when an answer comes. */
    return OPAL_SUCCESS;
}

static int transfer_ask(shm_peer_t *peer, uint8_t op, void *local, uint64_t address, uint64_t size,
                        mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle,
                        mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    if (!remote_handle)
        return OPAL_ERR_NOT_AVAILABLE;
    if (size == 0) { /* no answer would come */
        if (callback)
            callback(&shm_module, peer, local, local_handle, context, data, OPAL_SUCCESS);
        return OPAL_SUCCESS;
    }
    OPAL_THREAD_LOCK(&remote.lock);
    int status = transfer_begin(peer, op, local, address, size, local_handle, remote_handle,
                                callback, context, data);
    OPAL_THREAD_UNLOCK(&remote.lock);
    return status;
}

/* After the kernel was asked to copy: if it does not, now or for good, messages do. */
static int transfer_after(int copied, shm_peer_t *peer, uint8_t op, void *local, uint64_t address,
                          uint64_t size, mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle,
                          mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    if (OPAL_UNLIKELY(copied == OPAL_ERR_NOT_SUPPORTED))
        return transfer_ask(peer, op, local, address, size, local_handle, remote_handle, callback,
                            context, data);
    if (copied == OPAL_SUCCESS && callback)
        callback(&shm_module, peer, local, local_handle, context, data, OPAL_SUCCESS);
    return copied;
}

int shm_remote_put(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                   uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                   int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    int copied = shm_copy_to(btl, peer, local_address, remote_address, size);

    (void) flags;
    (void) order;
    return transfer_after(copied, peer, REMOTE_PUT, local_address, remote_address, size,
                          local_handle, remote_handle, callback, context, data);
}

int shm_remote_get(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                   uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                   int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    int copied = shm_copy_from(btl, peer, local_address, remote_address, size);

    (void) flags;
    (void) order;
    return transfer_after(copied, peer, REMOTE_GET, local_address, remote_address, size,
                          local_handle, remote_handle, callback, context, data);
}

static int atomic_ask(shm_peer_t *peer, uint8_t op, void *local, uint64_t address,
                      mca_btl_base_registration_handle_t *local_handle,
                      mca_btl_base_registration_handle_t *handle, int flags, uint16_t atomic,
                      uint64_t first, uint64_t second, mca_btl_base_rdma_completion_fn_t callback,
                      void *context, void *data)
{
    struct remote_message message = {.op = op,
                                     .narrow = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0,
                                     .atomic = atomic,
                                     .address = address,
                                     .operands = {first, second}};
    int status = OPAL_ERR_OUT_OF_RESOURCE;

    if (!handle)
        return OPAL_ERR_NOT_AVAILABLE;
    message.handle = *handle;
    OPAL_THREAD_LOCK(&remote.lock);
    struct shm_operation *operation = operation_create(
        peer, op, local, address, remote_atomic_bytes(&message), handle, callback, context, data);
    if (operation) {
        operation->local_handle = local_handle;
        operation->asked = operation->size;
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
                      uint64_t operand, int flags, int order,
                      mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) btl;
    (void) order;
    return atomic_ask(peer, REMOTE_ATOMIC, NULL, remote_address, NULL, handle, flags, (uint16_t) op,
                      operand, 0, callback, context, data);
}

int shm_remote_fetch_atomic(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                            uint64_t remote_address,
                            mca_btl_base_registration_handle_t *local_handle,
                            mca_btl_base_registration_handle_t *handle, mca_btl_base_atomic_op_t op,
                            uint64_t operand, int flags, int order,
                            mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) btl;
    (void) order;
    return atomic_ask(peer, REMOTE_ATOMIC, local_address, remote_address, local_handle, handle,
                      flags, (uint16_t) op, operand, 0, callback, context, data);
}

int shm_remote_compare_swap(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                            uint64_t remote_address,
                            mca_btl_base_registration_handle_t *local_handle,
                            mca_btl_base_registration_handle_t *handle, uint64_t compare,
                            uint64_t value, int flags, int order,
                            mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) btl;
    (void) order;
    return atomic_ask(peer, REMOTE_SWAP_IF, local_address, remote_address, local_handle, handle,
                      flags, 0, compare, value, callback, context, data);
}

/* --- answers --- */

/* An answer ends a put, or brings bytes of a get or the value of an atomic. False: it does not
 * match the request. With remote.lock held. */
static bool value_answered(struct shm_operation *operation, const struct remote_message *answer,
                           size_t data_bytes)
{
    if (data_bytes != 0)
        return false;
    if (answer->status == OPAL_SUCCESS && operation->local)
        memcpy(operation->local, &answer->operands[0], operation->size);
    operation->answered = operation->size;
    return true;
}

static bool piece_answered(struct shm_operation *operation, const struct remote_message *answer,
                           const void *data, size_t data_bytes)
{
    uint64_t size = answer->piece.size, offset = answer->piece.offset;
    bool found = operation->op == REMOTE_GET && answer->status == OPAL_SUCCESS;

    if (offset > operation->size || size > operation->size - offset ||
        size > operation->asked - operation->answered || data_bytes != (found ? size : 0))
        return false;
    if (found)
        memcpy(operation->local + offset, data, size);
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
    if (operation->op == REMOTE_PUT || operation->op == REMOTE_GET)
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
        (operation->asked == operation->size || operation->status != 0)) {
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
