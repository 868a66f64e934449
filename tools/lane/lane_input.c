/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads lane files for the tools. */
#include "tools/lane/lane_input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/lane/cluster_keys.h"

bool lane_input_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                      struct cluster_model *cluster, struct model_error *error)
{
    *cluster = (struct cluster_model){.packet_bytes = UINT64_MAX, .processes = 2};
    if (!lane_file_parse(name, text, length, file, cluster_key_read, cluster, error))
        return false;
    return !file->has_cluster || (cluster->latency_count && cluster->packet_bytes) ||
           model_fail(error, "%.80s: [cluster]: %s", name,
                      cluster->latency_count ? "a packet of 0 bytes carries no message"
                                             : "latency, L, is missing");
}

const char *lane_input_name(const char *name)
{
    return strcmp(name, "-") ? name : "standard input";
}

bool lane_input_read(const char *name, struct lane_file *file, struct cluster_model *cluster,
                     struct model_error *error)
{
    bool standard = !strcmp(name, "-");
    name = lane_input_name(name);
    FILE *stream = standard ? stdin : fopen(name, "rb");
    if (!stream)
        return model_fail(error, "%.80s: cannot be opened: %s", name, strerror(errno));
    char *text = malloc(LANE_FILE_BYTES_MAX + 1);
    size_t length = text ? fread(text, 1, LANE_FILE_BYTES_MAX + 1, stream) : 0;
    bool read;
    if (!text)
        read = model_fail(error, "%.80s: no memory to read it", name);
    else if (ferror(stream))
        read = model_fail(error, "%.80s: cannot be read: %s", name, strerror(errno));
    else if (length > LANE_FILE_BYTES_MAX)
        read = model_fail(error, "%.80s: it is larger than 1 MiB, so it does not describe lanes",
                          name);
    else
        read = lane_input_parse(name, text, length, file, cluster, error);
    free(text);
    if (!standard)
        fclose(stream);
    return read;
}
