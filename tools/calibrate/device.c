/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and opening of the devices of rank 0's node. */
#include "device.h"

#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Many times as often as a job does at its start, and as long as it takes, within reason. */
#define ROUNDS  200
#define SECONDS 20.0

/* Of one rank, for the others of its node. */
struct offer {
    int is_good;
    struct driver_ipc_handle block;
};

static bool fail(struct device_result *result, const char *what, driver_result why)
{
    char words[160];
    snprintf(result->why, sizeof(result->why), "%.30s: %.150s", what,
             driver_words(why, words, sizeof(words)));
    return false;
}

static bool device_take(struct device_measure *measure, int turn, struct device_result *result)
{
    driver_result status;
    int count = 0;
    (void) dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* it is asked for: wherever it is */
    if (!driver_load()) {
        snprintf(result->why, sizeof(result->why), "%.190s", driver_why());
        return false;
    }
    if ((status = driver.init(0)) != DRIVER_SUCCESS ||
        (status = driver.device_count(&count)) != DRIVER_SUCCESS)
        return fail(result, "starting the driver", status);
    if (count == 0)
        return fail(result, "looking for a device", DRIVER_NO_DEVICE);
    measure->copier = copier_of_device(turn % count, &status);
    if (!measure->copier || (status = copier_enter(measure->copier)) != DRIVER_SUCCESS)
        return fail(result, "using the device", status);
    status = driver.mem_alloc(&measure->block, DEVICE_BLOCK_BYTES);
    context_leave();
    if (status == DRIVER_SUCCESS)
        measure->pinned = copier_pin(measure->copier, DEVICE_PINNED_BYTES, &status);
    if (status != DRIVER_SUCCESS)
        return fail(result, "memory to measure with", status);
    return true;
}

static struct offer offer_make(const struct device_measure *measure)
{
    struct offer offer = {.is_good = 0};
    if (measure->block != 0 && copier_enter(measure->copier) == DRIVER_SUCCESS) {
        offer.is_good = driver.ipc_export(&offer.block, measure->block) == DRIVER_SUCCESS;
        context_leave();
    }
    return offer;
}

static void slower(struct model_copy *line, const struct model_copy *other)
{
    line->fixed_s = fmax(line->fixed_s, other->fixed_s);
    line->s_byte = fmax(line->s_byte, other->s_byte);
}

static void own_measure(const struct device_measure *measure, struct device_result *result)
{
    driver_result status = DRIVER_NOT_SUPPORTED;
    if (!device_measure(measure, &result->costs))
        snprintf(result->why, sizeof(result->why), "its copies could not be measured");
    else if (!driver.device_name ||
             (status = driver.device_name(result->name, sizeof(result->name),
                                          measure->copier->device)) != DRIVER_SUCCESS)
        fail(result, "the device's name", status);
}

/* --- in turns: as both ends of a message do, the other process uses its device before each copy
 * from its memory. Without MPS the device changes from one process to the other, which takes its
 * time. */

struct other {
    MPI_Comm node;
    int rank;
};

static bool turn_ask(void *context)
{
    const struct other *other = context;
    int more = 1, taken = 0;
    MPI_Sendrecv(&more, 1, MPI_INT, other->rank, 0, &taken, 1, MPI_INT, other->rank, 0, other->node,
                 MPI_STATUS_IGNORE);
    return taken;
}

/* The first rank of the node, when it has measured. */
static void turns_end(MPI_Comm node, int count)
{
    int more = 0;
    for (int rank = 1; rank < count; rank++)
        MPI_Send(&more, 1, MPI_INT, rank, 0, node);
}

static void turns_take(const struct device_measure *measure, MPI_Comm node)
{
    int more, taken;
    for (;;) {
        MPI_Recv(&more, 1, MPI_INT, 0, 0, node, MPI_STATUS_IGNORE);
        if (!more)
            return;
        taken = measure->block != 0 && device_take_turn(measure);
        MPI_Send(&taken, 1, MPI_INT, 0, 0, node);
    }
}

/* Once the other rests, for the opening, and once in turns. */
static void pair_measure(struct device_measure *measure, struct other *other,
                         const struct driver_ipc_handle *block, struct device_result *result)
{
    struct device_pair pair, in_turns;
    measure->turn = NULL;
    if (!device_measure_pair(measure, block, &pair))
        return;
    result->pair.open_s = fmax(result->pair.open_s, pair.open_s);
    slower(&result->pair.get, &pair.get);
    measure->turn = turn_ask;
    measure->context = other;
    if (device_measure_pair(measure, block, &in_turns) && in_turns.turns > 0) {
        slower(&result->in_turns, &in_turns.get);
        slower(&result->in_turns, &pair.get); /* a copy is not faster for it */
    }
    measure->turn = NULL;
}

static void pairs_measure(struct device_measure *measure, const struct offer *offers, MPI_Comm node,
                          int count, struct device_result *result)
{
    for (int i = 1; i < count; i++) {
        struct other other = {.node = node, .rank = i};
        if (offers[i].is_good)
            pair_measure(measure, &other, &offers[i].block, result);
    }
}

void device_calibrate(struct device_result *result)
{
    struct device_measure measure = {.seconds = SECONDS, .rounds = ROUNDS};
    int rank, turn, count;
    MPI_Comm node;
    *result = (struct device_result){.name = ""};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &turn);
    MPI_Comm_size(node, &count);
    bool has_device = device_take(&measure, turn, result);
    struct offer offer = offer_make(&measure), *offers = calloc((size_t) count, sizeof(*offers));
    if (!offers)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gather(&offer, sizeof(offer), MPI_BYTE, offers, sizeof(offer), MPI_BYTE, 0, node);
    if (rank == 0 && has_device)
        own_measure(&measure, result);
    if (rank == 0 && result->name[0])
        pairs_measure(&measure, offers, node, count, result);
    if (turn == 0)
        turns_end(node, count);
    else
        turns_take(&measure, node);
    MPI_Barrier(MPI_COMM_WORLD); /* until here the others' memory is looked at */
    free(offers);
    MPI_Comm_free(&node);
    if (measure.pinned)
        copier_unpin(measure.copier, measure.pinned);
    if (measure.block != 0 && copier_enter(measure.copier) == DRIVER_SUCCESS) {
        driver.mem_free(measure.block);
        context_leave();
    }
    copiers_close();
}

/* --- the report ------------------------------------------------------------------------------- */

static void line_print(const char *what, const struct model_copy *line)
{
    if (line->s_byte > 0)
        printf("  %-44s %8.2f us, then %.3g GB/s\n", what, line->fixed_s * 1e6,
               1e-9 / line->s_byte);
    else
        printf("  %-44s not measured\n", what);
}

static void time_print(const char *what, double time_s)
{
    if (time_s > 0)
        printf("  %-44s %8.2f us\n", what, time_s * 1e6);
    else
        printf("  %-44s not measured\n", what);
}

/* As jobs have the lane; in the model three overheads stand for a rendezvous. */
static void way_set(struct model_lane *lane, enum model_way way, const struct model_copy *line)
{
    struct model_lane_cost *cost = &lane->cost[way];
    if (!(line->s_byte > 0))
        return;
    cost->range_count = 1;
    cost->ranges[0] = (struct model_lane_range){.largest_bytes = UINT64_MAX,
                                                .overhead_send_s = line->fixed_s / 3,
                                                .bandwidth_bytes_s = 1 / line->s_byte};
}

static void profile_add(const struct device_result *result, struct lane_file *profile)
{
    struct model_copy *copy = &profile->around.copy[1];
    struct model_lane *lane = &profile->lanes[profile->lane_count];
    snprintf(profile->profile.device, sizeof(profile->profile.device), "%s", result->name);
    *copy = result->costs.to_host;
    slower(copy, &result->costs.to_device);
    if (!(result->in_turns.s_byte > 0) || profile->lane_count == MODEL_LANES_MAX)
        return;
    model_lane_init(lane, "cuda:ipc@node");
    lane->can = MODEL_CAN_GET | MODEL_CAN_PUT | MODEL_CAN_DELIVER;
    lane->reach = MODEL_MEMORY_CUDA;
    lane->zcopied_max_bytes = SIZE_MAX;
    way_set(lane, MODEL_BY_GET, &result->in_turns);
    way_set(lane, MODEL_BY_PUT, &result->in_turns);
    profile->lane_count++;
}

void device_report(const struct device_result *result, struct lane_file *profile)
{
    if (!result->name[0]) {
        printf("\ndevice memory: not measured: %s\n", result->why);
        return;
    }
    printf("\ndevice memory of %s, each from the start to the end that the processor hears of\n",
           result->name);
    line_print("to the host", &result->costs.to_host);
    line_print("from the host", &result->costs.to_device);
    line_print("within the device", &result->costs.within);
    line_print("from another process, the slowest", &result->pair.get);
    line_print("the same while both use the device in turns", &result->in_turns);
    time_print("opening memory of another process", result->pair.open_s);
    profile_add(result, profile);
}
