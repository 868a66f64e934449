/* SPDX-License-Identifier: BSD-3-Clause */
/* The first contact with a peer: checks the record of a process and finds the lanes to it. */
#ifndef MULTILANE_CONTACT_H
#define MULTILANE_CONTACT_H

#include "peer/peer.h"
#include "common/lane/host.h"
#include "common/model/error.h"

/* The modex record: what a process publishes about its Multilane. Checked before the first byte
 * to it. */

/* Up to byte_order readable in any byte order. */
struct record {
    char magic[8];        /* MODEX_MAGIC */
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
#define MODEX_MAGIC       "MLTLANE"
#define RECORD_BYTE_ORDER 0x01020304u

/* Publishes the record of this process. */
int record_publish(uint32_t window, const struct record_ends *ends);

/* The process of `proc`, as the system numbers it here; 0: it is in another PID namespace, or not
 * known. */
uint32_t record_pid(ompi_proc_t *proc);

/* The check of a record alone. */
bool record_check(const void *data, size_t bytes, struct error_text *why);

/* Called when a peer is contacted first, before any message to it, so that upper layers set up
 * their part; with the component's lock held. `window`: what the peer promises (flow.h). Set once
 * at start. */
struct contact_events {
    void (*contacted)(struct peer *peer, uint32_t window);
};

extern __attribute__((visibility("hidden"))) struct contact_events contact_events;

/* The peer of that name, contacted now if it was not. Null: no such process, or no way to talk to
 * it, which is reported. `proc` may be null. */
struct peer *peer_contact(opal_process_name_t name, ompi_proc_t *proc);

/* The sender of a message, from its base and, with WIRE_NAMED, its name. */
struct peer *peer_of_sender(const struct wire_base *base, const struct wire_name *name);

#endif
