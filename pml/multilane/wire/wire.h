/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of every header on the wire. Nothing here interprets a header. */
#ifndef MULTILANE_WIRE_H
#define MULTILANE_WIRE_H

#include <stdint.h>

/* The modex record (contact.h) settles version and byte order once; no header repeats them.
 * Fields are in host byte order, which the record has found equal at both ends. */
#define WIRE_VERSION 21

/* One BTL tag for everything: the first of the tags that Open MPI gives to the PML. */
#define WIRE_TAG 0x50
/* Messages with a sum (struct wire_sum): that the receive callback checks, and that the lane has
 * had checked before it counted them as received (check_by in multilane/extension.h). One wrong bit
 * makes no tag another one. */
#define WIRE_TAG_SUMMED 0x57
#define WIRE_TAG_KEPT   0x5c
/* That the receive callback checks, with a sum of their own for the payload (struct wire_apart). */
#define WIRE_TAG_APART 0x5b

/* Before the base of such a message. */
struct wire_sum {
    uint32_t sum;    /* CRC32C of what follows this */
    uint32_t length; /* of that */
};

/* Before the base of a message with a large payload: its ends sum that as they copy it. */
struct wire_apart {
    uint32_t sum;     /* CRC32C of the rest of this, and of the headers */
    uint32_t headers; /* bytes of them */
    uint32_t payload_sum;
    uint32_t payload; /* bytes */
};

enum wire_type {
    WIRE_EAGER = 1,  /* a whole message */
    WIRE_PART,       /* a part of an eager message; each part carries the match body */
    WIRE_RTS,        /* request to send: a message waits at the sender */
    WIRE_RTR,        /* ready to receive: send the rest by this method */
    WIRE_DATA,       /* a piece of a message, after RTR */
    WIRE_FIN,        /* a put of so many bytes is complete */
    WIRE_ACK,        /* the receiver has the message (or the part of it that it wanted) */
    WIRE_RECEIVED,   /* so many striped bytes have come on this lane */
    WIRE_NACK,       /* the receiver refuses the message: its communicator was revoked */
    WIRE_LANE,       /* the index of this lane at the sender */
    WIRE_ALIVE,      /* this lane is alive */
    WIRE_ASK,        /* is it? Answered on it by WIRE_ALIVE */
    WIRE_CANCEL,     /* so many bytes will not come */
    WIRE_GONE,       /* the sender counts the receiver as lost and takes nothing from it any more */
    WIRE_CREDIT,     /* new limits of flow control (flow.h) */
    WIRE_FENCE,      /* between the two ends of a broken lane (struct wire_fence) */
    WIRE_TIME,       /* a timed message is complete at the receiver */
    WIRE_PAGE_ASK,   /* send your page (multilane/page.h), as a tool wants it of all */
    WIRE_PAGE,       /* a block of it */
    WIRE_WRONG,      /* this lane brought wrong bytes, and is left out */
    WIRE_FIN_SUMMED, /* WIRE_FIN, and the sum of the message */
    WIRE_SO_FAR,     /* so many bytes, from the first on, were put: before a WIRE_FIN_SUMMED */
    WIRE_END,        /* the sender's MPI ends in order; to processes of other jobs */
    WIRE_TYPES
};

/* Extensions stand between the base and the body, in the order of these bits. */
enum wire_flag {
    WIRE_NAMED = 1, /* struct wire_name: the sender is of another job */
    WIRE_CID = 2,   /* struct wire_cid: the index of the communicator differs between processes */
    WIRE_SYNCHRONOUS = 4, /* struct wire_handle: the sender waits for an ACK to this handle */
    WIRE_TIMED = 8, /* struct wire_handle: the sender times the message; WIRE_TIME answers it */
    WIRE_FLAGS = 15
};

enum wire_trait {
    WIRE_STRIPED = 1, /* counts among the striped bytes of the lane (stripe.h) */
    WIRE_OFFERED = 4, /* of WIRE_PART: struct wire_offer follows the body */
    WIRE_MOVED = 2    /* sent over another lane than it was written for */
};

struct wire_base {
    uint8_t type;
    uint8_t flags;
    uint16_t traits; /* enum wire_trait */
    uint32_t from;   /* the sender's rank in its job */
};

struct wire_name {
    uint32_t jobid;
    uint32_t vpid;
};

struct wire_cid {
    uint64_t base;
    uint64_t sub;
};

/* A request of the other process: an entry of its table of handles, never a pointer. */
struct wire_handle {
    uint32_t index;
    uint32_t generation;
};

/* The indices of timers; those of requests are smaller. A message has one of both at most. */
#define WIRE_TIMER_FIRST (UINT32_C(1) << 31)

/* Body of WIRE_EAGER, and the start of the bodies of WIRE_PART and WIRE_RTS. */
struct wire_match {
    uint32_t sequence; /* number among all messages from this sender to this receiver */
    uint32_t context;
    int32_t source; /* rank in the communicator */
    int32_t tag;
};

/* The header of an eager message without extensions. Most have it. */
struct wire_plain {
    struct wire_base base;
    struct wire_match match;
};

struct wire_part {
    struct wire_match match;
    uint64_t size; /* of the whole message */
    uint64_t offset;
};

/* The receiver may take what the sender does not send: base/offer_word.h. Behind a WIRE_PART, or
 * the key of a WIRE_RTS by WIRE_BY_SEND. */
struct wire_offer {
    uint64_t address; /* of the message's first byte at the sender */
    uint64_t line;    /* the handle of a control line (multilane/extension.h) */
    uint64_t tag;
};

struct wire_key {
    uint64_t address;
    uint32_t length; /* of the registration key that follows the body, for this lane */
    uint32_t more;   /* bytes of keys for other lanes that follow it: struct wire_lane_key each */
};

struct wire_lane_key {
    uint16_t lane;   /* its index at the sender, as sent by WIRE_LANE */
    uint16_t length; /* of the key that follows */
};

struct wire_rts {
    struct wire_match match;
    uint64_t size;
    struct wire_handle sender;
    uint16_t method;     /* enum wire_method, proposed by the sender; the receiver chooses */
    uint16_t memory;     /* enum wire_memory */
    uint32_t sum;        /* WIRE_SUMMED, but for a put: CRC32C of the message */
    struct wire_key key; /* WIRE_BY_GET, _BOTH, _DEVICE: where the data lies at the sender */
};

/* What the bytes of an announced message lie in. */
enum wire_memory {
    WIRE_ON_DEVICE = 1,    /* else in host memory */
    WIRE_IN_ONE_PIECE = 2, /* the sender can put them, from there */
    WIRE_SUMMED = 4        /* the sum of the message comes, and the sender waits for an ACK */
};

enum wire_method {
    WIRE_BY_SEND = 1,
    WIRE_BY_GET,
    WIRE_BY_PUT,
    WIRE_BY_BOTH,
    WIRE_BY_DEVICE, /* over the lane of device memory: by get, or, from host memory, by put */
    WIRE_METHODS
};

struct wire_rtr {
    struct wire_handle sender;
    struct wire_handle receiver;
    uint64_t size;   /* bytes wanted, from the first one on */
    uint32_t method; /* enum wire_method; not WIRE_BY_GET */
    uint32_t reserved;
    struct wire_key key; /* WIRE_BY_PUT, _BOTH, _DEVICE: where it goes at the receiver */
};

struct wire_data {
    struct wire_handle receiver;
    uint64_t offset;
};

struct wire_fin { /* also the body of WIRE_CANCEL and WIRE_SO_FAR */
    struct wire_handle receiver;
    uint64_t size;
};

struct wire_fin_summed {
    struct wire_fin fin;
    uint32_t sum; /* CRC32C of the message, of which that may be a part */
    uint32_t reserved;
};

struct wire_ack {
    struct wire_handle sender;
};

struct wire_time {
    struct wire_handle timer;
    uint64_t ended_ns;      /* by the receiver's monotonic clock */
    uint32_t may_have_lain; /* before the receiver looked for it */
    uint32_t reserved;
};

struct wire_received {
    uint64_t bytes; /* all striped bytes since the lane exists */
};

struct wire_lane {
    uint32_t index;
};

struct wire_ask { /* also the body of WIRE_ALIVE: which question it answers */
    uint32_t number;
    uint32_t reserved;
};

/* See fence_ask in multilane/extension.h. */
struct wire_fence {
    uint32_t length;
    uint32_t reserved;
    unsigned char bytes[64];
};

struct wire_credit {
    uint32_t limit;   /* marks, see flow.h: for eager messages */
    uint32_t headers; /* and for RTS */
};

struct wire_page_ask {
    uint32_t number; /* of the question, at the sender */
    uint32_t reserved;
};

#define WIRE_PAGE_BYTES 256

struct wire_page {
    uint32_t number; /* of the question that it answers */
    uint32_t rank;   /* whose page it is: the sender's, or that of another process of its node */
    uint16_t block;  /* of the page; those that are all zero are not sent */
    uint16_t blocks; /* that are sent */
    unsigned char bytes[WIRE_PAGE_BYTES];
};

/* The longest registration key, and all keys of one message together. The modex record tells
 * what the lanes of a process need. */
#define WIRE_KEY_MAX 256

static inline uint64_t wire_keys_length(const struct wire_key *key)
{
    return (uint64_t) key->length + key->more;
}

/* The longest header of an eager message: base, all extensions, the longest eager body. */
#define WIRE_EAGER_HEADER_MAX                                                                      \
    (sizeof(struct wire_base) + sizeof(struct wire_name) + sizeof(struct wire_cid) +               \
     sizeof(struct wire_handle) + sizeof(struct wire_part))

#define WIRE_PART_HEADER_MAX (WIRE_EAGER_HEADER_MAX + sizeof(struct wire_offer))

/* The longest control message. */
#define WIRE_CONTROL_MAX                                                                           \
    (sizeof(struct wire_base) + sizeof(struct wire_name) + sizeof(struct wire_cid) +               \
     sizeof(struct wire_handle) + sizeof(struct wire_rts) + WIRE_KEY_MAX)

_Static_assert(sizeof(struct wire_base) == 8, "layout of the wire");
_Static_assert(sizeof(struct wire_apart) == 16, "layout of the wire");
_Static_assert(sizeof(struct wire_page) == 268, "layout of the wire");
_Static_assert(sizeof(struct wire_page) <= sizeof(struct wire_rtr) + WIRE_KEY_MAX, "its room");
_Static_assert(sizeof(struct wire_match) == 16, "layout of the wire");
_Static_assert(sizeof(struct wire_part) == 32, "layout of the wire");
_Static_assert(sizeof(struct wire_key) == 16, "layout of the wire");
_Static_assert(sizeof(struct wire_rts) == 56, "layout of the wire");
_Static_assert(sizeof(struct wire_rtr) == 48, "layout of the wire");
_Static_assert(sizeof(struct wire_rtr) <= sizeof(struct wire_rts), "its room");
_Static_assert(sizeof(struct wire_data) == 16, "layout of the wire");
_Static_assert(sizeof(struct wire_ask) == 8, "layout of the wire");
/* An 8-byte message and its headers leave room for a lane's own flag in a 64-byte line. */
_Static_assert(sizeof(struct wire_base) + sizeof(struct wire_match) + 8 <= 56, "one line");

#endif
