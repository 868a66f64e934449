/* SPDX-License-Identifier: BSD-3-Clause */
/* What travels between two processes: the layout of every header, and nothing that interprets it.
 */
#ifndef MULTILANE_WIRE_H
#define MULTILANE_WIRE_H

#include <stdint.h>

/* The version and the byte order are settled once, by the modex record (record.h); no header
 * repeats them. All fields are in the byte order of the two hosts, which the record has shown to be
 * equal. */
#define WIRE_VERSION 7

/* One BTL tag carries everything: the range of tags that Open MPI gives to the PML starts here. */
#define WIRE_TAG 0x50

enum wire_type {
    WIRE_EAGER = 1, /* a whole message */
    WIRE_PART,      /* a part of an eager message, each part describes the message anew */
    WIRE_RTS,       /* a message is ready to be sent */
    WIRE_RTR,       /* the receiver is ready: send the rest this way */
    WIRE_DATA,      /* a piece of a message whose receiver is ready */
    WIRE_FIN,       /* a put of so many bytes is complete */
    WIRE_ACK,       /* the receiver has the message (or the part of it that it wanted) */
    WIRE_SEEN,      /* so many striped bytes have come on this lane */
    WIRE_NACK,      /* the receiver will never take the message: its communicator was revoked */
    WIRE_LANE,      /* this lane has that number at the sender */
    WIRE_FRAME,     /* an envelope: the message behind it is kept until the peer has it */
    WIRE_HEARD,     /* which frames have come */
    WIRE_ASK,       /* is this lane alive? Answered on it by WIRE_HEARD */
    WIRE_CANCEL, /* the sender cannot send the rest: its memory can no longer be read; of 0 bytes:
                  * what it was to send by the ring in device memory it does not */
    WIRE_GONE,   /* the sender has given the receiver up and takes nothing from it any more */
    WIRE_CREDIT, /* how much more may come before it is received */
    WIRE_TYPES
};

/* Extensions stand between the base and the body, in the order of these bits. */
enum wire_flag {
    WIRE_NAMED = 1,       /* struct wire_name: the sender is of another job */
    WIRE_CID = 2,         /* struct wire_cid: the communicator has no index common to all */
    WIRE_SYNCHRONOUS = 4, /* struct wire_handle: the sender waits for an ACK to this handle */
    WIRE_FLAGS = 7
};

enum wire_mark {
    WIRE_STRIPED = 1, /* its bytes count among the lane's striped ones (stripe.h) */
    WIRE_MOVED = 2    /* WIRE_FRAME: it goes by another lane than its message was written for */
};

struct wire_base {
    uint8_t type;
    uint8_t flags;
    uint16_t mark; /* enum wire_mark */
    uint32_t from; /* the sender's rank in its job */
};

struct wire_name {
    uint32_t jobid;
    uint32_t vpid;
};

struct wire_cid {
    uint64_t base;
    uint64_t sub;
};

/* A request at the other end, as an entry of that process's table of handles: never a pointer. */
struct wire_handle {
    uint32_t index;
    uint32_t generation;
};

/* Body of WIRE_EAGER, and the start of the bodies of WIRE_PART and WIRE_RTS. */
struct wire_match {
    uint32_t sequence; /* order of all messages between the two processes */
    uint32_t context;
    int32_t source; /* rank in the communicator */
    int32_t tag;
};

/* What a message without any extension begins with, as most do. */
struct wire_plain {
    struct wire_base base;
    struct wire_match match;
};

struct wire_part {
    struct wire_match match;
    uint64_t size; /* of the whole message */
    uint64_t offset;
};

struct wire_key {
    uint64_t address;
    uint32_t length; /* of the registration key that follows the body, for this lane */
    uint32_t more;   /* bytes of keys for other lanes that follow it: struct wire_lane_key each */
};

struct wire_lane_key {
    uint16_t lane;   /* its number at the sender, who has told it by WIRE_LANE */
    uint16_t length; /* of the key that follows */
};

struct wire_rts {
    struct wire_match match;
    uint64_t size;
    struct wire_handle sender;
    uint32_t method; /* enum wire_method that the sender proposes */
    uint32_t reserved;
    struct wire_key key; /* WIRE_BY_GET, _BOTH, _DEVICE: where the data lies at the sender; _RING:
                          * that end of the ring */
};

enum wire_method {
    WIRE_BY_SEND = 1,
    WIRE_BY_GET,
    WIRE_BY_PUT,
    WIRE_BY_BOTH,
    WIRE_BY_DEVICE, /* got over the two ends' lane of device memory, not the RTS's */
    WIRE_BY_RING,   /* by that lane's ring */
    WIRE_METHODS
};

struct wire_rtr {
    struct wire_handle sender;
    struct wire_handle receiver;
    uint64_t offset; /* of the first byte wanted */
    uint64_t size;   /* bytes wanted from there */
    uint32_t method; /* enum wire_method; not WIRE_BY_GET */
    uint32_t reserved;
    struct wire_key key; /* WIRE_BY_PUT, _BOTH: where byte `offset` goes at the receiver; _RING:
                          * that end of the ring */
};

struct wire_data {
    struct wire_handle receiver;
    uint64_t offset;
};

struct wire_fin { /* and of WIRE_CANCEL: so many bytes will not come */
    struct wire_handle receiver;
    uint64_t size;
};

struct wire_ack {
    struct wire_handle sender;
};

struct wire_seen {
    uint64_t bytes; /* since the lane exists */
};

struct wire_lane {
    uint32_t index;
};

/* Stands before a whole message of any other type, on lanes that may lose what they took. */
struct wire_frame {
    uint32_t number; /* of all frames to this peer */
    uint32_t heard;  /* all frames of the peer with a smaller number have come */
};

struct wire_heard {
    uint32_t heard;  /* as above */
    uint32_t ask;    /* which WIRE_ASK this answers, 0 for none */
    uint64_t beyond; /* bit i: the frame heard + 1 + i has come as well */
};

struct wire_ask {
    uint32_t number;
    uint32_t reserved;
};

struct wire_credit {
    uint32_t limit;   /* marks, see flow.h: of eager messages */
    uint32_t headers; /* and of RTS */
};

/* No frame is sent that is so far beyond the first one that was not acknowledged. */
#define WIRE_FRAME_WINDOW 8192u

/* No registration key of any BTL is longer, nor the keys of one message together; the record says
 * what each side's lanes need. */
#define WIRE_KEY_MAX 256

static inline uint64_t wire_keys_length(const struct wire_key *key)
{
    return (uint64_t) key->length + key->more;
}

/* The longest header of an eager message: base, all extensions, the longest eager body. */
#define WIRE_EAGER_HEADER_MAX                                                                      \
    (sizeof(struct wire_base) + sizeof(struct wire_name) + sizeof(struct wire_cid) +               \
     sizeof(struct wire_handle) + sizeof(struct wire_part))

#define WIRE_ENVELOPE_MAX                                                                          \
    (sizeof(struct wire_base) + sizeof(struct wire_name) + sizeof(struct wire_frame))

/* The longest control message. */
#define WIRE_CONTROL_MAX                                                                           \
    (sizeof(struct wire_base) + sizeof(struct wire_name) + sizeof(struct wire_cid) +               \
     sizeof(struct wire_handle) + sizeof(struct wire_rtr) + WIRE_KEY_MAX)

_Static_assert(sizeof(struct wire_base) == 8, "layout of the wire");
_Static_assert(sizeof(struct wire_match) == 16, "layout of the wire");
_Static_assert(sizeof(struct wire_part) == 32, "layout of the wire");
_Static_assert(sizeof(struct wire_key) == 16, "layout of the wire");
_Static_assert(sizeof(struct wire_rts) == 56, "layout of the wire");
_Static_assert(sizeof(struct wire_rtr) == 56, "layout of the wire");
_Static_assert(sizeof(struct wire_data) == 16, "layout of the wire");
_Static_assert(sizeof(struct wire_frame) == 8, "layout of the wire");
_Static_assert(sizeof(struct wire_heard) == 16, "layout of the wire");
/* An 8-byte message and its headers leave room for a lane's own flag in a 64-byte line. */
_Static_assert(sizeof(struct wire_base) + sizeof(struct wire_match) + 8 <= 56, "one line");

#endif
