/* SPDX-License-Identifier: BSD-3-Clause */
/* The recording of a rank (pml_multilane_record): every message that it sends and receives, in
 * order and with times, for multilane-plan --replay. A file is a head and events up to its end;
 * where the last one is no RECORD_END it was cut short. Readers believe nothing in it before
 * recording_load (tools/replay/recording.h) has looked. */
#ifndef MULTILANE_RECORD_H
#define MULTILANE_RECORD_H

#include <stdint.h>

#define RECORD_FILE_NAME  "multilane-record"           /* .JOB.RANK */
#define RECORD_MAGIC      UINT64_C(0x0a6365724c4d8a89) /* ends as that of the page does */
#define RECORD_VERSION    1u
#define RECORD_BYTES_MOST (UINT64_C(256) << 20)
#define RECORD_HOST       64
#define RECORD_ANY        UINT32_MAX /* any source, or a process of another job */
#define RECORD_ANY_TAG    (-1)

struct record_head {
    uint64_t magic;
    uint32_t version;
    uint32_t event_bytes; /* sizeof(struct record_event) */
    uint32_t job;
    uint32_t rank;
    uint32_t job_size;
    uint32_t reserved;
    uint64_t began_ns; /* CLOCK_REALTIME: nodes have no other clock in common */
    char host[RECORD_HOST];
};

enum record_kind {
    RECORD_END = 1, /* in MPI_Finalize */
    RECORD_SEND,    /* a call begins a message */
    RECORD_RECEIVE, /* or a receive, */
    RECORD_DONE,    /* or returns and says that one is complete */
    RECORD_KINDS
};

struct record_event {
    uint64_t time_ns;     /* since began_ns */
    uint64_t computed_ns; /* since the event before, outside of the calls that are recorded */
    uint64_t bytes;       /* a receive's room; when it is done, what came */
    uint32_t peer;        /* its rank in MPI_COMM_WORLD, or RECORD_ANY */
    uint32_t comm;        /* distinguishes communicators */
    int32_t tag;
    uint32_t number; /* RECORD_DONE: of the event that began it, counted from 0 */
    uint32_t kind;   /* enum record_kind */
    uint32_t reserved;
};

#endif
