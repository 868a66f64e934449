// SPDX-License-Identifier: BSD-3-Clause
// Random traffic: the script that every rank derives from a seed, and the oracle that judges which
// message each receive took.
#ifndef MULTILANE_TEST_MPI_TRAFFIC_H
#define MULTILANE_TEST_MPI_TRAFFIC_H

#include "layout.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { RANKS_MOST = 64, CHANNELS_MOST = 6, MESSAGES_MOST = 64, TAGS = 3, TAG_STRIDE = 16 };
enum { DECOY_TAG = TAGS, GO_TAG = 77 };

// A communicator, or a range of tags on one, that belongs to one thread.
struct channel {
    MPI_Comm comm;
    int tag_base;
    bool any_tag;                // MPI_ANY_TAG is allowed: the communicator is this thread's alone
    int rank_of[RANKS_MOST];     // of each rank of MPI_COMM_WORLD, in its own group
    int world_of[2][RANKS_MOST]; // back, by side
    int side_of[RANKS_MOST];     // of an intercommunicator; all 0 in an intracommunicator
    bool inter;
};

enum send_mode { STANDARD, BUFFERED, SYNCHRONOUS, READY, SEND_MODES };
enum send_how { SEND_BLOCKING, SEND_IMMEDIATE, SEND_PERSISTENT };
enum receive_how {
    RECEIVE_BLOCKING,
    RECEIVE_PROBE,
    RECEIVE_IPROBE,
    RECEIVE_MPROBE,
    RECEIVE_IMPROBE,
    RECEIVE_LATE_HOWS,
    RECEIVE_IMMEDIATE = RECEIVE_LATE_HOWS,
    RECEIVE_PERSISTENT,
    RECEIVE_HOWS
};
// What a receive names, from the least to the most general. A batch uses along one channel toward
// one rank either EXACT, ANY_TAG, ANYTHING or EXACT, ANY_SOURCE, ANYTHING, and posts them in this
// order: so no receive can take what another one needs, and every batch ends.
enum shape { EXACT, ANY_TAG, ANY_SOURCE, ANYTHING };

// One message and the receive that was made for it (which may take another one).
struct message {
    int channel, source, destination; // ranks of MPI_COMM_WORLD
    int tag;
    size_t elements, room; // room: of the receive
    struct layout_element element;
    enum layout_kind send_layout, receive_layout;
    enum send_mode mode;
    enum send_how send_how;
    enum receive_how receive_how;
    enum shape shape;
    uint32_t post_order; // of the receive among those of its shape, in a posted batch
    uint64_t key;        // of the contents
};

struct batch {
    // ordered: every rank walks the messages in their order, blocking calls included.
    // posted: receives are posted by generality, sends started, and all is waited for.
    bool posted, receives_first, has_ready, has_any_source, carried;
    int count, late; // late: receives at the end of each rank's order that block, in a posted batch
    struct message messages[MESSAGES_MOST];
};

struct script_options {
    size_t largest, largest_truncated; // bytes
    int weight_small, weight_middle, weight_large;
    bool wildcards, truncation, layouts;
};

struct script {
    uint64_t state, seed;
    int ranks, channel_count, batch_number;
    const struct channel *channels;
    struct script_options options;
    size_t buffered_left; // bytes that may still be sent buffered before the buffer is renewed
};

void script_begin(struct script *script, uint64_t seed);
void script_next(struct script *script, struct batch *batch);

// When the sender starts the message, among its own of the batch.
int message_start_order(const struct batch *batch, int message);

// A receive that was posted and the message it took, by its place in the batch.
struct taken {
    int shape_of; // the message whose shape the receive has
    int message;
};
// The messages that one rank received along one channel in one batch, in the order in which the
// receives were posted. False when no sequence of matches allowed by MPI gives them.
bool oracle_order_is_legal(const struct batch *batch, const struct taken *taken, int count);
bool oracle_accepts(const struct message *receive, const struct message *message);

#endif
