/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of a rank: what multilane-top reads of a running process without stopping it.
 *
 * A rank has it in a memfd named PAGE_FILE_NAME, which a process of the same user finds among the
 * descriptors in /proc/PID/fd and reads with pread. One process writes it, and decides nothing by
 * what it says; readers take a snapshot, and believe nothing in it before page_check
 * (common/report/page_take.h) has looked. A page of another version has the first three words in
 * common with this one. Where events are kept the page is the beginning of a file (struct
 * page_file) instead, whose name begins alike, and which stays if the process does not come to the
 * end of MPI_Finalize. */
#ifndef MULTILANE_PAGE_H
#define MULTILANE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define PAGE_FILE_NAME "multilane-page"
/* A second memfd of the rank, empty or with a struct page_asked, which its user alone may write.
 * The rank reads it with pread, twice a second, and never writes it; multilane-top changes it under
 * a lock on the file (flock), so that two of them do not undo each other's bits. */
#define DRAIN_FILE_NAME "multilane-drain"
#define DRAIN_LANES     64u
#define PAGE_MAGIC      UINT64_C(0x0a656761704c4d89) /* 0x89 "MLpage" and a line feed */
#define PAGE_VERSION    2u

#define PAGE_WAITS         4   /* threads that wait */
#define PAGE_REQUESTS      8   /* requests of one wait */
#define PAGE_PEERS         128 /* peers with traffic */
#define PAGE_LANES         16
#define PAGE_TROUBLES      8
#define PAGE_MESSAGES      16
#define PAGE_WAITED        32 /* processes that were waited for */
#define PAGE_NAME          32
#define PAGE_WHY           96
#define PAGE_HOST          64
#define PAGE_ANY           (-1) /* a source, or a tag */
#define PAGE_ANY_RANK      UINT32_MAX
#define PAGE_STARTED       1u         /* flags of the page: MPI_Init is over */
#define PAGE_HAS_THREADS   2u         /* threads of the program may call MPI */
#define PAGE_WAIT_FINALIZE UINT64_MAX /* the number of the wait in MPI_Finalize */
#define PAGE_PEER_LOST     1u
#define PAGE_PEER_BLOCKED  2u /* its credit is used up: what is sent to it waits */

/* A process: as Open MPI names it, job and rank in the job's MPI_COMM_WORLD. */
struct page_process {
    uint32_t job;
    uint32_t rank; /* PAGE_ANY_RANK: any */
};

static inline bool page_process_is(const struct page_process *one, const struct page_process *other)
{
    return one->job == other->job && one->rank == other->rank;
}

/* A communicator: equal in all its processes but for `my_rank`. */
struct page_comm {
    uint64_t id[2];
    struct page_process first; /* the process that is rank 0 in it (of an intercommunicator: in the
                                * other group) */
    uint32_t size;
    int32_t my_rank;
    char name[PAGE_NAME];
};

enum page_call {
    PAGE_NO_CALL,
    PAGE_RECV,
    PAGE_SEND,
    PAGE_PROBE,
    PAGE_WAIT,
    PAGE_WAITALL,
    PAGE_WAITANY,
    PAGE_WAITSOME,
    PAGE_FINALIZE,
    PAGE_CALLS
};

enum page_request_kind {
    PAGE_RECEIVE,
    PAGE_SENDING,
    PAGE_PROBING,
    PAGE_OTHER, /* of Open MPI itself: a nonblocking collective, a file, a generalized request */
    PAGE_REQUEST_KINDS
};

/* How far a request is. */
enum page_stage {
    PAGE_UNKNOWN,
    PAGE_UNMATCHED, /* receive: no message has come for it */
    PAGE_MOVING,    /* bytes move, or are about to */
    PAGE_ANNOUNCED, /* send: the receiver was told, and has not asked for the bytes */
    PAGE_NO_CREDIT, /* send: the receiver keeps all that it promised to keep */
    PAGE_NO_ROOM,   /* send: no lane takes it now */
    PAGE_STAGES
};

struct page_request {
    uint8_t kind;       /* enum page_request_kind */
    uint8_t stage;      /* enum page_stage */
    uint8_t collective; /* enum page_collective, by its tag */
    uint8_t reserved;
    int32_t rank; /* in the communicator; PAGE_ANY */
    int32_t tag;
    uint32_t reserved2;
    struct page_process peer;
    struct page_comm comm;
    uint64_t bytes; /* a send's; a receive's room */
    uint64_t left;  /* of them, not moved yet, where it is known */
};

enum page_collective {
    PAGE_NO_COLLECTIVE,
    PAGE_ALLGATHER,
    PAGE_ALLGATHERV,
    PAGE_ALLREDUCE,
    PAGE_ALLTOALL,
    PAGE_ALLTOALLV,
    PAGE_ALLTOALLW,
    PAGE_BARRIER,
    PAGE_BCAST,
    PAGE_EXSCAN,
    PAGE_GATHER,
    PAGE_GATHERV,
    PAGE_REDUCE,
    PAGE_REDUCE_SCATTER,
    PAGE_REDUCE_SCATTER_BLOCK,
    PAGE_SCAN,
    PAGE_SCATTER,
    PAGE_SCATTERV,
    PAGE_NONBLOCKING,    /* a nonblocking one */
    PAGE_OTHER_INTERNAL, /* another message of Open MPI's own */
    PAGE_COLLECTIVES
};

/* A thread that waits. */
struct page_wait {
    uint32_t call;        /* enum page_call */
    uint32_t row_count;   /* of what follows */
    uint32_t outstanding; /* requests that are not complete; may exceed the rows */
    uint32_t reserved;
    uint64_t number; /* each wait of the process has its own */
    uint64_t since_ns;
    struct page_request rows[PAGE_REQUESTS];
};

struct page_peer {
    struct page_process name;
    uint32_t flags;
    uint32_t sent;           /* messages so far, modulo 2^32, also those that wait here */
    uint32_t received;       /* messages that came in order, modulo 2^32 */
    uint32_t early;          /* messages that came before an older one */
    uint32_t waiting;        /* messages that wait here for room at the peer or on a lane */
    uint32_t unacknowledged; /* lanes with messages that the peer may not have yet */
    uint32_t kept;           /* 64-byte units of its messages that no receive has taken */
    int32_t credit;          /* units that may be sent to it */
    uint64_t queued_bytes;   /* copies that no lane has taken yet */
    uint8_t lanes;
    uint8_t lanes_down;
    uint8_t reserved[6];
};

struct page_lane {
    char name[PAGE_NAME]; /* BTL and device */
    uint32_t peers;       /* that it reaches */
    uint32_t down;        /* for so many of them it is down, */
    uint32_t worse;       /* and has become worse, */
    uint32_t drained;     /* and carries nothing, as was asked, */
    uint32_t kept;        /* or does all the same: no other lane leads there */
    uint32_t busy;        /* and of the drained: something is still under way */
    uint32_t number;      /* of its bit in the word of DRAIN_FILE_NAME; DRAIN_LANES: none */
    uint32_t reserved;
    uint64_t bytes; /* sent */
};

enum page_trouble_kind {
    PAGE_SILENT,  /* it does not answer */
    PAGE_BROKEN,  /* its BTL said so */
    PAGE_WORSE,   /* it is used, */
    PAGE_RESERVE, /* and is not while there is another one */
    PAGE_DRAINED, /* it was asked to carry nothing */
    PAGE_TROUBLES_KNOWN
};

/* A lane that does not work, or not as it did. */
struct page_trouble {
    struct page_process peer;
    char lane[PAGE_NAME];
    uint32_t kind; /* enum page_trouble_kind */
    uint32_t reserved;
    char why[PAGE_WHY];
};

enum page_waited_kind {
    PAGE_FOR_SENDER,    /* its message had not come */
    PAGE_FOR_RECEIVER,  /* it had not asked for the message, or kept all that it promised to keep */
    PAGE_IN_COLLECTIVE, /* it was late to one, or had to wait itself */
    PAGE_FOR_BYTES,     /* they moved, or found no room on a lane; or a request of Open MPI's own */
    PAGE_WAITED_KINDS
};

/* For how long a process was waited for since the start. */
struct page_waited {
    struct page_process peer; /* PAGE_ANY_RANK: any source, and all that have no row */
    uint64_t ns[PAGE_WAITED_KINDS];
};

/* A posted receive, or a message without one. */
struct page_message {
    struct page_process peer; /* PAGE_ANY_RANK: any source */
    int32_t rank;             /* in the communicator */
    int32_t tag;
    uint32_t collective;
    uint32_t reserved;
    struct page_comm comm;
    uint64_t bytes;
};

struct page {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes; /* sizeof(struct page) */

    /* Odd while the owner writes what comes after `progressed_ns`. Written by the owner alone:
     * relaxed store of the odd value, release fence, the writes, release store of the even value.
     * Partner: page_take (common/report), which reads it before and after its copy. */
    uint64_t sequence;
    /* Stored alone, relaxed, by the thread that makes progress. */
    uint64_t rounds;        /* of progress */
    uint64_t progressed_ns; /* time of the last one */

    uint64_t started_ns; /* all times: CLOCK_MONOTONIC */
    uint64_t refreshes;
    struct page_process me;
    uint32_t job_size;
    uint32_t flags;
    int32_t pid; /* in the owner's namespace */
    uint32_t series;
    char host[PAGE_HOST];
    char program[PAGE_NAME];

    uint32_t wait_count;
    uint32_t peer_count;
    uint32_t lane_count;
    uint32_t trouble_count;
    uint32_t posted_count; /* of the rows */
    uint32_t unexpected_count;
    uint32_t posted_total;
    uint32_t unexpected_total;
    uint64_t unexpected_ever; /* messages that came before their receive */
    uint64_t sent_messages;
    uint64_t sent_bytes;
    uint64_t
        drained; /* the word of DRAIN_FILE_NAME as it was when this process last did what it says */

    struct page_wait waits[PAGE_WAITS];
    struct page_peer peers[PAGE_PEERS];
    struct page_lane lanes[PAGE_LANES];
    struct page_trouble troubles[PAGE_TROUBLES];
    uint32_t waited_count;
    uint32_t state; /* as in /proc/PID/stat, where another process copied the page; or 0 */
    struct page_waited waited[PAGE_WAITED];
    struct page_message posted[PAGE_MESSAGES];
    struct page_message unexpected[PAGE_MESSAGES];
};

/* --- what a rank is asked --- */

#define PAGE_FOLDER 256

struct page_asked {
    uint64_t
        drained;     /* bit i: empty the lane of that number (page_lane.number); see page.drained */
    uint32_t number; /* another one than before: bring the pages of the whole job together; */
    uint32_t reserved;
    char folder[PAGE_FOLDER]; /* in this folder of its user, as files of ranks; written before */
};

/* --- the file of a rank whose events are kept (pml_multilane_blackbox) --- */

#define PAGE_EVENTS 4096 /* the last ones */

enum page_event_kind {
    PAGE_NO_EVENT,
    PAGE_EVENT_SEND,    /* MPI_Send or MPI_Isend was called */
    PAGE_EVENT_RECEIVE, /* MPI_Recv or MPI_Irecv was called; bytes: its room */
    PAGE_EVENT_GOT,     /* MPI_Recv has returned, or a wait or test found a receive complete */
    PAGE_EVENT_SENT,    /* a wait or test found a send complete */
    PAGE_EVENT_MATCH,   /* a message that was announced has met its receive; rank: of the sender in
                         * its job */
    PAGE_EVENT_WAIT,    /* a wait lasts; tag: enum page_call */
    PAGE_EVENT_LANE, /* rank: of the peer in its job, tag: its lane or -1, first: enum page_change
                      */
    PAGE_EVENT_CALL, /* of a collective; rank: the root, tag: how many there were before on the
                      * communicator, bytes: those of each rank, or of the root */
    PAGE_EVENT_KINDS
};

/* What has become of a lane, or of a peer. */
enum page_change {
    PAGE_LANE_LOST,
    PAGE_LANE_RETURNED,
    PAGE_LANE_WORSE,
    PAGE_PEER_SUSPECTED,
    PAGE_PLAN_CHANGED,
    PAGE_CHANGES
};

struct page_event {
    uint64_t time_ns; /* at most a few events old */
    uint32_t number;  /* of events so far, counted from 1, modulo 2^32 */
    uint32_t comm;    /* distinguishes communicators */
    int32_t rank;     /* in the communicator; PAGE_ANY */
    int32_t tag;
    uint32_t bytes; /* UINT32_MAX: so many, or more */
    uint8_t kind;   /* enum page_event_kind */
    uint8_t collective;
    uint16_t
        first; /* of a call: rank 0 of the communicator in its job, modulo 2^16; else by kind */
};

/* The owner writes an event where its number has its place. A reader takes the file when the owner
 * has ended; the event that it was writing then may be half old. */
struct page_file {
    struct page page;
    struct page_event events[PAGE_EVENTS];
};

#endif
