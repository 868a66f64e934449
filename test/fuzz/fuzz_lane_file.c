/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes at all as a lane file, as numbers and as lists of protocols: read or refused with a
 * sentence, and what was read can be planned with.
 *
 * Built with -DFUZZ_WITH_LIBFUZZER -fsanitize=fuzzer it is driven by libFuzzer. Otherwise it
 * changes a few files at random itself, always the same way. */
#include <float.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/number.h"
#include "test/unit/check.h"
#include "tools/lane/lane_input.h"
#include "tools/model/equation.h"

#define FILE_BYTES_MAX 4096
#define ROUNDS         60000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

/* A refusal is one sentence. */
static void require_sentence(const struct error_text *error)
{
    size_t length = strlen(error->text);
    require(length > 0 && length < sizeof error->text, "a refusal says why");
    require(!strchr(error->text, '\n'), "a refusal is one line");
}

static void plan_what_was_read(const struct lane_file *file)
{
    struct plan_input input;
    struct equation_result result;
    struct error_text error = {""};
    plan_input_init(&input);
    input.around = file->around;
    input.around.groups = (struct model_groups){file->groups, file->group_count};
    input.lanes = file->lanes;
    input.lane_count = file->lane_count;
    struct plan *plan = plan_build(&input, &error);
    if (plan)
        require(plan->largest[plan->entry_count - 1] == UINT64_MAX, "a plan covers every size");
    else
        require_sentence(&error);
    plan_free(plan);
    if (!equation_solve(&input, EQUATION_RNDV_GET, 1, &result, &error))
        require_sentence(&error);
    else
        require(result.bytes <= EQUATION_BYTES_MAX, "a threshold is within bounds");
}

static void read_as_numbers(const char *text)
{
    struct plan_override overrides[PLAN_OVERRIDES_MAX];
    struct error_text error = {""};
    uint64_t first, last;
    uint32_t count;
    double real;
    if (number_parse_real(text, &real, &error))
        require(real >= 0 && real <= DBL_MAX, "a real is finite and not negative");
    else
        require_sentence(&error);
    if (!number_parse_size(text, &first, &error))
        require_sentence(&error);
    if (number_parse_range(text, &first, &last, &error))
        require(first <= last, "a range does not end before it begins");
    if (!plan_overrides_parse(text, overrides, &count, &error))
        require_sentence(&error);
    else
        require(count <= PLAN_OVERRIDES_MAX, "forced ranges fit");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static struct lane_file file;
    static struct cluster_model cluster;
    struct error_text error = {""};
    if (lane_input_parse("fuzz", (const char *) data, length, &file, &cluster, &error))
        plan_what_was_read(&file);
    else
        require_sentence(&error);

    char *text = malloc(length + 1);
    require(text, "there is memory");
    memcpy(text, data, length);
    text[length] = 0;
    read_as_numbers(text);
    free(text);
    return 0;
}

#ifndef FUZZ_WITH_LIBFUZZER
static const char *const seeds[] = {
    "bias = 0.99\n[lane fast]\nuse = both\nlatency = 1.3e-6\nbandwidth = 12.5e9\n"
    "overhead = 0.2e-6\nreg_cost = 1e-6\nreg_growth = 0.06e-9\n",
    "eager_lanes = 2\nheader = 16\n[group bus]\nbandwidth = 20e9\n[copy host]\ncost = 3e-8\n"
    "growth = 5e-11\n[lane a]\nbandwidth = 1e9\nshort_max = 200\ncopied_max = 8k\ngroup = bus\n"
    "[range a 64k]\nbandwidth = 9e9\nget_latency = 1e-6\n[range a 1m]\nsend_overhead = 1e-7\n"
    "[lane b]\ncan = send, get, put\nreach = host cuda\nbandwidth = 3e9\ngroup = bus\n",
    "[cluster]\nsend_overhead = 1e-6 1e-9\nlatency_4 = 1e-6\nlatency_8 = 2e-6\npacket = 1500\n"
    "[lane c]\nbandwidth = 1\noverhead_send = 1e-6\nreg_cached = 5e-8\nzcopied_max = "
    "0\ncopy_growth = 1e-10\n",
    "[profile]\nschema = 3\nmade = now\nprocessor = some\nprocessors = 2\nkernel = 6\n"
    "open_mpi = 4.1.4\nmultilane = 0.1.0\n[group node]\nbandwidth = 2e10\n[lane shm@cache]\n"
    "can = send short get\nreach = host\ngroup = node\nshort_max = 1000\nzcopied_max = inf\n"
    "send_latency = 1e-7\nsend_bandwidth = 1e10\nget_bandwidth = 2e10\nboth_bandwidth = 3e10\n"
    "[range shm@cache 4k]\nsend_bandwidth = 4e9\nboth_latency = 1e-6\n[end]\n",
    "4k-64k",
    "rndv-get:4k-1m,2m-inf,eager-copy:0-10",
    "1.25e-6",
    "18446744073709551615"};

#define SEED_COUNT (sizeof seeds / sizeof seeds[0])

static size_t insert(uint8_t *data, size_t length, size_t at, const char *piece,
                     size_t piece_length)
{
    if (length + piece_length > FILE_BYTES_MAX)
        return length;
    memmove(data + at + piece_length, data + at, length - at);
    memcpy(data + at, piece, piece_length);
    return length + piece_length;
}

/* One change: a byte, a piece cut out, a piece of some seed put in, a number put in. */
static size_t change(uint64_t *chance, uint8_t *data, size_t length)
{
    static const char *const tokens[] = {
        "=",  "[",   "]",      "\n",      "#",    "-1",    "nan",   "1e999", "0",    "inf",
        "1k", "\0x", "1e-320", "[end]\n", "lane", "range", "group", "use",   "1e30", "[lane a]\n"};
    size_t at = length ? (size_t) chance_below(chance, length) : 0;
    const char *seed = seeds[chance_below(chance, SEED_COUNT)];
    switch (chance_below(chance, 5)) {
    case 0:
        if (length)
            data[at] = (uint8_t) chance_below(chance, 256);
        return length;
    case 1: {
        size_t cut = (size_t) chance_below(chance, 1 + (length - at));
        memmove(data + at, data + at + cut, length - at - cut);
        return length - cut;
    }
    case 2: {
        size_t from = (size_t) chance_below(chance, strlen(seed));
        return insert(data, length, at, seed + from,
                      (size_t) chance_below(chance, strlen(seed) - from) + 1);
    }
    default: {
        const char *token = tokens[chance_below(chance, sizeof tokens / sizeof tokens[0])];
        return insert(data, length, at, token, *token ? strlen(token) : 2);
    }
    }
}

int main(void)
{
    static uint8_t data[FILE_BYTES_MAX];
    uint64_t chance = 61;
    for (size_t i = 0; i < SEED_COUNT; i++)
        LLVMFuzzerTestOneInput((const uint8_t *) seeds[i], strlen(seeds[i]));
    for (unsigned round = 0; round < ROUNDS; round++) {
        const char *seed = seeds[chance_below(&chance, SEED_COUNT)];
        size_t length = strlen(seed);
        memcpy(data, seed, length);
        for (uint64_t changes = 1 + chance_below(&chance, 6); changes; changes--)
            length = change(&chance, data, length);
        LLVMFuzzerTestOneInput(data, length);
    }
    printf("%d files read or refused\n", ROUNDS);
    return 0;
}
#endif
