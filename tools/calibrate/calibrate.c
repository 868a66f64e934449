/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-calibrate: measures the lanes between two processes and writes what it found as this
 * machine's profile. */
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "job.h"
#include "lane_test.h"
#include "measure.h"
#include "common/model/number.h"
#include "common/report/table.h"
#include "tools/lane/profile_write.h"
#include "tools/options.h"

#define EXIT_USAGE  2
#define EXIT_FAILED 1 /* something could not be allocated or written */

static const char *version = "multilane-calibrate " PACKAGE_VERSION "\n";
static const char *usage =
    "usage: mpirun -n 2 multilane-calibrate [OPTION]...\n"
    "Measures the lanes between rank 0 and other ranks and writes a profile of this machine, "
    "which\n"
    "jobs then find by themselves. More ranks and hosts: one peer for every placement is "
    "measured.\n"
    "  --quick           fewer messages, up to 16 MiB: some seconds at most\n"
    "  --thorough        three times as many, in about 2 minutes at most; else about 30 s.\n"
    "                    A lane whose times scatter is measured again: three times that at most\n"
    "  --output FILE     write the profile there instead of the user's cache folder\n"
    "  --site            write it to the folder of the site\n"
    "  --no-write        write none\n"
    "  --lanes           only list the lanes, as multilane-doctor does\n"
    "  --job             only test each lane of the job, as multilane-doctor --job does\n"
    "  --help, --version\n"
    "Which lanes there are is said by Open MPI's --mca btl.\n";

struct options {
    struct effort effort;
    const char *output;
    bool site, no_write, lanes, job;
};

static const struct effort efforts[] = {
    {30, 5, UINT64_C(64) << 20}, {5, 3, UINT64_C(16) << 20}, {120, 15, UINT64_C(64) << 20}};

static bool read_options(int argc, char **argv, struct options *options, struct error_text *error)
{
    bool quick = false, thorough = false;
    const struct option_row rows[] = {{"quick", OPTION_FLAG, &quick, NULL},
                                      {"thorough", OPTION_FLAG, &thorough, NULL},
                                      {"output", OPTION_TEXT, &options->output, NULL},
                                      {"site", OPTION_FLAG, &options->site, NULL},
                                      {"no-write", OPTION_FLAG, &options->no_write, NULL},
                                      {"lanes", OPTION_FLAG, &options->lanes, NULL},
                                      {"job", OPTION_FLAG, &options->job, NULL},
                                      {"help", OPTION_PRINT, &usage, NULL},
                                      {"version", OPTION_PRINT, &version, NULL},
                                      {.name = NULL}};
    int first = options_read(argc, argv, rows, error);
    options->effort = efforts[quick ? 1 : thorough ? 2 : 0];
    return first >= 0 &&
           (first == argc || fail_with(error, "it takes no argument %.60s", argv[first]));
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "multilane-calibrate: %s%s\n", what, why);
    return EXIT_FAILED;
}

/* --- tables of what messages took ------------------------------------------------------------- */

/* Of one lane. */
struct lane_result {
    struct model_lane lane; /* as measured, if `good`; else as it was before */
    bool good;
    struct error_text why; /* it is not */
    struct lane_times times;
};

/* The protocol that took least of messages of that size beside `but`; below 0: there is none. */
static int quickest(const struct lane_times *times, uint32_t bucket, int but)
{
    int best = -1;
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        if (i != but && times->at[i][bucket].messages &&
            (best < 0 || times->at[i][bucket].seconds < times->at[best][bucket].seconds))
            best = i;
    return best;
}

/* One row for each size from `first` to `last` that is a power of two: how it goes by the plan,
 * what that took, and the best of the others. */
static void size_row(struct table *table, const struct lane_result *result, const struct plan *plan,
                     uint32_t bucket)
{
    uint64_t bytes = UINT64_C(1) << bucket;
    int chosen = (int) plan_lookup(plan, bytes)->protocol_index;
    const struct multilane_times *time = &result->times.at[chosen][bucket];
    int other = quickest(&result->times, bucket, chosen);
    if (!time->messages)
        return;
    table_row(table, "%s\t%s\t%s\t%.0f %%\t%u\t%s\t%s", number_size(bytes).text,
              model_protocols[chosen]->name, number_time(time->seconds).text,
              100 * time->spread_s / time->seconds, (unsigned) time->messages,
              other < 0 ? "" : model_protocols[other]->name,
              other < 0 ? "" : number_time(result->times.at[other][bucket].seconds).text);
}

static void report_lane(FILE *out, const struct lane_result *result,
                        const struct model_surroundings *around)
{
    struct plan_input input;
    struct table table;
    plan_input_init(&input);
    input.lanes = &result->lane;
    input.lane_count = 1;
    input.around = *around;
    fprintf(out, "\n%s\n", result->lane.name);
    struct plan *plan = result->good ? plan_build(&input, NULL) : NULL;
    if (!plan) {
        fprintf(out, "  left out of the profile: %s\n", result->why.text);
        return;
    }
    table_init(&table, "bytes\tplanned\ttook\tspread\tmessages\tnext best\ttook");
    for (uint32_t bucket = 0; bucket < LEARNED_BUCKETS; bucket++)
        size_row(&table, result, plan, bucket);
    table_print(&table, out, "  ");
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        fprintf(out, "%s%s from %s", i == 1 ? "  switches: " : ", ",
                plan->entries[i].protocol->name, number_size(plan->entries[i].first_bytes).text);
    }
    fputs(plan->entry_count > 1 ? "\n" : "", out);
    plan_free(plan);
}

/* --- what is measured ------------------------------------------------------------------------- */

struct calibration {
    struct traffic traffic;
    struct options options;
    struct model_surroundings around;
    struct lane_file profile;
    char path[PROFILE_PATH_CHARS]; /* of the profile */
};

struct placed_peer {
    int rank;
    struct multilane_lanes to;
};

/* One peer for each placement: the first rank that is there. */
static int placed_peers_find(const struct traffic *traffic,
                             struct placed_peer peers[PROFILE_PLACEMENTS])
{
    int count = 0;
    for (int rank = 1; rank < traffic->ranks; rank++) {
        struct placed_peer *peer = &peers[count];
        bool is_new = true;
        peer->rank = rank;
        if (traffic->pml->lanes(rank, &peer->to) != 0)
            continue;
        for (int i = 0; i < count; i++)
            is_new = is_new && peers[i].to.placement != peer->to.placement;
        count += is_new;
        if (count == PROFILE_PLACEMENTS)
            break;
    }
    return count;
}

/* Of a lane whose times of one size are farther apart than this, in the median of all sizes,
 * something else was measured; it is measured again so often before it is given up. */
#define UNSTEADY 0.5
#define ATTEMPTS 3

/* What messages took, as the lane's costs. */
static void lane_save(struct calibration *calibration, struct lane_result *result)
{
    double unsteady = measure_unsteady(&result->times);
    result->good = unsteady <= UNSTEADY;
    if (!isfinite(unsteady))
        fail_with(&result->why, "too few of its messages could be timed");
    else if (!result->good)
        fail_with(&result->why, "the times of one size lie %.0f %% apart", 100 * unsteady);
    else
        result->good =
            lane_of_times(&result->times, &calibration->around, &result->lane, &result->why);
}

static void lane_measure(struct calibration *calibration, const struct placed_peer *peer,
                         uint32_t index, double seconds)
{
    struct lane_file *profile = &calibration->profile;
    struct lane_result result = {.lane = peer->to.lanes[index]};
    char *name = result.lane.name;
    snprintf(name, sizeof(result.lane.name), "%.32s@%s", peer->to.lanes[index].name,
             profile_placement_name(peer->to.placement));
    result.lane.group = 0;
    if (profile->lane_count == MODEL_LANES_MAX) {
        complain(name, ": a profile holds 16 lanes; this one is left out");
        return;
    }
    /* Modules of a BTL that does not name its devices have one name, and a profile one entry for
     * it.
     */
    if (lane_file_find(profile, name)) {
        complain(name, ": several lanes have this name; the first one was measured");
        return;
    }
    measure_registration(calibration->traffic.pml, peer->rank, index, &result.lane);
    for (int attempt = 0; attempt < ATTEMPTS && !result.good; attempt++) {
        measure_lane(&calibration->traffic, peer->rank, index, &calibration->options.effort,
                     seconds, &result.times);
        lane_save(calibration, &result);
    }
    report_lane(stdout, &result, &calibration->around);
    fflush(stdout);
    if (result.good)
        profile->lanes[profile->lane_count++] = result.lane;
}

/* All lanes at once: a group where they do not add up. */
static void together_measure(struct calibration *calibration, const struct placed_peer *peer)
{
    struct lane_file *profile = &calibration->profile;
    double alone = 0;
    const char *name = profile_placement_name(peer->to.placement);
    if (peer->to.count < 2)
        return;
    for (uint32_t i = 0; i < peer->to.count; i++)
        alone += measure_bandwidth(&calibration->traffic, peer->rank, UINT32_C(1) << i);
    double together = measure_bandwidth(&calibration->traffic, peer->rank, 0);
    printf("\nall lanes at %s together: %.3g GB/s, alone in sum %.3g GB/s\n", name, together / 1e9,
           alone / 1e9);
    if (!(together > 0) || together > 0.9 * alone)
        return;
    struct model_group *group = lane_file_group(profile, profile->group_count, name);
    group->bandwidth_bytes_s = together;
    for (uint32_t i = 0; i < profile->lane_count; i++) {
        const char *at = strrchr(profile->lanes[i].name, '@');
        if (at && strcmp(at + 1, name) == 0)
            profile->lanes[i].group = group->id;
    }
}

/* --- the whole -------------------------------------------------------------------------------- */

static void measure_all(struct calibration *calibration)
{
    struct placed_peer *peers = calloc(PROFILE_PLACEMENTS, sizeof(*peers));
    int count = peers ? placed_peers_find(&calibration->traffic, peers) : 0;
    double lanes = 0, seconds = calibration->options.effort.seconds;
    for (int i = 0; i < count; i++)
        lanes += peers[i].to.count;
    for (int i = 0; i < count; i++)
        for (uint32_t j = 0; j < peers[i].to.count; j++)
            lane_measure(calibration, &peers[i], j, seconds / lanes);
    for (int i = 0; i < count; i++)
        together_measure(calibration, &peers[i]);
    free(peers);
}

static void profile_stamp(struct calibration *calibration)
{
    struct lane_file_profile *profile = &calibration->profile.profile;
    time_t now = time(NULL);
    struct tm when;
    calibration->profile.has_profile = true;
    profile->schema = LANE_FILE_SCHEMA;
    if (gmtime_r(&now, &when))
        strftime(profile->made, sizeof(profile->made), "%Y-%m-%d %H:%M UTC", &when);
    fingerprint_take(calibration->traffic.pml->open_mpi, &profile->machine);
}

/* Where the profile goes; asked before anything is measured. */
static bool profile_place(struct calibration *calibration)
{
    const struct options *options = &calibration->options;
    char *path = calibration->path;
    struct error_text error;
    if (options->output && strlen(options->output) >= PROFILE_PATH_CHARS) {
        complain("--output", ": this name is too long");
        return false;
    }
    if (options->output)
        snprintf(path, PROFILE_PATH_CHARS, "%s", options->output);
    else
        profile_path(options->site ? PROFILE_OF_SITE : PROFILE_OF_USER, MULTILANE_SITE_DIR,
                     &calibration->profile.profile.machine, path);
    if (!path[0]) {
        complain("neither XDG_CACHE_HOME nor HOME names a folder for the profile; give one by "
                 "--output FILE",
                 "");
        return false;
    }
    if (profile_can_write(path, &error))
        return true;
    complain(error.text, "; give another place by --output FILE");
    return false;
}

/* A busy machine is no error of the job: an exit status that says so would bring mpirun's long text
 * about a failed process in place of this one. */
static void unsteady_explain(void)
{
    double load = 0;
    (void) getloadavg(&load, 1);
    fprintf(stderr,
            "multilane-calibrate: no profile was written, because no lane could be measured "
            "steadily: what is wrong with each stands above, and the load is %.1f on %ld "
            "processors. Something else ran meanwhile, or the ranks had no processor of their own. "
            "Run it again when the machine is idle, with --bind-to core for mpirun. Until then "
            "jobs measure what they need when they start.\n",
            load, sysconf(_SC_NPROCESSORS_ONLN));
}

static int profile_save(struct calibration *calibration)
{
    struct error_text error;
    if (!calibration->profile.lane_count) {
        unsteady_explain();
        return EXIT_SUCCESS;
    }
    if (!profile_write(calibration->path, &calibration->profile, &error))
        return complain(error.text, "; give another place by --output FILE");
    printf("\nprofile: %s\n", calibration->path);
    return EXIT_SUCCESS;
}

static int calibrate(struct calibration *calibration)
{
    struct plan_input defaults;
    plan_input_init(&defaults);
    calibration->around = defaults.around;
    calibration->traffic.pml->surroundings(&calibration->around);
    lane_file_init(&calibration->profile);
    calibration->profile.around = calibration->around;
    profile_stamp(calibration);
    if (!calibration->options.no_write && !profile_place(calibration))
        return EXIT_FAILED;
    measure_all(calibration);
    return calibration->options.no_write ? EXIT_SUCCESS : profile_save(calibration);
}

/* Null: this job does not run the Multilane that this program belongs to. */
static const struct multilane_measure *interface_find(void)
{
    const struct multilane_measure *found = dlsym(RTLD_DEFAULT, MULTILANE_MEASURE_SYMBOL);
    return found && found->version == MULTILANE_MEASURE_VERSION &&
                   found->lane_bytes == sizeof(struct model_lane)
               ? found
               : NULL;
}

/* Why nothing can be measured in this job; null: it can. */
static const char *refuse(const struct traffic *traffic)
{
    struct multilane_lanes lanes;
    if (traffic->ranks < 2)
        return "it takes two ranks: mpirun -n 2";
    if (!traffic->pml)
        return "this job does not run the Multilane that this program belongs to; start it with "
               "--mca pml multilane, and see that its components are found "
               "(share/multilane/env.sh)";
    /* The component may be loaded and another one selected. */
    if (traffic->pml->lanes(traffic->rank ? 0 : 1, &lanes) != 0)
        return "no lane leads to the other ranks; is --mca pml another one than multilane?";
    return NULL;
}

static void lanes_list(const struct traffic *traffic)
{
    struct multilane_lanes to;
    for (int rank = 1; rank < traffic->ranks; rank++)
        for (uint32_t i = 0; traffic->pml->lanes(rank, &to) == 0 && i < to.count; i++)
            printf("lane %s to rank %d (%s)\n", to.lanes[i].name, rank,
                   profile_placement_name(to.placement));
}

int main(int argc, char **argv)
{
    static struct calibration calibration;
    struct traffic *traffic = &calibration.traffic;
    struct error_text error;
    int status = EXIT_SUCCESS;
    setenv("OMPI_MCA_pml", "multilane", 0);
    bool is_good = read_options(argc, argv, &calibration.options, &error);
    if (calibration.options.job)
        job_lanes_prepare();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &traffic->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &traffic->ranks);
    traffic->pml = interface_find();
    const char *reason = is_good ? refuse(traffic) : error.text;
    if (reason) {
        if (traffic->rank == 0)
            fprintf(stderr, "multilane-%s: %s\n",
                    calibration.options.job ? "doctor --job" : "calibrate", reason);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    if (calibration.options.lanes) {
        if (traffic->rank == 0)
            lanes_list(traffic);
        MPI_Finalize();
        return EXIT_SUCCESS;
    }
    if (!traffic_begin(traffic,
                       calibration.options.job ? LANE_TEST_BYTES
                                               : calibration.options.effort.largest_bytes,
                       &error)) {
        complain(error.text, "");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    }
    if (calibration.options.job) {
        status = job_lanes_test(traffic) ? EXIT_SUCCESS : EXIT_FAILED;
    } else if (MPI_Barrier(MPI_COMM_WORLD), traffic->rank == 0) {
        status = calibrate(&calibration);
        traffic_dismiss(traffic);
    } else {
        traffic_obey(traffic);
    }
    memory_free(traffic->memory, traffic->most_bytes);
    MPI_Finalize();
    return status;
}
