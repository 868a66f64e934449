/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and opening of the devices of rank 0's node. */
#include "device.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#include "common/memory/copier.h"
#include "traffic.h"

#define BUFFER_BYTES 4096
/* What copies in turns may take: then they are given up. */
#define TURNS_S 0.5
/* Calls of MPI between two looks at what is known, which keep others from writing there. */
#define PROBES 1000

static driver_ptr fail(struct device_result *result, const char *what, driver_result why)
{
    char words[160];
    snprintf(result->why, sizeof(result->why), "%.30s: %.150s", what,
             driver_words(why, words, sizeof(words)));
    return 0;
}

void device_prepare(void)
{
    (void) dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

/* Memory on the device whose turn it is; 0: there is none. */
static driver_ptr buffer_take(int turn, struct copier **copier, struct device_result *result)
{
    driver_ptr buffer = 0;
    driver_result status;
    int count = 0;
    if (!driver_load()) {
        snprintf(result->why, sizeof(result->why), "%.190s", driver_why());
        return 0;
    }
    if ((status = driver.init(0)) != DRIVER_SUCCESS ||
        (status = driver.device_count(&count)) != DRIVER_SUCCESS)
        return fail(result, "starting the driver", status);
    if (count == 0)
        return fail(result, "looking for a device", DRIVER_NO_DEVICE);
    *copier = copier_of_device(turn % count, &status);
    if (!*copier || (status = copier_enter(*copier)) != DRIVER_SUCCESS)
        return fail(result, "using the device", status);
    status = driver.mem_alloc(&buffer, BUFFER_BYTES);
    context_leave();
    return status == DRIVER_SUCCESS ? buffer : fail(result, "memory to measure with", status);
}

/* One after the other, so that none disturbs another; then all are in MPI, and none waits, until
 * it is known what copies in turns take. */
static void turns_take(const struct multilane_measure *pml, driver_ptr buffer, MPI_Comm node)
{
    struct multilane_device device = {.name = ""};
    int turn, count;
    MPI_Comm_rank(node, &turn);
    MPI_Comm_size(node, &count);
    for (int i = 0; i < count; i++) {
        if (i == turn && buffer)
            (void) pml->device((const void *) buffer, &device);
        MPI_Barrier(node);
    }
    for (double until = seconds_now() + TURNS_S;
         buffer && count > 1 && !device.in_turns && seconds_now() < until;) {
        for (int i = 0, is_here; i < PROBES; i++)
            MPI_Iprobe(MPI_ANY_SOURCE, 0, node, &is_here, MPI_STATUS_IGNORE);
        (void) pml->device(NULL, &device);
    }
    MPI_Barrier(node);
}

void device_calibrate(const struct multilane_measure *pml, struct device_result *result)
{
    struct copier *copier = NULL;
    int rank, turn;
    MPI_Comm node;
    *result = (struct device_result){.why = "its copies could not be measured"};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &turn);
    driver_ptr buffer = buffer_take(turn, &copier, result);
    turns_take(pml, buffer, node);
    if (buffer && pml->device(NULL, &result->device) != 0)
        result->device.name[0] = '\0';
    MPI_Barrier(MPI_COMM_WORLD); /* until here the others' memory is looked at */
    MPI_Comm_free(&node);
    if (buffer && copier_enter(copier) == DRIVER_SUCCESS) {
        driver.mem_free(buffer);
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

/* As jobs have the lane; in the model three overheads stand for a rendezvous. */
static void way_set(struct model_lane *lane, enum model_way way, const struct model_copy *line)
{
    lane->cost[way].range_count = 1;
    lane->cost[way].ranges[0] = (struct model_lane_range){.largest_bytes = UINT64_MAX,
                                                          .overhead_send_s = line->fixed_s / 3,
                                                          .bandwidth_bytes_s = 1 / line->s_byte};
}

static void profile_add(const struct multilane_device *device, struct lane_file *profile)
{
    struct model_lane *lane = &profile->lanes[profile->lane_count];
    snprintf(profile->profile.device, sizeof(profile->profile.device), "%s", device->name);
    profile->around.copy[1] = device->copy;
    if (!(device->get.s_byte > 0) || profile->lane_count == MODEL_LANES_MAX)
        return;
    model_lane_init(lane, "cuda:ipc@node");
    lane->can = MODEL_CAN_GET | MODEL_CAN_PUT | MODEL_CAN_DELIVER;
    lane->reach = MODEL_MEMORY_CUDA;
    lane->zcopied_max_bytes = SIZE_MAX;
    way_set(lane, MODEL_BY_GET, &device->get);
    way_set(lane, MODEL_BY_PUT, &device->get);
    profile->lane_count++;
}

void device_report(const struct device_result *result, struct lane_file *profile)
{
    const struct multilane_device *device = &result->device;
    if (!device->name[0]) {
        printf("\ndevice memory: not measured: %s\n", result->why);
        return;
    }
    printf("\ndevice memory of %s, each from the start to the end that the processor hears of\n",
           device->name);
    line_print("to the host or from there, the slower", &device->copy);
    line_print("within the device", &device->within);
    line_print("from another process, the slowest", &device->get);
    if (device->get.s_byte > 0)
        printf("  %-44s %8.2f us%s\n", "opening memory of another process", device->open_s * 1e6,
               device->in_turns ? "; copied from while both use the device in turns" : "");
    profile_add(device, profile);
}
