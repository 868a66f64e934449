/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a process shares with its peers: its layout, how it is made and how it is opened.
 */
#ifndef MULTILANE_SHM_SEGMENT_H
#define MULTILANE_SHM_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "common/ring/bell.h"
#include "common/ring/move.h"
#include "common/ring/ring.h"
#include "multilane/extension.h"

/* A segment belongs to the process that makes it, its owner. It holds a header, a table of
 * connections, and channels. Only the header's memory is there from the beginning.
 *
 * A peer that wants to send opens the segment of its receiver, reserves memory for a free entry of
 * the table of connections and claims it. The entry holds a small ring, in which the sender writes
 * at once; then it rings a doorbell. So the first message is in memory before the receiver looks,
 * and a peer that sends little needs no memory beside its entry.
 *
 * A sender whose messages are large or many goes on in a larger ring (common/ring/move.h): a
 * channel of its own segment, which the receiver maps when it comes to it. No process writes memory
 * that another process still allocates from.
 *
 * To open one segment after the other costs more than the first messages do. So the first process
 * of a job on a node makes memory with a part for each of them: such a part is a segment without
 * channels, whose entries all have memory. It is mapped once, as a whole, and its senders need no
 * system call. Channels are not there: all their owners would wait for one lock of the kernel to
 * reserve memory. Other jobs, and processes without a part, use the segments above. Behind its
 * connections a part has address space for other things that the job's processes share (struct
 * multilane_commons), with memory where it is used. */

#define SEGMENT_LAYOUT          8u
#define SEGMENT_PAGE            4096u
#define SEGMENT_ALIGN           65536u /* of channels: a system's pages may be that large */
#define SEGMENT_DOORBELLS       7u
#define SEGMENT_CONNECTIONS_MAX 65536u
#define SEGMENT_NONCE           16
#define SEGMENT_COMMONS_BYTES   ((size_t) 8 << 20) /* of a part */

/* Where a segment's memory comes from. */
enum segment_kind {
    SEGMENT_MEMFD, /* anonymous; peers open it through /proc/PID/fd */
    SEGMENT_FILE,  /* a file in /dev/shm, for peers that cannot */
    SEGMENT_JOB,   /* a part of anonymous memory that the job's processes on this node share */
    SEGMENT_KINDS
};

/* Random, so that it cannot be guessed. It proves that an opened segment is the right one, and it
 * is the name of the file. */
struct segment_nonce {
    unsigned char bytes[SEGMENT_NONCE];
};

enum segment_state { SEGMENT_OPEN = 1, SEGMENT_FINALIZED = 2 };

struct segment_header {
    uint32_t layout;
    uint32_t connection_count;
    uint32_t is_locked; /* its owner could lock it (shm_segment_owner_lives) */
    struct segment_nonce nonce;
    /* enum segment_state: a process that ends after SEGMENT_FINALIZED ended in order. */
    _Atomic uint32_t state;
    /* Behind the last connection that was ever claimed. Raised by senders before they ring; read by
     * the owner after a bell, and no further than connection_count. */
    _Atomic uint32_t connection_end;
    /* What the owner's PML publishes for its peers. The length is written last, release, and read
     * first, acquire; 0: nothing yet. */
    _Atomic uint32_t published_bytes;
    unsigned char published[MULTILANE_PUBLISHED_BYTES];
    /* One bit for each connection, or for several (index modulo all bits): a connection there has
     * changed or has a message. The two are on a line of their own, because the owner reads it in
     * every round of progress. Set by peers, cleared by the owner. */
    _Alignas(RING_LINE_BYTES) _Atomic uint64_t doorbells[SEGMENT_DOORBELLS];
    /* Not 0: the owner sleeps on this word, or is about to. Set by the owner, cleared by the
     * peer that rings and then wakes it (common/ring/bell.h). */
    _Atomic uint32_t asleep;
};

_Static_assert(offsetof(struct segment_header, asleep) / RING_LINE_BYTES ==
                   offsetof(struct segment_header, doorbells) / RING_LINE_BYTES,
               "a peer that rings has the line of both");

_Static_assert(sizeof(struct segment_header) <= SEGMENT_PAGE, "the header is one page");

enum connection_state {
    CONNECTION_FREE,
    CONNECTION_CLAIMED, /* a sender is writing it */
    CONNECTION_OPEN,    /* the owner may read the sender's ring */
    CONNECTION_CLOSED,  /* the sender sends no more; its rings may still hold messages */
    CONNECTION_REFUSED  /* the owner cannot map the sender's ring */
};

#define CONNECTION_BYTES    1280u
#define CONNECTION_LINES    16u /* of the small ring */
#define CONNECTION_CONTROLS 1u

/* An entry of the table. What a sender writes here the owner checks before use. */
struct connection {
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t state;
    uint32_t jobid;
    uint32_t vpid;
    int32_t pid; /* of the sender, in its own namespace */
    /* Ring 0 is the small one below; the `place` of a larger one is the offset of a channel in the
     * sender's segment, and without lines it is the small one again. */
    struct ring_move move;
    struct segment_nonce nonce; /* of the sender's segment */
    int32_t fd;                 /* of the sender's segment in that process; -1: it is a file */
    struct ring_feedback feedback;
    struct multilane_control controls[CONNECTION_CONTROLS];
    struct ring_line lines[CONNECTION_LINES];
};

_Static_assert(sizeof(struct connection) == CONNECTION_BYTES,
               "what a peer costs that sends little");
_Static_assert(CONNECTION_LINES >= RING_LINES_MIN, "a ring");

/* Its small ring is as it was made: for whom neither end reads or writes it. */
static inline void shm_connection_clear(struct connection *connection)
{
    memset((void *) connection->lines, 0, sizeof(connection->lines));
    memset((void *) &connection->feedback, 0, sizeof(connection->feedback));
}

/* A channel: one page that both ends write and the sender waits on, then the lines of the ring. */
#define CHANNEL_CONTROLS                                                                           \
    ((SEGMENT_PAGE - sizeof(struct ring_feedback)) / sizeof(struct multilane_control))

struct channel {
    struct ring_feedback feedback;
    struct multilane_control controls[CHANNEL_CONTROLS];
    _Alignas(SEGMENT_PAGE) struct ring_line lines[];
};

static inline size_t channel_bytes(uint32_t lines)
{
    return sizeof(struct channel) + ring_bytes(lines);
}

enum segment_unit {
    UNIT_NEW,  /* no channel had it */
    UNIT_USED, /* it belongs to a channel */
    UNIT_FREED /* a peer that had its channel may write there still */
};

/* What was opened at the first contact, to find the very same again. */
struct segment_identity {
    uint64_t device;
    uint64_t inode;
};

/* A segment of this process. */
struct segment {
    enum segment_kind kind;
    int fd; /* -1: there is none */
    bool is_locked;
    struct segment_nonce nonce;
    struct segment_header *header;
    struct connection *connections;
    uint32_t connection_count;
    uint32_t doorbell_words; /* the words of `doorbells` that these connections use */
    size_t bytes;            /* address space; memory is reserved channel by channel */
    /* SEGMENT_JOB: the memory of all parts, how many, and which is ours. */
    unsigned char *parts;
    uint32_t part_count;
    uint32_t part;
    struct segment_identity identity; /* of the memory behind `fd` */
    /* The units of SEGMENT_ALIGN bytes behind the connections (enum segment_unit). Kept here, where
     * no peer can write. */
    unsigned char *units;
    uint32_t unit_count;
    char path[64]; /* SEGMENT_FILE */
};

/* Makes a segment for `connection_count` senders, with address space for `channel_bytes` of
 * channels. What its owner polls lies on NUMA node `node`, if that is 0 or more. 0, or the errno of
 * what failed; *failed then says in words what failed. */
int shm_segment_create(struct segment *segment, enum segment_kind kind,
                       const struct segment_nonce *nonce, uint32_t connection_count,
                       size_t channel_bytes, int node, const char **failed);
/* Makes the memory of a job's `part_count` processes on this node, and takes part 0 of it; peers
 * see it after shm_segment_open_up. */
int shm_segment_create_parts(struct segment *segment, const struct segment_nonce *nonce,
                             uint32_t part_count, int node, const char **failed);
/* Takes a part of that memory, which process `pid` has as descriptor `fd`; `first` is the nonce of
 * part 0. */
int shm_segment_join_parts(struct segment *segment, int32_t pid, int32_t fd,
                           const struct segment_nonce *first, const struct segment_nonce *nonce,
                           uint32_t part_count, uint32_t part, int node, const char **failed);
/* From here on peers may use it. */
void shm_segment_open_up(struct segment *segment);
struct segment_header *shm_segment_part_header(const struct segment *segment, uint32_t part);
/* The part with that nonce; NULL: its owner has not taken it. */
struct segment_header *shm_segment_part(const struct segment *segment, uint32_t part,
                                        const struct segment_nonce *nonce);
/* Fills all but the functions; false: the segment has no parts. */
bool shm_segment_commons(const struct segment *segment, struct multilane_commons *out);
/* In this process's own part, from its first byte of commons on. 0 or errno. */
int shm_segment_commons_reserve(const struct segment *segment, size_t offset, size_t bytes);
/* As shm_segment_owner_lives. *known is false if the program has closed our descriptor. */
bool shm_segment_part_owner_lives(const struct segment *segment, uint32_t part, bool *known);
void shm_segment_destroy(struct segment *segment);

/* A cleared channel whose memory is reserved, its lines on NUMA node `node` and what its sender
 * polls on `own_node`, where these are 0 or more. NULL: out of memory, errno says how. */
struct channel *shm_segment_channel_get(struct segment *segment, uint32_t lines, int node,
                                        int own_node);
/* Its memory goes back to the system. */
void shm_segment_channel_put(struct segment *segment, struct channel *channel, uint32_t lines);

static inline uint64_t shm_segment_channel_offset(const struct segment *segment,
                                                  const struct channel *channel)
{
    return (uint64_t) ((const unsigned char *) channel - (const unsigned char *) segment->header);
}

/* Opens the segment with that nonce: of process `pid` by its descriptor `fd`, or, with fd -1, as a
 * file. Returns a descriptor, or -1 and errno: ESTALE if another segment was found there, EPERM if
 * it is memory that its owner could shrink. */
int shm_segment_open(int32_t pid, int32_t fd, const struct segment_nonce *nonce);

/* Whether it tells only of a shortage here, which may pass. */
bool shm_segment_error_passes(int error);

/* What such an errno means, in words. */
const char *shm_segment_open_error(int error);

/* Maps `bytes` at `offset`; NULL and errno. The descriptor must reach that far: no SIGBUS later. */
void *shm_segment_map(int descriptor, uint64_t offset, size_t bytes);

/* Reserves the memory of `count` connections from `index` on; 0 or errno. */
int shm_segment_reserve(int descriptor, uint32_t index, uint32_t count);

/* Maps the header and the connections of an opened segment, and returns the number of connections:
 * the header may change later, and is not read again. */
struct segment_header *shm_segment_map_header(int descriptor, size_t *bytes,
                                              uint32_t *connection_count);
static inline struct connection *shm_segment_connections(struct segment_header *header)
{
    return (struct connection *) ((unsigned char *) header + SEGMENT_PAGE);
}

void shm_segment_identify(int descriptor, struct segment_identity *identity);

/* Whether the owner of this segment lives. It holds a lock on its segment, which the kernel
 * releases when the process ends, in any namespace and however it ends; but for one that is not
 * `is_locked`, where a filter refuses locks. */
bool shm_segment_owner_lives(int descriptor);

/* The same of anonymous memory, of which no descriptor is kept: opens it again. */
bool shm_segment_owner_found(int32_t pid, int32_t fd, const struct segment_identity *identity);

/* When a process of this PID namespace began, in the kernel's ticks; 0: /proc does not say. */
uint64_t shm_segment_process_started(int32_t pid);

/* Whether a process of this PID namespace lives, the one that began at `started` if that is not 0.
 * A process also loses the lock above when it closes descriptors that are not its own, so this is
 * asked as well where possible. */
bool shm_segment_process_lives(int32_t pid, uint64_t started);

void shm_segment_file_path(char path[64], const struct segment_nonce *nonce);

#endif
