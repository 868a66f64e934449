/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-calibrate: measures the lanes between two processes and writes what it found as this
 * machine's profile. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "device.h"
#include "load.h"
#include "report.h"
#include "tools/lane/profile_write.h"
#include "tools/options.h"

#define EXIT_USAGE  2
#define EXIT_FAILED 1 /* something could not be allocated or written */

static const char usage[] =
    "usage: mpirun -n 2 multilane-calibrate [OPTION]...\n"
    "Measures the lanes between rank 0 and other ranks and writes a profile of this machine, "
    "which\n"
    "jobs then find by themselves. More ranks and hosts: one peer for every placement is "
    "measured.\n"
    "  --quick           about 5 s, messages up to 16 MiB\n"
    "  --thorough        about 2 minutes; the default takes about 30 s\n"
    "  --output FILE     write the profile there instead of the user's cache folder\n"
    "  --site            write it to the folder of the site\n"
    "  --no-write        write none\n"
    "  --plot FILE.svg   draw what was measured and what was made of it\n"
    "  --device          measure device memory too: mpirun -n 2, or a rank for each device\n"
    "  --lanes           only list the lanes, as multilane-doctor does\n"
    "  --help, --version\n"
    "Which lanes there are is said by Open MPI's --mca btl.\n";

struct options {
    struct effort effort;
    const char *output, *plot;
    bool site, no_write, device, lanes, help, version;
};

static const struct effort efforts[] = {
    {30, 5, UINT64_C(64) << 20}, {5, 3, UINT64_C(16) << 20}, {120, 9, UINT64_C(64) << 20}};

static bool read_options(int argc, char **argv, struct options *options, struct model_error *error)
{
    bool quick = false, thorough = false;
    const struct option_row rows[] = {{"quick", OPTION_FLAG, &quick, NULL, NULL},
                                      {"thorough", OPTION_FLAG, &thorough, NULL, NULL},
                                      {"output", OPTION_TEXT, &options->output, NULL, NULL},
                                      {"site", OPTION_FLAG, &options->site, NULL, NULL},
                                      {"no-write", OPTION_FLAG, &options->no_write, NULL, NULL},
                                      {"plot", OPTION_TEXT, &options->plot, NULL, NULL},
                                      {"device", OPTION_FLAG, &options->device, NULL, NULL},
                                      {"lanes", OPTION_FLAG, &options->lanes, NULL, NULL},
                                      {"help", OPTION_FLAG, &options->help, NULL, NULL},
                                      {"version", OPTION_FLAG, &options->version, NULL, NULL},
                                      {.name = NULL}};
    int first = options_read(argc, argv, rows, error);
    options->effort = efforts[quick ? 1 : thorough ? 2 : 0];
    return first >= 0 &&
           (first == argc || model_fail(error, "it takes no argument %.60s", argv[first]));
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "multilane-calibrate: %s%s\n", what, why);
    return EXIT_FAILED;
}

/* --- progress --------------------------------------------------------------------------------- */

static struct {
    const char *what;
    double part_begin, part_end; /* of the whole, of what runs now */
    bool is_terminal;
} progress;

static void progress_show(double part, const char *what)
{
    static int shown = -1;
    double whole = progress.part_begin + part * (progress.part_end - progress.part_begin);
    int now = (int) (whole * 40);
    if (what)
        progress.what = what;
    if (!progress.is_terminal || (now == shown && !what))
        return;
    shown = now;
    fprintf(stderr, "\r[%-40.*s] %3.0f %% %-24.24s", now,
            "########################################", whole * 100,
            progress.what ? progress.what : "");
    if (part >= 1 && progress.part_end >= 1)
        fprintf(stderr, "\r%-76s\r", "");
    fflush(stderr);
}

/* --- what is measured ------------------------------------------------------------------------- */

#define RESULTS_MAX MODEL_LANES_MAX

struct calibration {
    struct session session;
    struct options options;
    struct model_surroundings around;
    struct lane_file profile;
    struct cluster_model cluster; /* where profile.has_cluster */
    struct lane_result *results;
    uint32_t result_count;
    struct measure_broadcasts broadcasts; /* among all ranks, beside the profile's cluster model */
    struct device_result device;
    char path[PROFILE_PATH_CHARS]; /* of the profile */
};

struct placed_peer {
    int rank;
    enum profile_placement placement;
    struct model_lane lanes[MODEL_LANES_MAX];
    uint32_t lane_count;
};

/* One peer for each placement: the first rank that is there. */
static int placed_peers_find(const struct session *session,
                             struct placed_peer peers[PROFILE_PLACEMENTS])
{
    int count = 0;
    for (int rank = 1; rank < session->ranks; rank++) {
        struct placed_peer *peer = &peers[count];
        bool is_new = true;
        peer->rank = rank;
        peer->lane_count = MODEL_LANES_MAX;
        if (session->pml->lanes(rank, peer->lanes, &peer->lane_count, &peer->placement) != 0)
            continue;
        for (int i = 0; i < count; i++)
            is_new = is_new && peers[i].placement != peer->placement;
        count += is_new && count < PROFILE_PLACEMENTS;
        if (count == PROFILE_PLACEMENTS)
            break;
    }
    return count;
}

static void lane_fit(struct calibration *calibration, double most_residual,
                     struct lane_result *result)
{
    result->fitted = effective_fit(result->samples.curves, &calibration->around, most_residual,
                                   &result->lane, &result->why);
    for (uint32_t i = 0; result->fitted && i < MODEL_PROTOCOLS; i++)
        effective_judge(&result->lane, &calibration->around, i, &result->samples.curves[i],
                        &result->quality[i]);
}

/* Where something else ran meanwhile, or the processors were moved, no line fits: so often a lane
 * is measured before it is given up. */
#define ATTEMPTS 3

/* Modules of a BTL that does not name its devices have one name, and a profile one entry for it. */
static bool was_measured(const struct calibration *calibration, const char *name)
{
    for (uint32_t i = 0; i < calibration->result_count; i++)
        if (strcmp(calibration->results[i].lane.name, name) == 0)
            return true;
    return false;
}

static void lane_measure(struct calibration *calibration, const struct placed_peer *peer,
                         uint32_t index, double seconds)
{
    char name[sizeof(peer->lanes[0].name)];
    struct lane_result *result = &calibration->results[calibration->result_count];
    if (calibration->result_count == RESULTS_MAX) {
        complain(peer->lanes[index].name, ": a profile holds 16 lanes; this one is left out");
        return;
    }
    result->lane = peer->lanes[index];
    result->lane.group = 0;
    snprintf(name, sizeof(name), "%s", result->lane.name);
    snprintf(result->lane.name, sizeof(result->lane.name), "%.32s@%s", name,
             profile_placement_name(peer->placement));
    if (was_measured(calibration, result->lane.name)) {
        complain(result->lane.name, ": several lanes have this name; the first one was measured");
        return;
    }
    progress_show(0, result->lane.name);
    measure_registration(&calibration->session, peer->rank, index, &result->lane);
    for (int attempt = 0; attempt < ATTEMPTS && !result->fitted; attempt++) {
        if (attempt)
            progress_show(0, "once more, it was unsteady");
        measure_lane(&calibration->session, peer->rank, index, &calibration->options.effort,
                     seconds, progress_show, &result->samples);
        lane_fit(calibration,
                 attempt + 1 < ATTEMPTS ? EFFECTIVE_RESIDUAL_GOOD : EFFECTIVE_RESIDUAL_MOST,
                 result);
    }
    calibration->result_count++;
    if (result->fitted) {
        calibration->profile.lanes[calibration->profile.lane_count++] = result->lane;
    } else {
        complain(result->lane.name, ": left out of the profile:");
        complain("  ", result->why.text);
    }
}

/* All lanes at once: a group where they do not add up. */
static void together_measure(struct calibration *calibration, const struct placed_peer *peer)
{
    struct lane_file *profile = &calibration->profile;
    double alone = 0;
    const char *name = profile_placement_name(peer->placement);
    if (peer->lane_count < 2)
        return;
    for (uint32_t i = 0; i < peer->lane_count; i++)
        alone += measure_bandwidth(&calibration->session, peer->rank, UINT32_C(1) << i,
                                   &calibration->options.effort);
    double together =
        measure_bandwidth(&calibration->session, peer->rank, 0, &calibration->options.effort);
    printf("\nall lanes at %s together: %.3g GB/s, alone in sum %.3g GB/s\n", name, together / 1e9,
           alone / 1e9);
    if (!(together > 0) || together > 0.9 * alone ||
        profile->group_name_count == LANE_FILE_GROUPS_MAX)
        return;
    uint32_t id = ++profile->group_name_count;
    snprintf(profile->group_names[id - 1].name, sizeof(profile->group_names[0].name), "%s", name);
    profile->group_names[id - 1].measured = true;
    profile->groups[profile->group_count++] = (struct model_group){id, together};
    for (uint32_t i = 0; i < profile->lane_count; i++) {
        const char *at = strrchr(profile->lanes[i].name, '@');
        if (at && strcmp(at + 1, name) == 0)
            profile->lanes[i].group = id;
    }
}

/* What the model says of what it was not made from. */
static void predictions_report(struct calibration *calibration, const struct placed_peer *peer,
                               uint32_t lanes, const struct cluster_model *model)
{
    struct measure_blocks blocks;
    measure_blocks(&calibration->session, peer->rank, lanes, model, &blocks);
    report_blocks(stdout, &blocks);
}

/* Of the lane that control messages of this peer take: the first that can send. */
static void cluster_measure(struct calibration *calibration, const struct placed_peer *peer)
{
    struct cluster_model model;
    struct model_error why;
    for (uint32_t i = 0; i < peer->lane_count; i++) {
        const struct model_lane *lane = &peer->lanes[i];
        uint64_t packet = lane->copied_max_bytes > 2 * calibration->around.header_bytes
                              ? lane->copied_max_bytes - calibration->around.header_bytes
                              : 0;
        if (!(lane->can & MODEL_CAN_SEND) || !packet)
            continue;
        packet = packet < 8192 ? packet : 8192;
        bool is_first = !calibration->profile.has_cluster;
        if (is_first)
            memset(&calibration->broadcasts, 0, sizeof(calibration->broadcasts));
        if (!measure_cluster(&calibration->session, peer->rank, UINT32_C(1) << i, packet, &model,
                             is_first ? &calibration->broadcasts : NULL, &why)) {
            complain("the cluster model is left out: ", why.text);
            continue;
        }
        load_measure(&calibration->session, peer->rank, peer->placement, &model);
        report_cluster(stdout, lane->name, &model);
        predictions_report(calibration, peer, UINT32_C(1) << i, &model);
        if (is_first) {
            calibration->profile.has_cluster = true;
            calibration->cluster = model;
            calibration->cluster.processes = (uint32_t) calibration->session.ranks;
        }
    }
}

static void broadcast_report(struct calibration *calibration)
{
    struct measure_pair pairs[MEASURE_BROADCAST_SIZES];
    if (!calibration->profile.has_cluster)
        return;
    uint32_t count = measure_broadcast_pairs(&calibration->cluster, calibration->cluster.processes,
                                             &calibration->broadcasts, pairs);
    report_pairs(stdout, "binomial broadcast in packets, simulated with the cluster model", pairs,
                 count);
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool is_measured(const struct model_lane *lane)
{
    return strncmp(lane->name, "self", 4) != 0;
}

static void measure_all(struct calibration *calibration)
{
    struct placed_peer *peers = calloc(PROFILE_PLACEMENTS, sizeof(*peers));
    int count = peers ? placed_peers_find(&calibration->session, peers) : 0;
    double lanes = 0, seconds = calibration->options.effort.seconds * 0.8;
    for (int i = 0; i < count; i++)
        for (uint32_t j = 0; j < peers[i].lane_count; j++)
            lanes += is_measured(&peers[i].lanes[j]);
    double done = 0;
    for (int i = 0; i < count; i++)
        for (uint32_t j = 0; j < peers[i].lane_count; j++) {
            if (!is_measured(&peers[i].lanes[j]))
                continue;
            progress.part_begin = 0.8 * done / lanes;
            progress.part_end = 0.8 * (done + 1) / lanes;
            lane_measure(calibration, &peers[i], j, seconds / lanes);
            done++;
        }
    for (uint32_t i = 0; i < calibration->result_count; i++)
        report_lane(stdout, &calibration->results[i], &calibration->around);
    progress.part_begin = 0.8;
    progress.part_end = 1;
    progress_show(0, "all lanes together");
    for (int i = 0; i < count; i++) {
        together_measure(calibration, &peers[i]);
        cluster_measure(calibration, &peers[i]);
    }
    broadcast_report(calibration);
    progress_show(1, "done");
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
    fingerprint_take(calibration->session.pml->open_mpi(), &profile->machine);
}

/* Where the profile goes; asked before anything is measured. */
static bool profile_place(struct calibration *calibration)
{
    const struct options *options = &calibration->options;
    char *path = calibration->path;
    struct model_error error;
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

/* So is where the plot goes. */
static bool plot_place(const char *path)
{
    struct model_error error;
    FILE *file = fopen(path, "ae");
    if (!file) {
        model_fail(&error, "%.120s: cannot be written: %s", path, strerror(errno));
        complain(error.text, "; give another place by --plot FILE.svg");
        return false;
    }
    fclose(file);
    return true;
}

/* A busy machine is no error of the job: an exit status that says so would bring mpirun's long text
 * about a failed process in place of this one. */
static void unsteady_explain(const struct calibration *calibration)
{
    double unsteady = 0, load = 0;
    for (uint32_t i = 0; i < calibration->result_count; i++)
        unsteady = fmax(unsteady, calibration->results[i].samples.unsteady);
    (void) getloadavg(&load, 1);
    fprintf(stderr,
            "multilane-calibrate: no profile was written, because no lane could be measured "
            "steadily: two times of one size differed by %.0f %% in the median, and the load is "
            "%.1f on %ld processors. Something else ran meanwhile, or the ranks had "
            "no processor of their own. Run it again when the machine is idle, with --bind-to core "
            "for mpirun, or with --thorough, which measures longer. Until then jobs use the lanes' "
            "defaults.\n",
            100 * unsteady, load, sysconf(_SC_NPROCESSORS_ONLN));
}

static int profile_save(struct calibration *calibration)
{
    struct model_error error;
    if (!calibration->profile.lane_count) {
        unsteady_explain(calibration);
        return EXIT_SUCCESS;
    }
    if (!profile_write(calibration->path, &calibration->profile, &calibration->cluster, &error))
        return complain(error.text, "; give another place by --output FILE");
    printf("\nprofile: %s\n", calibration->path);
    return EXIT_SUCCESS;
}

static int calibrate(struct calibration *calibration)
{
    struct model_error error;
    struct plan_input defaults;
    int status = EXIT_SUCCESS;
    plan_input_init(&defaults);
    calibration->around = defaults.around;
    calibration->session.pml->surroundings(&calibration->around);
    lane_file_init(&calibration->profile);
    calibration->profile.around = calibration->around;
    profile_stamp(calibration);
    if (!calibration->options.no_write && !profile_place(calibration))
        return EXIT_FAILED;
    if (calibration->options.plot && !plot_place(calibration->options.plot))
        return EXIT_FAILED;
    calibration->results = calloc(RESULTS_MAX, sizeof(*calibration->results));
    if (!calibration->results)
        return complain("no memory for samples", "");
    progress.is_terminal = isatty(2);
    measure_all(calibration);
    if (calibration->options.device)
        device_report(&calibration->device, &calibration->profile);
    if (!calibration->options.no_write)
        status = profile_save(calibration);
    if (calibration->options.plot &&
        !report_plot(calibration->options.plot, calibration->results, calibration->result_count,
                     &calibration->around, &error))
        status = complain(error.text, "");
    free(calibration->results);
    return status;
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
static const char *refuse(const struct session *session)
{
    struct model_lane lanes[MODEL_LANES_MAX];
    enum profile_placement placement;
    uint32_t count = MODEL_LANES_MAX;
    if (session->ranks < 2)
        return "it takes two ranks: mpirun -n 2 multilane-calibrate";
    if (!session->pml)
        return "this job does not run the Multilane that this program belongs to; start it with "
               "--mca pml multilane, and see that its components are found "
               "(share/multilane/env.sh)";
    /* The component may be loaded and another one selected. */
    if (session->pml->lanes(session->rank ? 0 : 1, lanes, &count, &placement) != 0)
        return "no lane leads to the other ranks; is --mca pml another one than multilane?";
    return NULL;
}

static void lanes_list(const struct session *session)
{
    struct model_lane lanes[MODEL_LANES_MAX];
    enum profile_placement placement;
    for (int rank = 1; rank < session->ranks; rank++) {
        uint32_t count = MODEL_LANES_MAX;
        if (session->pml->lanes(rank, lanes, &count, &placement) != 0)
            continue;
        for (uint32_t i = 0; i < count; i++)
            printf("lane %s to rank %d (%s)\n", lanes[i].name, rank,
                   profile_placement_name(placement));
    }
}

int main(int argc, char **argv)
{
    static struct calibration calibration;
    struct session *session = &calibration.session;
    struct model_error error;
    int status = EXIT_SUCCESS;
    setenv("OMPI_MCA_pml", "multilane", 0);
    bool is_good = read_options(argc, argv, &calibration.options, &error);
    bool just_say = calibration.options.help || calibration.options.version;
    if (just_say) {
        fputs(calibration.options.help ? usage : "multilane-calibrate " PACKAGE_VERSION "\n",
              stdout);
        return EXIT_SUCCESS;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &session->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &session->ranks);
    session->pml = interface_find();
    const char *reason = is_good ? refuse(session) : error.text;
    if (reason) {
        if (session->rank == 0)
            fprintf(stderr, "multilane-calibrate: %s\n", reason);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    if (calibration.options.lanes) {
        if (session->rank == 0)
            lanes_list(session);
        MPI_Finalize();
        return EXIT_SUCCESS;
    }
    if (calibration.options.device)
        device_calibrate(&calibration.device);
    if (!session_begin(session, calibration.options.effort.largest_bytes, &error)) {
        complain(error.text, "");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (session->rank == 0) {
        status = calibrate(&calibration);
        session_dismiss(session);
    } else {
        session_obey(session);
    }
    session_end(session);
    MPI_Finalize();
    return status;
}
