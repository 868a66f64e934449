/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers the puts, gets and atomics that peers ask for by message. */
#include "btl/shm/remote.h"

#include <string.h>

/* The program's own atomics on this memory may have any order: the strongest covers all. */
static uint64_t memory_load(uint64_t address, bool narrow)
{
    if (!narrow)
        return atomic_load_explicit((_Atomic uint64_t *) (uintptr_t) address, memory_order_seq_cst);
    return atomic_load_explicit((_Atomic uint32_t *) (uintptr_t) address, memory_order_seq_cst);
}

static bool memory_swap_if(uint64_t address, bool narrow, uint64_t *expected, uint64_t value)
{
    uint32_t narrow_expected = (uint32_t) *expected;

    if (!narrow)
        return atomic_compare_exchange_strong_explicit((_Atomic uint64_t *) (uintptr_t) address,
                                                       expected, value, memory_order_seq_cst,
                                                       memory_order_seq_cst);
    bool swapped = atomic_compare_exchange_strong_explicit(
        (_Atomic uint32_t *) (uintptr_t) address, &narrow_expected, (uint32_t) value,
        memory_order_seq_cst, memory_order_seq_cst);
    *expected = narrow_expected;
    return swapped;
}

static int atomic_perform(const struct remote_message *request, uint64_t *old)
{
    uint64_t operand = request->narrow ? (uint32_t) request->operands[0] : request->operands[0];
    uint64_t value;

    if (request->op == REMOTE_SWAP_IF) {
        *old = request->operands[0];
        (void) memory_swap_if(request->address, request->narrow, old, request->operands[1]);
        return OPAL_SUCCESS;
    }
    *old = memory_load(request->address, request->narrow);
    do {
        if (!remote_atomic_value(request->atomic, *old, operand, &value))
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
        return data_bytes == 0 &&
               request->piece.size <= ring_length_max(RING_BYTES_MAX / RING_LINE_BYTES);
    case REMOTE_ATOMIC:
    case REMOTE_SWAP_IF:
        return data_bytes == 0 && request->address % remote_atomic_bytes(request) == 0;
    default:
        return false;
    }
}

static uint32_t access_needed(uint8_t op)
{
    return op == REMOTE_PUT   ? MCA_BTL_REG_FLAG_REMOTE_WRITE
           : op == REMOTE_GET ? MCA_BTL_REG_FLAG_REMOTE_READ
                              : MCA_BTL_REG_FLAG_REMOTE_ATOMIC;
}

/* Several messages if the asking process, of another job then, has larger rings than this one. */
static int found_send(shm_peer_t *peer, struct remote_message *answer, const unsigned char *found)
{
    uint64_t left = answer->piece.size;
    int status = OPAL_SUCCESS;

    while (left > 0 && status == OPAL_SUCCESS) {
        answer->piece.size = left < remote_piece_max() ? left : remote_piece_max();
        status = shm_send_remote(peer, answer, sizeof(*answer), found, answer->piece.size);
        found += answer->piece.size;
        answer->piece.offset += answer->piece.size;
        left -= answer->piece.size;
    }
    return status;
}

static void request_answer(shm_peer_t *peer, const struct remote_message *request, const void *data)
{
    bool transfer = request->op == REMOTE_PUT || request->op == REMOTE_GET;
    uint64_t size = transfer ? request->piece.size : remote_atomic_bytes(request);
    struct remote_message answer = {
        .op = REMOTE_ANSWER, .status = OPAL_SUCCESS, .id = request->id, .piece = request->piece};
    const void *found = NULL;

    if (!registered_allows(&request->handle, request->address, size, access_needed(request->op))) {
        SHM_SAY("process %s asked for %llu bytes at an address outside the memory registered for "
                "it; the request fails",
                OPAL_NAME_PRINT(peer->name), (unsigned long long) size);
        answer.status = OPAL_ERR_BAD_PARAM;
    } else if (request->op == REMOTE_PUT) {
        memcpy((void *) (uintptr_t) request->address, data, size);
    } else if (request->op == REMOTE_GET) {
        found = (const void *) (uintptr_t) request->address;
    } else {
        answer.status = atomic_perform(request, &answer.operands[0]);
    }
    int status = found ? found_send(peer, &answer, found)
                       : shm_send_remote(peer, &answer, sizeof(answer), NULL, 0);
    if (status != OPAL_SUCCESS)
        shm_peer_fail(peer, "there is no memory to answer that process");
}

bool shm_serve(shm_peer_t *peer, const void *message, size_t length)
{
    struct remote_message seen;

    if (length < sizeof(seen))
        return false;
    /* A copy: the peer may write while we check. */
    memcpy(&seen, message, sizeof(seen));
    const void *data = (const unsigned char *) message + sizeof(seen);
    size_t data_bytes = length - sizeof(seen);
    if (seen.op == REMOTE_ANSWER)
        return shm_remote_answered(peer, &seen, data, data_bytes);
    if (!peer->known || !request_is_well_formed(&seen, data_bytes))
        return false;
    request_answer(peer, &seen, data);
    return true;
}
