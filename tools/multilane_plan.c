/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-plan: the plan, the threshold equation and the times for lanes described in a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file/whole_file.h"
#include "common/lane/profile.h"
#include "common/model/number.h"
#include "config.h"
#include "plan_report.h"
#include "tools/lane/lane_input.h"
#include "tools/options.h"
#include "tools/replay/replay.h"

#define EXIT_INPUT  2 /* the file or the command line cannot be used */
#define EXIT_OUTPUT 1 /* the result could not be written */

#define SIZES_MAX 64
#define NOT_GIVEN UINT32_MAX

struct options {
    const char *file;
    const char *replay;
    bool equation, verbose, json;
    bool every_lane, stream, sync, registered;
    bool is_profile, same_node;
    uint32_t ranks;
    double bias;                      /* below 0: the file's, and */
    uint32_t eager_lanes, rndv_lanes; /* NOT_GIVEN: the file's */
    struct model_buffer buffer;
    struct plan_override overrides[PLAN_OVERRIDES_MAX];
    uint32_t override_count;
    uint64_t sizes[SIZES_MAX];
    uint32_t size_count;
};

static const char *version = "multilane-plan " PACKAGE_VERSION "\n";
static const char *usage =
    "Usage: multilane-plan [OPTION]... FILE\n"
    "Prints which protocol carries which message size over the lanes that FILE describes.\n"
    "\n"
    "  --equation           print the sizes that the threshold equation gives instead\n"
    "  --predict SIZE...    print times by protocol and stage for these sizes instead\n"
    "  --replay FOLDER      print what the job recorded there takes over the lanes instead\n"
    "  --json               print for programs\n"
    "  --verbose            print the values of every term, and where attributes come from\n"
    "\n"
    "  --profile            FILE is a profile: print the plans of a job for each placement in it\n"
    "  --ranks N            processes of each node that share its devices; with --replay, so many\n"
    "                       ranks are on each node, one after the other\n"
    "  --same-node          the peer is on the same node, reached through the same devices\n"
    "  --stream             plan for a stream of messages: the slowest stage counts most\n"
    "  --sync               for synchronous sends\n"
    "  --memory KIND        the buffer is in host, cuda or managed memory\n"
    "  --pieces N           the buffer is in N pieces (0: many)\n"
    "  --registered         the buffer is in the lanes' registration caches\n"
    "  --protocol LIST      NAME or NAME:LO-HI,...: force protocols, as pml_multilane_protocol "
    "does\n"
    "  --eager-lanes N, --rndv-lanes N\n"
    "                       most lanes that a message uses (0: as many as pay)\n"
    "  --every-lane         use all lanes, not as many as pay\n"
    "  --bias D             d of the equation, instead of the file's\n"
    "  --help, --version\n"
    "\n"
    "FILE - is standard input. Exit status: 0, 1 if the result cannot be written, 2 if FILE or an\n"
    "option cannot be used. man multilane-plan describes the file.\n";

/* --- options ---------------------------------------------------------------------------------- */

static bool read_memory(const char *value, void *buffer, struct error_text *why)
{
    int bit = model_memory_find(value);
    ((struct model_buffer *) buffer)->memory = (enum model_memory)(1 << bit);
    return bit < MODEL_MEMORIES || fail_with(why, "it is host, cuda or managed");
}

static bool read_protocol(const char *value, void *options, struct error_text *why)
{
    struct options *out = options;
    return plan_overrides_parse(value, out->overrides, &out->override_count, why);
}

static bool read_size(const char *value, void *options, struct error_text *why)
{
    struct options *out = options;
    if (out->size_count == SIZES_MAX)
        return fail_with(why, "%d sizes are too many", SIZES_MAX);
    if (!number_parse_size(value, &out->sizes[out->size_count], why))
        return false;
    out->size_count++;
    return true;
}

static bool read_options(int argc, char **argv, struct options *options, struct error_text *error)
{
    const struct option_row rows[] = {{"equation", OPTION_FLAG, &options->equation, NULL},
                                      {"predict", OPTION_SEVERAL, options, read_size},
                                      {"replay", OPTION_TEXT, &options->replay, NULL},
                                      {"json", OPTION_FLAG, &options->json, NULL},
                                      {"verbose", OPTION_FLAG, &options->verbose, NULL},
                                      {"profile", OPTION_FLAG, &options->is_profile, NULL},
                                      {"ranks", OPTION_COUNT, &options->ranks, NULL},
                                      {"same-node", OPTION_FLAG, &options->same_node, NULL},
                                      {"stream", OPTION_FLAG, &options->stream, NULL},
                                      {"sync", OPTION_FLAG, &options->sync, NULL},
                                      {"memory", OPTION_OWN, &options->buffer, read_memory},
                                      {"pieces", OPTION_COUNT, &options->buffer.pieces, NULL},
                                      {"registered", OPTION_FLAG, &options->registered, NULL},
                                      {"protocol", OPTION_OWN, options, read_protocol},
                                      {"eager-lanes", OPTION_COUNT, &options->eager_lanes, NULL},
                                      {"rndv-lanes", OPTION_COUNT, &options->rndv_lanes, NULL},
                                      {"every-lane", OPTION_FLAG, &options->every_lane, NULL},
                                      {"bias", OPTION_REAL, &options->bias, NULL},
                                      {"help", OPTION_PRINT, &usage, NULL},
                                      {"version", OPTION_PRINT, &version, NULL},
                                      {.name = NULL}};
    *options = (struct options){.buffer = {.memory = MODEL_MEMORY_HOST, .pieces = 1},
                                .bias = -1,
                                .eager_lanes = NOT_GIVEN,
                                .rndv_lanes = NOT_GIVEN};
    int first = options_read(argc, argv, rows, error);
    if (first < 0)
        return false;
    if (first == argc)
        return fail_with(error, "a FILE is missing; --help says how it is called");
    options->file = argv[first];
    return first + 1 == argc || fail_with(error, "one FILE at a time, not %.100s and %.100s",
                                          argv[first], argv[first + 1]);
}

/* --- work ------------------------------------------------------------------------------------- */

static void fill_input(const struct options *options, const struct lane_file *file,
                       struct plan_input *input)
{
    plan_input_init(input);
    input->around = file->around;
    input->around.groups = (struct model_groups){file->groups, file->group_count};
    input->around.buffer = options->buffer;
    input->around.registration_cached |= options->registered;
    if (options->sync)
        input->around.operation = MODEL_OPERATION_SEND_SYNC;
    if (options->bias >= 0)
        input->around.bias = options->bias;
    input->lanes = file->lanes;
    input->lane_count = file->lane_count;
    input->view = options->stream ? COST_OF_STREAM : COST_OF_MESSAGE;
    input->overrides = options->overrides;
    input->override_count = options->override_count;
    input->every_lane = options->every_lane;
    input->most_eager_lanes =
        options->eager_lanes != NOT_GIVEN ? options->eager_lanes : file->most_eager_lanes;
    input->most_rndv_lanes =
        options->rndv_lanes != NOT_GIVEN ? options->rndv_lanes : file->most_rndv_lanes;
}

static void lanes_share(struct model_lane *lanes, uint32_t count, struct model_sharers sharers)
{
    for (uint32_t i = 0; i < count; i++)
        model_lane_share(&lanes[i], sharers);
}

static int written(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return EXIT_SUCCESS;
    fprintf(stderr, "multilane-plan: standard output cannot be written\n");
    return EXIT_OUTPUT;
}

/* The plan, unless something else was asked for. */
static int write_report(const struct options *options, const struct plan_report *report)
{
    if (options->json)
        plan_json(stdout, report);
    if (options->equation && !options->json)
        plan_text_equations(stdout, report);
    if (options->size_count && !options->json)
        plan_text_predictions(stdout, report);
    if (!options->equation && !options->size_count && !options->json)
        plan_text_plan(stdout, report);
    return written();
}

static int fail_input(const struct error_text *error)
{
    fprintf(stderr, "multilane-plan: %s\n", error->text);
    return EXIT_INPUT;
}

static int fail_file(const char *name, const struct error_text *error)
{
    fprintf(stderr, "multilane-plan: %s: %s\n", whole_file_input_name(name), error->text);
    return EXIT_INPUT;
}

static int run(const struct options *options, const struct lane_file *file,
               const struct cluster_model *cluster)
{
    static struct equation_range ranges[EQUATION_RANGES_MAX];
    struct error_text error;
    struct plan_input input;
    fill_input(options, file, &input);
    struct plan_report report = {.file = file,
                                 .cluster = cluster,
                                 .input = &input,
                                 .verbose = options->verbose,
                                 .sizes = options->sizes,
                                 .size_count = options->size_count,
                                 .ranges = ranges};
    if (options->equation && !plan_report_equations(&report, &error))
        return fail_file(options->file, &error);
    struct plan *plan = NULL;
    if (!options->equation || options->size_count) {
        plan = plan_build(&input, &error);
        if (!plan)
            return fail_file(options->file, &error);
        report.plan = plan;
    }
    int status = write_report(options, &report);
    plan_free(plan);
    return status;
}

/* The lanes of peers there; none may be left. */
static void lanes_place(const struct lane_file *file, enum profile_placement placement,
                        struct lane_file *placed)
{
    *placed = *file;
    placed->lane_count = profile_lanes(file, placement, placed->lanes, &placed->groups[0]);
    placed->group_count = 1;
}

/* For each placement what a job does toward its peers there. */
static int run_placements(const struct options *options, const struct lane_file *file,
                          const struct cluster_model *cluster)
{
    static struct lane_file placed;
    struct error_text error;
    int status = EXIT_SUCCESS;
    bool any = false;
    for (int i = 0; i < PROFILE_PLACEMENTS && status == EXIT_SUCCESS; i++) {
        enum profile_placement placement = (enum profile_placement) i;
        lanes_place(file, placement, &placed);
        if (!placed.lane_count)
            continue;
        any = true;
        lanes_share(placed.lanes, placed.lane_count,
                    (struct model_sharers){options->ranks, placement != PROFILE_HOST});
        printf("peers at %s: ", profile_placement_name(placement));
        status = run(options, &placed, cluster);
    }
    if (!any)
        fail_with(&error, "it has no lane of a placement, so it is no profile");
    return any ? status : fail_file(options->file, &error);
}

/* --- a recorded job --------------------------------------------------------------------------- */

/* Plans for one message and for a stream. */
static bool lanes_plan(const struct options *options, const struct lane_file *file,
                       enum replay_place place, struct replay_lanes *lanes,
                       struct error_text *error)
{
    struct plan_input *input = &lanes->input[place];
    fill_input(options, file, input);
    for (int view = 0; view < 2 && file->lane_count; view++) {
        input->view = (enum cost_view) view;
        if (!(lanes->plan[place][view] = plan_build(input, error)))
            return false;
    }
    return true;
}

static int run_replay(const struct options *options, const struct lane_file *file)
{
    static struct lane_file placed[REPLAY_PLACES];
    static struct replay_lanes lanes;
    struct recording recording;
    struct replay_result result = {.ranks = NULL};
    struct error_text error;
    bool is_good = true, is_placed = false;
    if (!recording_load(options->replay, &recording, &error))
        return fail_input(&error);
    lanes.is_profile = file->has_profile;
    lanes.ranks_a_node = options->ranks;
    for (uint32_t i = 0; i < file->lane_count; i++)
        is_placed = is_placed || strchr(file->lanes[i].name, '@');
    for (int i = 0; i < REPLAY_PLACES && is_good; i++) {
        placed[i] = *file;
        if (is_placed) /* as in a profile */
            lanes_place(file, i == REPLAY_BETWEEN ? PROFILE_HOST : PROFILE_NODE, &placed[i]);
        if (!placed[i].lane_count && i == REPLAY_IN_NODE)
            lanes_place(file, PROFILE_CACHE, &placed[i]);
        is_good = lanes_plan(options, &placed[i], (enum replay_place) i, &lanes, &error);
    }
    is_good = is_good && replay_run(&recording, &lanes, &result, &error);
    if (is_good)
        (options->json ? replay_json : replay_text)(stdout, &recording, &result);
    for (int i = 0; i < REPLAY_PLACES * 2; i++)
        plan_free(lanes.plan[i / 2][i % 2]);
    replay_free(&result);
    recording_free(&recording);
    return is_good ? written() : fail_file(options->file, &error);
}

int main(int argc, char **argv)
{
    static struct lane_file file;
    static struct cluster_model cluster;
    struct options options;
    struct error_text error;
    if (!read_options(argc, argv, &options, &error) ||
        !lane_input_read(options.file, &file, &cluster, &error))
        return fail_input(&error);
    if (options.replay)
        return run_replay(&options, &file);
    if (options.is_profile && options.json) {
        fail_with(&error, "--profile prints several plans, and --json one object");
        return fail_input(&error);
    }
    if (options.is_profile)
        return run_placements(&options, &file, &cluster);
    lanes_share(file.lanes, file.lane_count,
                (struct model_sharers){options.ranks, options.same_node});
    return run(&options, &file, &cluster);
}
