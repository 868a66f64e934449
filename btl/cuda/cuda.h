/* SPDX-License-Identifier: BSD-3-Clause */
/* The lane over the memory of CUDA devices: one process of a node reads and writes the device
 * memory of another. It carries no messages; the PML sends those by other lanes. */
#ifndef BTL_CUDA_CUDA_H
#define BTL_CUDA_CUDA_H

#include "opal_config.h"

#include <stdatomic.h>
#include <stdint.h>

#include "common/compat/fragment.h"
#include "common/compat/peer_list.h"
#include "common/lane/attr.h"
#include "common/memory/copier.h"
#include "multilane/extension.h"
#include "opal/class/opal_list.h"
#include "opal/constants.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"

#define CUDA_RECORD_VERSION 3u

/* What a process publishes for its peers (modex). */
struct cuda_record {
    uint32_t version;
    uint32_t key_bytes;
    uint64_t pid_namespace; /* 0: unknown */
};

/* How the driver shares memory between processes. */
enum share_kind {
    SHARE_IPC = 1, /* memory of cudaMalloc */
    SHARE_FABRIC, /* mapped memory that its program allowed to be shared, where there is a fabric */
    SHARE_FD,     /* the same by a file descriptor */
    SHARE_LIST    /* several chunks of mapped memory, one behind the other */
};

/* What the other end needs to reach an allocation: it travels as the registration's key. */
struct mca_btl_base_registration_handle_t {
    union {
        struct driver_ipc_handle ipc;
        struct driver_fabric_handle fabric;
        struct {
            int32_t pid, fd; /* open in that process as long as a message has the key */
        } file;
        struct {
            int32_t pid;
            uint32_t count;
            uint64_t address; /* of the chunks' keys, in that process's memory, for as long */
        } list;
    } handle;
    uint32_t kind; /* enum share_kind */
    uint32_t reserved;
    struct driver_uuid device;
    uint64_t buffer_id; /* in its process and of its kind: another allocation at the same address
                         * has another one */
    uint64_t start;     /* of the allocation, there; of a list: of the message */
    uint64_t size;
};

typedef struct mca_btl_base_registration_handle_t cuda_key_t;

/* A process at the other end, or this one. */
struct mca_btl_base_endpoint_t {
    struct peer_entry entry;
    opal_process_name_t name;
    bool is_self;
    bool knows_pids; /* process numbers mean the same to both */
    bool complained; /* that its memory cannot be opened */
};

typedef struct mca_btl_base_endpoint_t cuda_peer_t;

/* Memory of another process that is open here, or that could not be opened: that is kept too, so
 * that it is tried once and not for each message. */
struct cuda_mapping {
    opal_list_item_t super;
    const cuda_peer_t *peer;
    enum share_kind kind;
    uint64_t buffer_id, start, size; /* there */
    driver_ptr here;                 /* where its start is in this process */
    struct copier *copier;           /* of the context that it was opened in, or was to be; NULL:
                                      * refused for memory of the host's */
    uint32_t users;                  /* copies under way */
    bool is_refused;                 /* it could not be opened */
    bool is_stale;                   /* the peer has other memory at this address: no new users */
};

/* The state of the component. */
struct cuda_state {
    /* parameters */
    int handles_max;
    const char *off;             /* why there is no lane here, for ompi_info */
    struct attr_parameters lane; /* attributes by parameters */

    uint64_t pid_namespace; /* ours */
    bool readers_allowed;   /* readers.h */
    opal_mutex_t lock;      /* guards all below */
    struct peer_table peers;
    opal_list_t mappings; /* struct cuda_mapping, the last one used at its front */
};

/* component.c. Open MPI knows the component as mca_btl_cuda_component. */
extern struct cuda_state cuda;
extern mca_btl_base_module_t cuda_module;

#define CUDA_SAY(...) opal_output(0, "btl/cuda: " __VA_ARGS__)
#define CUDA_VERBOSE(...)                                                                          \
    opal_output_verbose(10, opal_btl_base_framework.framework_output, "btl/cuda: " __VA_ARGS__)

/* share.c */
/* The number of the device with that UUID in this process; below 0: this process does not see it.
 */
int cuda_device_find(const struct driver_uuid *wanted);
/* The driver's handles of mapped memory, and opening memory of either kind. The first
 * three in the context of the memory's device, which is current. */
/* The chunk that is mapped at `address`, which is held, and into the key where it is mapped. */
driver_result cuda_share_chunk(driver_ptr address, driver_chunk *chunk, cuda_key_t *key);
/* In how many chunks the bytes from `first` to `last` are. */
driver_result cuda_share_count(driver_ptr first, driver_ptr last, uint32_t *count);
/* Whether it is mapped there still. */
bool cuda_share_is_mapped(const cuda_key_t *key, driver_chunk chunk);
/* Fills the key's handle. */
driver_result cuda_share_export(driver_chunk chunk, const cuda_peer_t *peer, cuda_key_t *key);
/* Ends both the handle and our hold. */
void cuda_share_retract(const cuda_key_t *key, driver_chunk chunk);
/* Maps the memory of the key at *here, in the copier's context. After an error `why` says why. */
driver_result cuda_share_open(const cuda_key_t *key, const struct copier *copier, driver_ptr *here,
                              char *why, size_t why_size);
void cuda_share_close(enum share_kind kind, const struct copier *copier, driver_ptr here,
                      size_t size);

/* list.c: keys of memory in several chunks, of kind SHARE_LIST. */
/* Reads the keys of the chunks, `count` of the key, from the memory of its owner, and checks that
 * the key's memory lies in them. NULL: `why` says why not. The caller frees them. */
cuda_key_t *cuda_list_read(const cuda_key_t *key, char *why, size_t why_size);

/* key.c: memory of this process, for peers. */
BTL_FUNCTION(register_mem, cuda_key_make);
BTL_FUNCTION(deregister_mem, cuda_key_free);
void cuda_keys_close(void);

/* mapping.c: memory of peers, in this process. */
/* Opens the memory of the key in the copier's context, so that the driver gives its device access;
 * copier NULL: the local end is memory of the host, and any context will do.
 * OPAL_ERR_TEMP_OUT_OF_RESOURCE: too many mappings are in use, or one in use is in the way. Other
 * errors: it cannot be opened, and a sentence says why. */
int cuda_mapping_get(cuda_peer_t *peer, const cuda_key_t *key, struct copier *copier,
                     struct cuda_mapping **mapping);
void cuda_mapping_release(struct cuda_mapping *mapping);
/* Under the lock. Says once a peer that its memory cannot be opened. */
void cuda_mapping_complain(cuda_peer_t *peer, const char *why);
void cuda_mappings_close(void);

/* copy.c */
BTL_FUNCTION(get, cuda_copy_get);
BTL_FUNCTION(put, cuda_copy_put);
/* Ends copies that are through; returns how many. */
int cuda_copies_progress(void);
void cuda_copies_init(void);
void cuda_copies_close(void);

#endif
