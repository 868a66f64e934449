/* SPDX-License-Identifier: BSD-3-Clause */
/* What Multilane's BTLs offer its PML beside Open MPI's btl.h, and how the PML finds it. */
#ifndef MULTILANE_EXTENSION_H
#define MULTILANE_EXTENSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/lane.h"

/* A BTL that offers this exports one constant of type struct multilane_extension, whose name
 * carries the BTL's name and the version of this header: mca_btl_shm_multilane_v5. Open MPI opens
 * components RTLD_GLOBAL, so dlsym(RTLD_DEFAULT, name) finds it; a BTL without such a symbol is a
 * stock BTL and is used through btl.h alone. A change that an older PML would misread takes a new
 * version; a change at the end of the struct only takes a larger `struct_bytes`.
 *
 * Rules that hold for every function below, unless it says otherwise:
 *  - `btl` is a module of the BTL that exports the constant, `endpoint` one that this module's
 *    btl_add_procs returned and btl_del_procs has not taken back.
 *  - It may be called by any thread at any time, also inside a receive or completion callback, and
 *    needs no lock of the caller. It never blocks on the peer.
 *  - A function pointer is NULL where the BTL never has the capability that the function belongs
 * to. Whether it works toward one peer is said by the capabilities of that endpoint.
 *  - Return codes are Open MPI's (OPAL_SUCCESS, OPAL_ERR_...).
 *  - What btl_sendi has accepted is out of this process: in the peer's memory, or with the device.
 *    It says OPAL_ERR_RESOURCE_BUSY where it only has no room now: a descriptor would wait for the
 *    same room. */
#define MULTILANE_EXTENSION_VERSION       5
#define MULTILANE_EXTENSION_SYMBOL_FORMAT "mca_btl_%s_multilane_v5"

/* Begins the definition of a BTL's constant, and fills its first two members. */
#define MULTILANE_EXTENSION_DEFINE(btl)                                                            \
    extern const struct multilane_extension mca_btl_##btl##_multilane_v5;                          \
    __attribute__((visibility("default")))                                                         \
    const struct multilane_extension mca_btl_##btl##_multilane_v5
#define MULTILANE_EXTENSION_HEAD                                                                   \
    .version = MULTILANE_EXTENSION_VERSION, .struct_bytes = sizeof(struct multilane_extension)

struct mca_btl_base_descriptor_t;
struct mca_btl_base_module_t;
struct mca_btl_base_endpoint_t;
struct mca_btl_base_registration_handle_t;

/* What a lane can do toward one peer. A bit may go away while a job runs (the kernel refuses what
 * it allowed before); none is ever added after the first message, but two: COPY waits for the
 * proof of the peer's identity (the PML asks again when it next makes a plan), and a broken lane
 * may get RENEW. */
enum multilane_capability {
    /* A completed send, put or get has reached the peer's memory and will be seen by it, whatever
     * happens to this lane later. Without the bit a completion frees the local buffer, no more. */
    MULTILANE_CAN_DELIVER = 1 << 0,
    /* control_obtain, control_find and control_release work. */
    MULTILANE_CAN_CONTROL = 1 << 1,
    /* copy_from and copy_to work; the peer's identity was proven. */
    MULTILANE_CAN_COPY = 1 << 2,
    /* put and get take addresses of device memory at either end, registered with
     * MULTILANE_REGISTER_DEVICE; of some memory that may be refused. flush works. */
    MULTILANE_CAN_DEVICE_MEMORY = 1 << 3,
    /* fence works: a piece may be sent again over another lane once it has succeeded. */
    MULTILANE_CAN_FENCE = 1 << 4,
    /* The lane may break while the peer lives: what it has taken and not completed is lost then,
     * unless return_to was called, and the module's error callback says so. btl_add_procs makes it
     * anew, once fence would succeed. */
    MULTILANE_CAN_BREAK = 1 << 5,
    /* Messages pass through a ring in shared memory (common/ring): one end copies them into it, the
     * other out of it. What is measured of such copies at the start holds for them. */
    MULTILANE_CAN_RING = 1 << 6,
    /* What is sent behind a put arrives behind its bytes: word of it need not wait for its end. */
    MULTILANE_CAN_ORDER = 1 << 7,
    /* Where it may break, btl_add_procs makes it anew also if no other lane carries the messages of
     * its fence. As the only lane to a peer it returns messages, which then wait for it. */
    MULTILANE_CAN_RENEW = 1 << 8
};

/* A flag of btl_register_mem, by the number that Open MPI has for it where it was built with CUDA.
 */
#define MULTILANE_REGISTER_DEVICE UINT32_C(0x00010000)
/* Another: NULL where registrations are kept for the next message, but one of this memory would not
 * be. */
#define MULTILANE_REGISTER_CACHED UINT32_C(0x00020000)

#define MULTILANE_LANE_RANGES_MAX 8

/* What one way costs, in the model's terms; but that a value below 0 is one that the BTL does not
 * know, and a bandwidth of 0 an infinite one. */
struct multilane_lane_cost {
    uint32_t range_count; /* 0: the lane cannot go this way */
    uint32_t reserved;
    struct model_lane_range ranges[MULTILANE_LANE_RANGES_MAX]; /* the last: UINT64_MAX */
};

/* Those that a BTL has a function for: send (btl_sendi, btl_send), get (btl_get, copy_from), put.
 */
#define MULTILANE_WAYS MODEL_BY_BOTH

struct multilane_lane_attributes {
    uint64_t capabilities; /* enum multilane_capability */
    uint32_t memory;       /* that it reaches directly: enum model_memory */
    /* Lanes of this node with equal groups other than 0 share what carries them (a core's copying,
     * a bus, a card): their bandwidths do not add up. */
    uint32_t capacity_group;

    /* Largest message, headers included, for one btl_sendi; for one fragment that the lane copies;
     * for one piece it moves without a copy of its own (0: none). */
    uint64_t short_max_bytes;
    uint64_t copied_max_bytes;
    uint64_t zcopied_max_bytes;

    /* Above 0: prepare_in_place works, and this is what a message that is copied into the lane's
     * fragments takes more, a byte; what one in place takes more is the registration, of sends as
     * of gets and puts. */
    double copy_s_byte;

    struct multilane_lane_cost cost[MULTILANE_WAYS];

    char device[64]; /* as hwloc and people call it: "shm", "mlx5_0:1", "GPU0"; ends in 0 */
};

/* One line of memory that both ends have mapped, cleared when it is obtained. The PML defines what
 * the words mean. The peer writes them too, so whatever is read from them is checked like a header
 * that came from outside. Both ends use atomic operations. */
#define MULTILANE_CONTROL_WORDS 8

struct multilane_control {
    _Alignas(64) _Atomic uint64_t words[MULTILANE_CONTROL_WORDS];
};

typedef void (*multilane_flush_done)(void *context, int status);

/* The tags from 0x40 to 0x5f are the PML's. Others are those of osc/rdma, which keeps to the lane
 * that it chose: that one takes its messages also while it is broken, and returns them. */
static inline bool multilane_tag_is_of_pml(uint8_t tag)
{
    return (tag & 0xe0) == 0x40;
}

/* Takes a message back, in two places, of which the second may be empty. False: no memory. */
typedef bool (*multilane_returned)(void *context, uint8_t tag, const void *bytes, size_t length,
                                   const void *payload, size_t payload_length);

/* Memory that the job's processes on a node have all mapped, in parts: each process allots what is
 * in its own part, and all may use it. */
struct multilane_commons {
    uint32_t part;         /* this process's own */
    unsigned char *memory; /* of part 0; that of each next one lies `stride` further */
    size_t stride;
    size_t bytes; /* of a part */
    /* Bytes of this process's own part have memory from here on. False: there is none. */
    bool (*reserve)(void *memory, size_t bytes);
    /* Does that other process live, as far as is known? */
    bool (*lives)(uint32_t part);
    /* Wakes that process if it sleeps (`sleep` below), after a word that it waits for has changed.
     * That store, and the sleeper's look at the word, are sequentially consistent. */
    void (*wake)(uint32_t part);
};

#define MULTILANE_PUBLISHED_BYTES 512u
#define MULTILANE_FENCE_BYTES     64u

/* A shared word, and what it was at the last look. */
struct multilane_seen {
    const _Atomic uint32_t *word;
    uint32_t seen;
};

struct multilane_extension {
    uint32_t version; /* MULTILANE_EXTENSION_VERSION */
    uint32_t struct_bytes;

    /* What the lane costs and can do toward this peer. `out` is filled wholly; values that a
     * parameter of the user set are already in it. Called when the PML makes a plan, never on the
     * data path. With null for both, and outside of a job, for ompi_info: the lane that a job on
     * this machine can expect, the best of several; below 0: none. */
    int (*attributes)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      struct multilane_lane_attributes *out);

    /* Looks for what has arrived from this peer alone and handles it, callbacks included, as the
     * BTL's progress function would, but best one message only: the caller may have what it waits
     * for then, and receives for the others may follow. Returns the number of events handled, 0
     * when there was nothing or another thread is at it, below 0 never. A blocking receive calls it
     * before it falls back to Open MPI's progress loop; it does not yield the processor. It also
     * returns 0 while the peer has no connection yet: the general loop makes it. */
    int (*poll)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint);

    /* MULTILANE_CAN_CONTROL. Obtains a cleared control line shared with the peer of `endpoint`.
     * *handle, sent to that peer by the PML, finds it there. OPAL_ERR_OUT_OF_RESOURCE: all lines of
     * this peer are taken, use another protocol. */
    int (*control_obtain)(struct mca_btl_base_module_t *btl,
                          struct mca_btl_base_endpoint_t *endpoint,
                          struct multilane_control **control, uint64_t *handle);

    /* The line that the peer of `endpoint` obtained and sent the handle of; NULL if no line of this
     * peer can have that handle. Valid until the owner releases it, which the PML's protocol must
     * order after the last use here; at the end of the endpoint it is unmapped. */
    struct multilane_control *(*control_find)(struct mca_btl_base_module_t *btl,
                                              struct mca_btl_base_endpoint_t *endpoint,
                                              uint64_t handle);

    /* Gives a line back; called by the process that obtained it, once. */
    void (*control_release)(struct mca_btl_base_module_t *btl,
                            struct mca_btl_base_endpoint_t *endpoint, uint64_t handle);

    /* MULTILANE_CAN_COPY. Copies between memory of this process and an address of the peer; all is
     * done when it returns. The peer need not take part and learns nothing of it.
     * OPAL_SUCCESS: all bytes are copied. OPAL_ERR_NOT_SUPPORTED: the system refuses it, now and in
     * future (the capability is withdrawn); OPAL_ERR_BAD_PARAM: the address is not memory of the
     * peer; OPAL_ERR_UNREACH: the peer has ended. After an error an unknown part of the destination
     * is written, no later than the return: the same bytes may be sent another way at once. */
    int (*copy_from)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     void *local, uint64_t remote_address, size_t length);
    int (*copy_to)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   const void *local, uint64_t remote_address, size_t length);

    /* MULTILANE_CAN_FENCE. After OPAL_SUCCESS nothing that was given to this lane toward this peer
     * before the first call of fence can write user memory at either end any more; what had not
     * completed ends with an error through its callback. OPAL_ERR_RESOURCE_BUSY: under way, call
     * again later. The lane sends nothing afterwards, until the peer is added anew. */
    int (*fence)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint);

    /* Room for a short or copied message right where the lane sends it from, so that it is written
     * once: `header_bytes` and behind them `payload_bytes`. NULL: none now, use btl_sendi or
     * btl_send. Until `commit`, which must follow in the same thread with the same sizes and sends
     * it, the caller only writes: it calls nothing of the BTL and does not wait. The payload is
     * best written before the header, which the peer is looking at. */
    void *(*reserve)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     size_t header_bytes, size_t payload_bytes);
    void (*commit)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   size_t header_bytes, size_t payload_bytes, uint8_t tag);

    /* MULTILANE_CAN_DEVICE_MEMORY. What this lane wrote to device memory of this process, by a get
     * of ours that has completed or puts of the peer that a message behind them told of, may still
     * be on its way to the device, while the processor knows of it already. Once `done` was called
     * with OPAL_SUCCESS the device sees it. `registration` is that of the memory, which stays
     * until then; `address` is in it. OPAL_SUCCESS: `done` will be called once, from progress. Any
     * other code: nothing is begun. */
    int (*flush)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 struct mca_btl_base_registration_handle_t *registration, const void *address,
                 size_t length, multilane_flush_done done, void *context);

    /* As btl_prepare_src, of a message whose payload is sent from where it lies, in memory
     * registered with MCA_BTL_REG_FLAG_REMOTE_READ by `registration`: the caller writes the header
     * into the first segment, and the payload is not touched before btl_send. Both stay until the
     * descriptor's callback, which comes in any case once it was sent, after an error too, and
     * after a fence soon: then nothing reads the payload any more. NULL: no room now. */
    struct mca_btl_base_descriptor_t *(*prepare_in_place)(
        struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
        struct mca_btl_base_registration_handle_t *registration, size_t header_bytes,
        const void *payload, size_t payload_bytes, uint32_t flags);

    /* Both or neither. publish keeps a record of up to MULTILANE_PUBLISHED_BYTES where peers of
     * this module can read it without the runtime, which is slower; published_read returns the
     * length of what the peer left so, copied to `record`, or 0: ask the runtime. */
    void (*publish)(struct mca_btl_base_module_t *btl, const void *record, size_t length);
    size_t (*published_read)(struct mca_btl_base_module_t *btl,
                             struct mca_btl_base_endpoint_t *endpoint, void *record, size_t room);
    /* Sleeps until something arrives for this process over this BTL, or `microseconds` are over.
     * True: something may have come, so look before the next sleep. False: the time is over, or it
     * cannot sleep yet; call it again soon. The `count` words are what the caller waits for beside
     * that: it does not sleep if one is not as it was seen before the caller last looked. One
     * module of the BTL sleeps for all. */
    bool (*sleep)(uint32_t microseconds, const struct multilane_seen *words, size_t count);
    /* Wakes the threads of this process that sleep there; call it after a change of such a word. */
    void (*wake)(void);

    /* MULTILANE_CAN_FENCE. A fence that needs the other end's word does not hold while the lane is
     * cut. So the PML carries messages between the two ends by another lane, and does not look into
     * them: `message` has room for MULTILANE_FENCE_BYTES.
     *   fence_ask   What to send to the other end; returns its length, 0 where no fence is waited
     * for. fence_hear  A message has come from a process by this component; checked like all that
     * comes from outside. Returns the length of the answer to send back, or 0. */
    size_t (*fence_ask)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        void *message);
    size_t (*fence_hear)(const void *message, size_t length, void *answer);

    /* How many bytes of a message `reserve` would take now, in pieces of any size; SIZE_MAX: no
     * piece of a large message, as there is no connection yet or no memory for a ring that takes
     * one, and btl_send sees to that. Otherwise the PML sends these pieces by `reserve`: what finds
     * no room stays with the PML, which may give it to the receiver. `reserve` keeps back room for
     * short messages, so that others can be announced behind a large one. */
    size_t (*room)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint);
    /* Where the PML counts its threads that wait in a call; NULL: MPI has ended in order. A round
     * of progress while none waits comes from a program that looks now and then: it may take what
     * is there, for as long as looks so seldom are worth. A wait comes back by itself, and takes
     * little at a time. */
    void (*waits_at)(const _Atomic uint32_t *waits);
    /* Both or neither, of a BTL that does not wake what sleeps by another BTL's `sleep`. After
     * `rouse_by` it calls `rouse`, from a thread of its own, once for each call of `will_sleep`
     * that finds something to read or is followed by that; NULL: no more. False: it cannot. */
    bool (*rouse_by)(void (*rouse)(void));
    void (*will_sleep)(void);
    /* Of a BTL whose messages pass through the kernel's connections: what the kernel has measured
     * of this one; 0: there is none yet. */
    double (*round_trip_s)(struct mca_btl_base_module_t *btl,
                           struct mca_btl_base_endpoint_t *endpoint);
    /* False: this process has no part of such memory. */
    bool (*commons)(struct multilane_commons *out);
    /* Of a BTL that finds out by trying whether a lane leads to the peer. Begins to try, and goes
     * on until it succeeds. False: the peer has not answered there yet; `why`, of `room` bytes,
     * says in words what it was that came instead. The PML sends by another lane until then, so
     * that a lane that leads nowhere need not be given up. */
    bool (*is_proven)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      char *why, size_t room);
    /* What was sent since the connection is there, in segments or what the device counts, and how
     * much of it was sent again. False: there is none. */
    bool (*repeats)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                    uint64_t *sent, uint64_t *repeated);
    /* What it was given and the other end has not said that it has: bytes, and when they and
     * `more` will be there, in seconds from now, by the rate at which it delivers; with `more` 0
     * the bytes alone. */
    size_t (*under_way)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        size_t more, double *seconds);
    /* Of a lane that may break, and can be fenced. From now on it keeps each message until the
     * other end, or its device, has it. When it breaks, the two ends tell each other with the
     * messages of the fence what they have received; then each message that the other end has not
     * is handed to `returned`, from progress and in turn, and counts as sent: what was returned
     * never arrives by this lane, and what has arrived never returns. Where messages are lost all
     * the same, the error callback is told so by MCA_BTL_ERROR_FLAGS_FATAL. NULL: no more; what is
     * kept ends with an error, as it does where `returned` says false. */
    void (*return_to)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      multilane_returned returned, void *context);
    /* Of such a lane: for how many milliseconds something is under way of which nothing has
     * arrived; 0: nothing is. The PML then asks whether other lanes lead to the peer, and closes
     * this one. */
    uint64_t (*quiet_ms)(struct mca_btl_base_module_t *btl,
                         struct mca_btl_base_endpoint_t *endpoint);
    /* Of a BTL that keeps each message until the other end has said that it has it. Before a
     * message of the PML counts as received, `is_right` is asked: after false it was not received,
     * the connection breaks, and the message comes again, as any that was lost with it. `bytes`
     * null: what the BTL itself wrote before the message is wrong. Once, before the first message,
     * and no lock is held when `is_right` is called, which may send. */
    void (*check_by)(bool (*is_right)(struct mca_btl_base_module_t *btl,
                                      struct mca_btl_base_endpoint_t *endpoint, uint8_t tag,
                                      const void *bytes, size_t length));
    /* All or none, of a BTL that has further connections where a lane carries less than what is
     * below it: lanes that the BML does not know, which end with the first one's btl_del_procs and
     * btl_finalize. How many there may ever be beside a lane that the BML knows; */
    uint32_t (*links_most)(struct mca_btl_base_module_t *btl,
                           struct mca_btl_base_endpoint_t *endpoint);
    /* the nth one, from 1 (false: it is not there); */
    bool (*links_next)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       uint32_t nth, struct mca_btl_base_module_t **next,
                       struct mca_btl_base_endpoint_t **next_endpoint);
    /* and what grows before links_next says something else. */
    const _Atomic uint32_t *link_changes;
    /* Of a BTL with `under_way`: the rate at which this one delivers, as the BTL has measured it of
     * late, in bytes a second; 0: it has not. */
    double (*observed_bytes_s)(struct mca_btl_base_module_t *btl,
                               struct mca_btl_base_endpoint_t *endpoint);
};

#endif
