/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a process shares with its peers: how it is laid out, made and opened. */
#ifndef MULTILANE_SHM_SEGMENT_H
#define MULTILANE_SHM_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/ring/ring.h"
#include "multilane/extension.h"

/* A segment belongs to the process that made it. From its start: header, doors, lanes. A peer that
 * wants to send opens the segment of its receiver, takes a free door there, and writes on the door
 * where its ring lies: in a lane of the sender's own segment. Then it rings the bell, and the owner
 * of the door maps that ring. So the first message is in memory before the receiver has looked, and
 * nobody writes where another process still decides. */

#define SEGMENT_LAYOUT          3u
#define SEGMENT_PAGE            4096u
#define SEGMENT_ALIGN           65536u /* where lanes begin: a system's pages may be that large */
#define SEGMENT_DOORBELLS       8u
#define SEGMENT_CONNECTIONS_MAX 65536u
#define SEGMENT_NONCE           16

/* Where a segment's memory comes from. */
enum segment_kind {
    SEGMENT_MEMFD, /* anonymous; peers open it through /proc/PID/fd */
    SEGMENT_FILE,  /* a file in /dev/shm, for peers that cannot */
    SEGMENT_KINDS
};

/* Random, so that nobody can guess it: it proves that what was opened is the segment meant, and it
 * is the name of the file. */
struct segment_nonce {
    unsigned char bytes[SEGMENT_NONCE];
};

enum segment_state { SEGMENT_OPEN = 1, SEGMENT_FINALIZED = 2 };

struct segment_header {
    uint32_t layout;
    uint32_t connection_count;
    struct segment_nonce nonce;
    /* enum segment_state: a process that ends after SEGMENT_FINALIZED did so as it should. */
    _Atomic uint32_t state;
    /* One bit a door (of equal remainder): something there wants to be looked at. A line of its
     * own, since its owner looks at it with every round of progress. */
    _Alignas(RING_LINE_BYTES) _Atomic uint64_t doorbells[SEGMENT_DOORBELLS];
};

_Static_assert(sizeof(struct segment_header) <= SEGMENT_PAGE, "the header is one page");

enum connection_state {
    CONNECTION_FREE,
    CONNECTION_CLAIMED, /* a visitor is writing on it */
    CONNECTION_OPEN,    /* the visitor's ring may be mapped */
    CONNECTION_CLOSED,  /* the visitor sends no more; what is in the ring is still to be read */
    CONNECTION_REFUSED  /* the owner cannot map the visitor's ring */
};

/* What a visitor says of its ring. Checked by the owner before it believes it. */
struct connection {
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t state;
    uint32_t jobid;
    uint32_t vpid;
    int32_t pid; /* of the visitor, in its own namespace */
    int32_t fd;  /* the segment's descriptor there; -1: it is a file */
    uint32_t lines;
    uint64_t channel;           /* where the lane starts in the visitor's segment */
    struct segment_nonce nonce; /* of the visitor's segment */
};

_Static_assert(sizeof(struct connection) == RING_LINE_BYTES, "doors do not share lines");

/* A lane: one page that both ends write, then the lines of the ring. */
#define CHANNEL_CONTROLS                                                                           \
    ((SEGMENT_PAGE - sizeof(struct ring_feedback) - RING_LINE_BYTES) /                             \
     sizeof(struct multilane_control))

struct channel {
    struct ring_feedback feedback;
    /* Not 0 once who reads the ring has it mapped: it stays readable then, whatever becomes of its
     * owner. Written by the reader, once; read by the owner before it ends. */
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t is_mapped;
    struct multilane_control controls[CHANNEL_CONTROLS];
    _Alignas(SEGMENT_PAGE) struct ring_line lines[];
};

static inline size_t channel_bytes(uint32_t lines)
{
    return sizeof(struct channel) + ring_bytes(lines);
}

/* A segment of this process. */
struct segment {
    enum segment_kind kind;
    int fd; /* -1: there is none */
    struct segment_nonce nonce;
    struct segment_header *header;
    struct connection *connections;
    uint32_t connection_count;
    uint32_t doorbell_words; /* of the header's doorbells, those that ring for these doors */
    size_t bytes;            /* address space set aside; memory is taken lane by lane */
    size_t used;             /* up to here lanes were given out */
    /* Given back. Kept here, where no peer can write. */
    struct channel **free_channels;
    uint32_t free_channel_count;
    uint32_t channel_lines;
    char path[64]; /* SEGMENT_FILE */
};

/* Makes a segment for `connection_count` visitors and up to `channel_count` lanes of
 * `channel_lines` lines. 0, or the errno of what failed; *failed then says in words what. */
int shm_segment_create(struct segment *segment, enum segment_kind kind,
                       const struct segment_nonce *nonce, uint32_t connection_count,
                       uint32_t channel_count, uint32_t channel_lines, const char **failed);
void shm_segment_destroy(struct segment *segment);

/* A cleared lane whose memory is reserved, its lines on NUMA node `node` if that is 0 or more.
 * NULL: out of memory, errno says how. */
struct channel *shm_segment_channel_get(struct segment *segment, int node);
void shm_segment_channel_put(struct segment *segment, struct channel *channel);

static inline uint64_t shm_segment_channel_offset(const struct segment *segment,
                                                  const struct channel *channel)
{
    return (uint64_t) ((const unsigned char *) channel - (const unsigned char *) segment->header);
}

/* Opens the segment that `nonce` names, of process `pid` by its descriptor `fd`, or, with fd -1, as
 * a file. A descriptor, or -1 and errno: ESTALE if it opened but is another one. */
int shm_segment_open(int32_t pid, int32_t fd, const struct segment_nonce *nonce);

/* Maps `bytes` at `offset`; NULL and errno. The descriptor must reach that far: no SIGBUS later. */
void *shm_segment_map(int descriptor, uint64_t offset, size_t bytes);
void shm_segment_unmap(void *memory, size_t bytes);

/* Maps header and doors of an opened segment, and says how many doors there are: what the header
 * says of it later may be anything. */
struct segment_header *shm_segment_map_header(int descriptor, size_t *bytes,
                                              uint32_t *connection_count);
static inline struct connection *shm_segment_connections(struct segment_header *header)
{
    return (struct connection *) ((unsigned char *) header + SEGMENT_PAGE);
}

/* Whether the process whose segment this is still lives. It holds a lock on its segment that the
 * kernel takes away when the process ends, in whatever namespace and by whatever death. */
bool shm_segment_owner_lives(int descriptor);

/* Whether a process of this PID namespace lives. The lock above is also lost when a program closes
 * descriptors that are not its own, so where the process can be asked for, it is. */
bool shm_segment_process_lives(int32_t pid);

/* Fills with random bytes; 0 or errno. */
int shm_segment_random(void *memory, size_t bytes);

void shm_segment_file_path(char path[64], const struct segment_nonce *nonce);

#endif
