/* SPDX-License-Identifier: BSD-3-Clause */
/* The modex record: what a process publishes about its Multilane. Checked before the first byte
 * to it. */
#ifndef MULTILANE_RECORD_H
#define MULTILANE_RECORD_H

#include "common/compat/pml.h"
#include "common/lane/host.h"
#include "base/ends.h"

/* Up to byte_order readable in any byte order. */
struct record {
    char magic[8];        /* RECORD_MAGIC */
    uint8_t wire_version; /* WIRE_VERSION */
    uint8_t pointer_bytes;
    uint16_t record_bytes; /* sizeof(struct record) of the writer */
    uint32_t byte_order;   /* RECORD_BYTE_ORDER as the writer stores it */
    uint32_t features;     /* features that its peers must have: none but enum sums */
    uint32_t key_bytes;    /* the longest registration key that its lanes send */
    uint32_t pid;
    uint32_t window;        /* window for each peer, in units of flow.h */
    uint64_t pid_namespace; /* inode numbers, 0 where unknown */
    uint64_t user_namespace;
    char boot_id[HOST_BOOT_BYTES];
    struct record_ends ends; /* the last: as many lanes of it as there are are published */
};

#define RECORD_SUMS       3u /* enum sums: the same at both ends */
#define RECORD_MAGIC      "MLTLANE"
#define RECORD_BYTE_ORDER 0x01020304u

/* Publishes the record of this process. */
int record_publish(uint32_t window, const struct record_ends *ends);

/* Reads the record of `proc`, its window and its ends. False: prints why it cannot be used. */
bool record_accepts(ompi_proc_t *proc, uint32_t *window, struct record_ends *ends);

/* The process of `proc`, as the system numbers it here; 0: it is in another PID namespace, or not
 * known. */
uint32_t record_pid(ompi_proc_t *proc);

/* The check of a record alone. Null: good; else the reason, in `text`. */
const char *record_check(const void *data, size_t bytes, char *text, size_t text_size);

#endif
