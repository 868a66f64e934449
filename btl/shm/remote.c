/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and atomics: by the kernel's copying where the peer can be proven, else by messages that
 * the owner of the memory answers. */
#include "btl/shm/shm.h"

#include <string.h>

#include "common/compat/tsan.h"

static struct {
    /* Guards all of it, the peers' lists of operations and what these say: the thread that asks and
     * the one that hears an answer work on the same operation. Taken before a peer's lock. */
    opal_mutex_t lock;
    opal_free_list_t operations;
    uint64_t operation_next;
} remote;

enum remote_op {
    REMOTE_PUT = 1, /* data follow, for `address` */
    REMOTE_GET,     /* answer with `size` bytes from `address` */
    REMOTE_ATOMIC,
    REMOTE_SWAP_IF, /* compare and swap */
    REMOTE_ANSWER   /* to one of these */
};

/* With nothing behind it, it is a message of one line. */
struct remote_message {
    uint8_t op;
    uint8_t narrow; /* an atomic on 32 bits */
    uint16_t atomic;
    int32_t status; /* of an answer */
    uint64_t id;    /* of the operation at the one who asked */
    uint64_t address;
    mca_btl_base_registration_handle_t handle;
    union {
        struct {
            uint64_t size;
            uint64_t offset;  /* in the operation */
        } piece;              /* of a put or a get */
        uint64_t operands[2]; /* of an atomic; the first of an answer is what was there before */
    };
};
_Static_assert(sizeof(struct remote_message) <= RING_LINE_PAYLOAD, "more than a line");

/* Something asked of a peer. */
struct operation {
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
typedef struct operation struct_operation;
OBJ_CLASS_INSTANCE(struct_operation, opal_free_list_item_t, NULL, NULL);

/* Pieces asked for and not answered yet, so that neither end queues a whole large transfer. */
#define PIECES_UNDER_WAY 4u

int remote_init(void)
{
    OBJ_CONSTRUCT(&remote.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&remote.operations, opal_free_list_t);
    return opal_free_list_init(&remote.operations, sizeof(struct operation), 8,
                               OBJ_CLASS(struct_operation), 0, 0, 0, -1, 8, NULL, 0, NULL, NULL,
                               NULL);
}

void remote_finish(void)
{
    OBJ_DESTRUCT(&remote.operations);
    OBJ_DESTRUCT(&remote.lock);
}

/* --- asking --- */

/* With remote.lock held, as all that follows up to operation_report, and transfer_begin. */
static struct operation *operation_create(shm_peer_t *peer, uint8_t op, void *local,
                                          uint64_t address, uint64_t size,
                                          const mca_btl_base_registration_handle_t *handle,
                                          mca_btl_base_rdma_completion_fn_t callback, void *context,
                                          void *data)
{
    struct operation *operation = (struct operation *) tsan_list_get(&remote.operations);

    if (NULL == operation)
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

static struct operation *operation_find(shm_peer_t *peer, uint64_t id)
{
    struct operation *operation, *found = NULL;

    OPAL_LIST_FOREACH(operation, &peer->remote_operations, struct_operation)
    if (operation->id == id)
        found = operation;
    return found;
}

/* The largest piece that goes in one message of our rings. */
static uint64_t piece_max(void)
{
    return shm_module.super.btl_max_send_size - sizeof(struct remote_message);
}

/* Sends requests for the bytes not asked for yet, as far as the window allows. */
static int pieces_ask(shm_peer_t *peer, struct operation *operation)
{
    while (operation->asked < operation->size &&
           operation->asked - operation->answered < PIECES_UNDER_WAY * piece_max()) {
        uint64_t left = operation->size - operation->asked;
        uint64_t size = left < piece_max() ? left : piece_max();
        struct remote_message message = {.op = operation->op,
                                         .id = operation->id,
                                         .address = operation->address + operation->asked,
                                         .handle = operation->handle,
                                         .piece = {.size = size, .offset = operation->asked}};
        bool put = REMOTE_PUT == operation->op;
        int status = send_remote(peer, &message, sizeof(message),
                                 put ? operation->local + operation->asked : NULL, put ? size : 0);

        if (OPAL_SUCCESS != status)
            return status;
        operation->asked += size;
    }
    return OPAL_SUCCESS;
}

/* After a failure to ask: nothing of it is under way unless something was asked before. */
static int operation_abandon(shm_peer_t *peer, struct operation *operation, int status)
{
    opal_list_remove_item(&peer->remote_operations, &operation->super.super);
    tsan_list_return(&remote.operations, &operation->super);
    return status;
}

/* With no lock held: it is off the list, and ours alone. */
static void operation_report(shm_peer_t *peer, struct operation *operation, int status)
{
    if (NULL != operation->callback)
        operation->callback(&shm_module.super, peer, operation->local, operation->local_handle,
                            operation->context, operation->data, status);
    tsan_list_return(&remote.operations, &operation->super);
}

static int transfer_begin(shm_peer_t *peer, uint8_t op, void *local, uint64_t address,
                          uint64_t size, mca_btl_base_registration_handle_t *local_handle,
                          const mca_btl_base_registration_handle_t *handle,
                          mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct operation *operation =
        operation_create(peer, op, local, address, size, handle, callback, context, data);
    int status;

    if (NULL == operation)
        return OPAL_ERR_OUT_OF_RESOURCE;
    operation->local_handle = local_handle;
    status = pieces_ask(peer, operation);
    if (OPAL_SUCCESS != status && 0 == operation->asked)
        return operation_abandon(peer, operation, status);
    /* What could not be asked now is asked when an answer comes. */
    return OPAL_SUCCESS;
}

static int transfer_ask(shm_peer_t *peer, uint8_t op, void *local, uint64_t address, uint64_t size,
                        mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle_given,
                        mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    int status;

    if (NULL == remote_handle_given)
        return OPAL_ERR_NOT_AVAILABLE;
    if (0 == size) { /* there is nothing that an answer could end */
        if (NULL != callback)
            callback(&shm_module.super, peer, local, local_handle, context, data, OPAL_SUCCESS);
        return OPAL_SUCCESS;
    }
    OPAL_THREAD_LOCK(&remote.lock);
    status = transfer_begin(peer, op, local, address, size, local_handle, remote_handle_given,
                            callback, context, data);
    OPAL_THREAD_UNLOCK(&remote.lock);
    return status;
}

/* Whether the kernel's way is closed, now or for good: by message then. */
static bool copy_refused(int status)
{
    return OPAL_ERR_NOT_SUPPORTED == status;
}

int remote_put(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
               uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
               mca_btl_base_registration_handle_t *remote_handle_given, size_t size, int flags,
               int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    int status = copy_to(btl, peer, local_address, remote_address, size);

    (void) flags;
    (void) order;
    if (OPAL_UNLIKELY(copy_refused(status)))
        return transfer_ask(peer, REMOTE_PUT, local_address, remote_address, size, local_handle,
                            remote_handle_given, callback, context, data);
    if (OPAL_SUCCESS == status && NULL != callback)
        callback(btl, peer, local_address, local_handle, context, data, OPAL_SUCCESS);
    return status;
}

int remote_get(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
               uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
               mca_btl_base_registration_handle_t *remote_handle_given, size_t size, int flags,
               int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    int status = copy_from(btl, peer, local_address, remote_address, size);

    (void) flags;
    (void) order;
    if (OPAL_UNLIKELY(copy_refused(status)))
        return transfer_ask(peer, REMOTE_GET, local_address, remote_address, size, local_handle,
                            remote_handle_given, callback, context, data);
    if (OPAL_SUCCESS == status && NULL != callback)
        callback(btl, peer, local_address, local_handle, context, data, OPAL_SUCCESS);
    return status;
}

static uint64_t atomic_bytes(const struct remote_message *message)
{
    return message->narrow ? 4 : 8;
}

static int atomic_ask(shm_peer_t *peer, uint8_t op, void *local, uint64_t address,
                      mca_btl_base_registration_handle_t *local_handle,
                      mca_btl_base_registration_handle_t *handle, int flags, uint16_t atomic,
                      uint64_t first, uint64_t second, mca_btl_base_rdma_completion_fn_t callback,
                      void *context, void *data)
{
    struct remote_message message = {.op = op,
                                     .narrow = 0 != (flags & MCA_BTL_ATOMIC_FLAG_32BIT),
                                     .atomic = atomic,
                                     .address = address,
                                     .operands = {first, second}};
    struct operation *operation;
    int status = OPAL_ERR_OUT_OF_RESOURCE;

    if (NULL == handle)
        return OPAL_ERR_NOT_AVAILABLE;
    message.handle = *handle;
    OPAL_THREAD_LOCK(&remote.lock);
    operation = operation_create(peer, op, local, address, atomic_bytes(&message), handle, callback,
                                 context, data);
    if (NULL != operation) {
        operation->local_handle = local_handle;
        operation->asked = operation->size;
        message.id = operation->id;
        status = send_remote(peer, &message, sizeof(message), NULL, 0);
        if (OPAL_SUCCESS != status)
            (void) operation_abandon(peer, operation, status);
    }
    OPAL_THREAD_UNLOCK(&remote.lock);
    return status;
}

int remote_atomic(mca_btl_base_module_t *btl, shm_peer_t *peer, uint64_t remote_address,
                  mca_btl_base_registration_handle_t *handle, mca_btl_base_atomic_op_t op,
                  uint64_t operand, int flags, int order,
                  mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) btl;
    (void) order;
    return atomic_ask(peer, REMOTE_ATOMIC, NULL, remote_address, NULL, handle, flags, (uint16_t) op,
                      operand, 0, callback, context, data);
}

int remote_fetch_atomic(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *handle, mca_btl_base_atomic_op_t op,
                        uint64_t operand, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) btl;
    (void) order;
    return atomic_ask(peer, REMOTE_ATOMIC, local_address, remote_address, local_handle, handle,
                      flags, (uint16_t) op, operand, 0, callback, context, data);
}

int remote_compare_swap(mca_btl_base_module_t *btl, shm_peer_t *peer, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *handle, uint64_t compare,
                        uint64_t value, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    (void) btl;
    (void) order;
    return atomic_ask(peer, REMOTE_SWAP_IF, local_address, remote_address, local_handle, handle,
                      flags, 0, compare, value, callback, context, data);
}

/* --- answering --- */

/* The value that `op` makes of `old`. False: no such operation. */
static bool atomic_value(uint16_t op, uint64_t old, uint64_t operand, bool narrow, uint64_t *value)
{
    bool less = narrow ? (int32_t) operand < (int32_t) old : (int64_t) operand < (int64_t) old;

    switch (op) {
    case MCA_BTL_ATOMIC_ADD:
        *value = old + operand;
        return true;
    case MCA_BTL_ATOMIC_AND:
        *value = old & operand;
        return true;
    case MCA_BTL_ATOMIC_OR:
        *value = old | operand;
        return true;
    case MCA_BTL_ATOMIC_XOR:
        *value = old ^ operand;
        return true;
    case MCA_BTL_ATOMIC_SWAP:
        *value = operand;
        return true;
    case MCA_BTL_ATOMIC_MIN:
        *value = less ? operand : old;
        return true;
    case MCA_BTL_ATOMIC_MAX:
        *value = less ? old : operand;
        return true;
    default:
        return false;
    }
}

/* The program's own atomics on this memory are of no order that we know: the strongest. */
static uint64_t memory_load(uint64_t address, bool narrow)
{
    return narrow ? __atomic_load_n((uint32_t *) (uintptr_t) address, __ATOMIC_SEQ_CST)
                  : __atomic_load_n((uint64_t *) (uintptr_t) address, __ATOMIC_SEQ_CST);
}

static bool memory_swap_if(uint64_t address, bool narrow, uint64_t *expected, uint64_t value)
{
    uint32_t narrow_expected = (uint32_t) *expected;
    bool swapped;

    if (!narrow)
        return __atomic_compare_exchange_n((uint64_t *) (uintptr_t) address, expected, value, false,
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    swapped =
        __atomic_compare_exchange_n((uint32_t *) (uintptr_t) address, &narrow_expected,
                                    (uint32_t) value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    *expected = narrow_expected;
    return swapped;
}

static int atomic_perform(const struct remote_message *request, uint64_t *old)
{
    uint64_t value;

    if (REMOTE_SWAP_IF == request->op) {
        *old = request->operands[0];
        (void) memory_swap_if(request->address, request->narrow, old, request->operands[1]);
        return OPAL_SUCCESS;
    }
    *old = memory_load(request->address, request->narrow);
    do {
        if (!atomic_value(request->atomic, *old, request->operands[0], request->narrow, &value))
            return OPAL_ERR_NOT_SUPPORTED;
    } while (!memory_swap_if(request->address, request->narrow, old, value));
    return OPAL_SUCCESS;
}

static bool request_is_well_formed(const struct remote_message *request, size_t data_bytes)
{
    switch (request->op) {
    case REMOTE_PUT:
        return request->piece.size == data_bytes;
    case REMOTE_GET:
        return 0 == data_bytes &&
               request->piece.size <= ring_length_max(RING_BYTES_MAX / RING_LINE_BYTES);
    case REMOTE_ATOMIC:
    case REMOTE_SWAP_IF:
        return 0 == data_bytes && 0 == request->address % atomic_bytes(request);
    default:
        return false;
    }
}

static uint32_t access_needed(uint8_t op)
{
    return REMOTE_PUT == op   ? MCA_BTL_REG_FLAG_REMOTE_WRITE
           : REMOTE_GET == op ? MCA_BTL_REG_FLAG_REMOTE_READ
                              : MCA_BTL_REG_FLAG_REMOTE_ATOMIC;
}

/* Several messages if the rings of who asked, which are of another job then, are larger than ours.
 */
static int found_send(shm_peer_t *peer, struct remote_message *answer, const unsigned char *found)
{
    uint64_t left = answer->piece.size;
    int status = OPAL_SUCCESS;

    while (left > 0 && OPAL_SUCCESS == status) {
        answer->piece.size = left < piece_max() ? left : piece_max();
        status = send_remote(peer, answer, sizeof(*answer), found, answer->piece.size);
        found += answer->piece.size;
        answer->piece.offset += answer->piece.size;
        left -= answer->piece.size;
    }
    return status;
}

static void request_answer(shm_peer_t *peer, const struct remote_message *request, const void *data)
{
    bool transfer = REMOTE_PUT == request->op || REMOTE_GET == request->op;
    uint64_t size = transfer ? request->piece.size : atomic_bytes(request);
    struct remote_message answer = {
        .op = REMOTE_ANSWER, .status = OPAL_SUCCESS, .id = request->id, .piece = request->piece};
    const void *found = NULL;
    int status;

    if (!registration_allows(&request->handle, request->address, size,
                             access_needed(request->op))) {
        SHM_SAY(
            "process %s asked for %llu bytes at an address that it was not given; it is told so",
            OPAL_NAME_PRINT(peer->name), (unsigned long long) size);
        answer.status = OPAL_ERR_BAD_PARAM;
    } else if (REMOTE_PUT == request->op) {
        memcpy((void *) (uintptr_t) request->address, data, size);
    } else if (REMOTE_GET == request->op) {
        found = (const void *) (uintptr_t) request->address;
    } else {
        answer.status = atomic_perform(request, &answer.operands[0]);
    }
    status = NULL != found ? found_send(peer, &answer, found)
                           : send_remote(peer, &answer, sizeof(answer), NULL, 0);
    if (OPAL_SUCCESS != status)
        peer_fail(peer, "no memory is left to answer it");
}

/* An answer brings the end of a put, bytes of a get, or the value of an atomic. False: it does not
 * fit what was asked. With remote.lock held. */
static bool value_answered(struct operation *operation, const struct remote_message *answer,
                           size_t data_bytes)
{
    if (0 != data_bytes)
        return false;
    if (OPAL_SUCCESS == answer->status && NULL != operation->local)
        memcpy(operation->local, &answer->operands[0], operation->size);
    operation->answered = operation->size;
    return true;
}

static bool piece_answered(struct operation *operation, const struct remote_message *answer,
                           const void *data, size_t data_bytes)
{
    uint64_t size = answer->piece.size, offset = answer->piece.offset;
    bool found = REMOTE_GET == operation->op && OPAL_SUCCESS == answer->status;

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
                         size_t data_bytes, struct operation **ended)
{
    struct operation *operation = operation_find(peer, answer->id);
    bool fits;

    if (NULL == operation)
        return false;
    if (REMOTE_PUT == operation->op || REMOTE_GET == operation->op)
        fits = piece_answered(operation, answer, data, data_bytes);
    else
        fits = value_answered(operation, answer, data_bytes);
    if (!fits)
        return false;
    if (0 == operation->status)
        operation->status = answer->status;
    if (0 == operation->status)
        operation->status = pieces_ask(peer, operation);
    if (operation->answered == operation->asked &&
        (operation->asked == operation->size || 0 != operation->status)) {
        opal_list_remove_item(&peer->remote_operations, &operation->super.super);
        *ended = operation;
    }
    return true;
}

static bool answer_take(shm_peer_t *peer, const struct remote_message *answer, const void *data,
                        size_t data_bytes)
{
    struct operation *ended = NULL;
    bool fits;

    OPAL_THREAD_LOCK(&remote.lock);
    fits = answer_count(peer, answer, data, data_bytes, &ended);
    OPAL_THREAD_UNLOCK(&remote.lock);
    if (NULL != ended)
        operation_report(peer, ended, ended->status);
    return fits;
}

bool remote_handle(shm_peer_t *peer, const void *message, size_t length)
{
    struct remote_message seen;
    const void *data;
    size_t data_bytes;

    if (length < sizeof(seen))
        return false;
    /* A copy: what was checked is what is used, whatever the peer writes meanwhile. */
    memcpy(&seen, message, sizeof(seen));
    data = (const unsigned char *) message + sizeof(seen);
    data_bytes = length - sizeof(seen);
    if (REMOTE_ANSWER == seen.op)
        return answer_take(peer, &seen, data, data_bytes);
    if (!peer->known || !request_is_well_formed(&seen, data_bytes))
        return false;
    request_answer(peer, &seen, data);
    return true;
}

void remote_fail(shm_peer_t *peer)
{
    struct operation *operation;

    do {
        OPAL_THREAD_LOCK(&remote.lock);
        operation = (struct operation *) opal_list_remove_first(&peer->remote_operations);
        OPAL_THREAD_UNLOCK(&remote.lock);
        if (NULL != operation)
            operation_report(peer, operation, OPAL_ERR_UNREACH);
    } while (NULL != operation);
}
