/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages by which a put, get or atomic is asked for and answered. */
#ifndef MULTILANE_SHM_REMOTE_H
#define MULTILANE_SHM_REMOTE_H

#include "btl/shm/shm.h"

enum remote_op {
    REMOTE_PUT = 1, /* data follows, for `address` */
    REMOTE_GET,     /* answer with `size` bytes from `address` */
    REMOTE_ATOMIC,
    REMOTE_SWAP_IF, /* compare and swap */
    REMOTE_ANSWER   /* to one of these */
};

/* Without data it is a message of one line. */
struct remote_message {
    uint8_t op;
    uint8_t narrow; /* an atomic on 32 bits */
    uint16_t atomic;
    int32_t status; /* of an answer */
    uint64_t id;    /* of the operation, in the process that asks */
    uint64_t address;
    mca_btl_base_registration_handle_t handle;
    union {
        struct {
            uint64_t size;
            uint64_t offset;  /* in the operation */
        } piece;              /* of a put or a get */
        uint64_t operands[2]; /* of an atomic; in an answer the first is the old value */
    };
};
_Static_assert(sizeof(struct remote_message) <= RING_LINE_PAYLOAD, "more than a line");

static inline uint64_t remote_atomic_bytes(const struct remote_message *message)
{
    return message->narrow ? 4 : 8;
}

/* The value that `op` of Open MPI makes of `old`. False: it is not done here. */
static inline bool remote_atomic_value(uint16_t op, uint64_t old, uint64_t operand, uint64_t *value)
{
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
    case MCA_BTL_ATOMIC_LAND:
        *value = old != 0 && operand != 0;
        return true;
    case MCA_BTL_ATOMIC_LOR:
        *value = old != 0 || operand != 0;
        return true;
    case MCA_BTL_ATOMIC_LXOR:
        *value = (old != 0) != (operand != 0);
        return true;
    case MCA_BTL_ATOMIC_SWAP:
        *value = operand;
        return true;
    default:
        /* Neither MIN nor MAX: Open MPI does not say whether the values have a sign. */
        return false;
    }
}

/* The largest piece that goes in one message of our rings. */
static inline uint64_t remote_piece_max(void)
{
    return shm_module.btl_max_send_size - sizeof(struct remote_message);
}

/* remote.c: an answer has come; `data` follows it. False: it fits nothing that was asked. */
bool shm_remote_answered(shm_peer_t *peer, const struct remote_message *answer, const void *data,
                         size_t data_bytes);

#endif
