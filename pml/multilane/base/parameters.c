/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of parameters, and what each may be; and the state that all parts share. */
#include "base/parameters.h"

#include "base/multilane.h"

#include "common/lane/attr.h"
#include "common/memory/kernels.h"
#include "common/model/number.h"

#define UNEXPECTED_MAX_DEFAULT (UINT64_C(256) << 20) /* what the text below says */

struct multilane multilane;

struct parameters parameters = {
    .protocol = "auto",
    .rndv_bias = "0.99",
    .eager_max = "auto",
    .unexpected_max = "256m",
    .queued_max = "1m",
    .failover = 1,
    .suspect_ms = 1000,
    .lost_s = 60,
    .wait = {.text = "auto"},
    .profile = "auto",
    .learn = 1,
    .blackbox = "",
    .record = "",
    .device_code = "auto",
    .device_measure_ms = 5,
    .bias = MODEL_BIAS_DEFAULT,
    .unexpected_max_bytes = UNEXPECTED_MAX_DEFAULT,
};

static const struct param rows[] = {
    {"explain", PARAM_INT, &parameters.explain, "0 to 2",
     "1: at finalize, rank 0 prints the plans it used and how often; 2: every rank does, with the "
     "terms of each switch"},
    {"explain_file", PARAM_STRING, &parameters.explain_file, NULL,
     "where explain writes instead of the standard error; JSON if the name ends in .json; with "
     "explain 2 each rank's file is NAME.RANK or NAME.RANK.json"},
    {"protocol", PARAM_STRING, &parameters.protocol, NULL,
     "auto, a protocol's name, or NAME:LO-HI,... with sizes in bytes (k, m, g, inf)"},
    {"rndv_bias", PARAM_STRING, &parameters.rndv_bias, NULL,
     "what a rendezvous protocol's predicted time is multiplied by; below 1 favours it"},
    {"eager_max", PARAM_STRING, &parameters.eager_max, NULL,
     "largest message that is sent before its receiver asks for it (k, m, g); auto: what a "
     "receiver promises to keep, by unexpected_max"},
    {"eager_lanes", PARAM_INT, &parameters.eager_lanes, "0 or more",
     "most lanes that an eager message uses; 0: as many as pay"},
    {"rndv_lanes", PARAM_INT, &parameters.rndv_lanes, "0 or more",
     "most lanes that a rendezvous message uses; 0: as many as pay"},
    {"unexpected_max", PARAM_STRING, &parameters.unexpected_max, NULL,
     "bytes of eager data without a receive that this process will hold (k, m, g)"},
    {"queued_max", PARAM_STRING, &parameters.queued_max, NULL,
     "bytes of copies of messages to one peer that no lane has handed over yet (k, m, g); beyond "
     "it sends wait in their own memory"},
    {"failover", PARAM_INT, &parameters.failover, "0 to 1",
     "1: go on over the other lanes when one of sock or verbs is lost, or over the only one of "
     "verbs once it is connected anew; 0: do not"},
    {"suspect_ms", PARAM_INT, &parameters.suspect_ms, "1 or more",
     "milliseconds of silence after which a lane is suspect"},
    {"lost_s", PARAM_INT, &parameters.lost_s, "1 or more",
     "seconds of silence on every lane after which a peer counts as lost, unless the kernel or a "
     "device knows by one of its lanes that it lives"},
    {"hang_s", PARAM_INT, &parameters.hang_s, "0 or more",
     "seconds in one wait after which a rank says once, on the standard error, what it waits for; "
     "0: never"},
    {"blackbox", PARAM_STRING, &parameters.blackbox, NULL,
     "a folder: each rank keeps its waits and its last 4096 calls in a file there, which stays if "
     "the rank ends before MPI_Finalize is over (multilane-top --read FOLDER); empty: none"},
    {"record", PARAM_STRING, &parameters.record, NULL,
     "a folder: each rank records its messages in a file there, up to 256 MiB "
     "(multilane-plan --replay FOLDER); empty: none"},
    {"verify", PARAM_INT, &parameters.verify, "0 to 1",
     "1: each message, get and put has a sum that its receiver checks, and comes again where that "
     "is wrong; the same in all processes"},
    {"lane_attr", PARAM_STRING, &parameters.lane_attr, NULL,
     "attributes of lanes: BTL[:device]:key=value,... in seconds and bytes a second"},
    {"progress_thread", PARAM_INT, &parameters.progress_thread, "0 to 1",
     "1: a thread moves messages on while the program computes"},
    {"wait", PARAM_WORD, &parameters.wait, "auto, spin or sleep",
     "how a call waits: spin; sleep, after a short look, until something arrives; auto: sleep "
     "where processes of the job outnumber the processors that they may use, or where Open MPI "
     "yields, else spin"},
    {"learn", PARAM_INT, &parameters.learn, "0 to 1",
     "1: plans follow what messages take, but for those within a node whose processors are "
     "short; 0: the first plan stays"},
    {"profile", PARAM_STRING, &parameters.profile, NULL,
     "measured attributes: auto, none, or a file"},
    {"device_code", PARAM_STRING, &parameters.device_code, NULL,
     "the kernel that packs device memory: auto, the one that Multilane was built with; none; "
     "or a file with such code"},
    {"device_measure_ms", PARAM_INT, &parameters.device_measure_ms, "0 or more",
     "milliseconds that a process may measure a device for, at its first buffer there; 0: none"},
    {"untested", PARAM_INT, &parameters.untested, "0 to 1",
     "1: say nothing where the running release of Open MPI was not checked, and try even another "
     "series or a pre-release; sizes of structures must agree all the same"},
    {.name = NULL}};

int parameters_register(const mca_base_component_t *component)
{
    return param_register(component, rows);
}

int parameters_register_shown(const mca_base_component_t *component)
{
    static const struct param shown[] = {
        {"profile_used", PARAM_SHOWN, &parameters.profile_used, NULL,
         "which measurements this Multilane uses here"},
        {"switch_points", PARAM_SHOWN, &parameters.switch_points, NULL,
         "what carries which message size over each lane of this machine alone, sizes in bytes: by "
         "the profile, or by what lanes declare"},
        {"device_code_off", PARAM_SHOWN, &parameters.device_code_off, NULL,
         "why no kernel packs device memory here, which is copied piece by piece instead; empty "
         "where one may"},
        {.name = NULL}};
    return param_register(component, shown);
}

static int refuse(const char *name, const char *value, const char *why)
{
    opal_output(0, "pml_multilane_%s is \"%s\": %s.", name, value ? value : "", why);
    return OMPI_ERR_BAD_PARAM;
}

static bool parse_bias(struct error_text *why)
{
    return number_parse_real(parameters.rndv_bias, &parameters.bias, why) &&
           ((parameters.bias > 0 && parameters.bias <= MODEL_BIAS_MAX) ||
            fail_with(why, "it must be above 0 and at most 100"));
}

/* A size above 0; auto: 0. */
static bool parse_eager_max(struct error_text *why)
{
    uint64_t *bytes = &parameters.eager_max_bytes;
    *bytes = 0;
    return strcmp(parameters.eager_max, "auto") == 0 ||
           (number_parse_size(parameters.eager_max, bytes, why) &&
            (*bytes > 0 || fail_with(why, "it must be above 0")));
}

static bool parse_unexpected_max(struct error_text *why)
{
    return number_parse_size(parameters.unexpected_max, &parameters.unexpected_max_bytes, why);
}

void parameters_expect(void)
{
    struct error_text why;
    if (!parse_bias(&why))
        parameters.bias = MODEL_BIAS_DEFAULT;
    if (!parse_eager_max(&why))
        parameters.eager_max_bytes = 0;
    if (!parse_unexpected_max(&why))
        parameters.unexpected_max_bytes = UNEXPECTED_MAX_DEFAULT;
}

int parameters_parse(const mca_base_component_t *component)
{
    struct error_text error;
    if (!param_check(component, rows))
        return OMPI_ERR_BAD_PARAM;
    if (!parse_bias(&error))
        return refuse("rndv_bias", parameters.rndv_bias, error.text);
    if (!parse_eager_max(&error))
        return refuse("eager_max", parameters.eager_max, error.text);
    if (!parse_unexpected_max(&error))
        return refuse("unexpected_max", parameters.unexpected_max, error.text);
    if (!number_parse_size(parameters.queued_max, &parameters.queued_max_bytes, &error))
        return refuse("queued_max", parameters.queued_max, error.text);
    if (!plan_overrides_parse(parameters.protocol, parameters.overrides, &parameters.override_count,
                              &error))
        return refuse("protocol", parameters.protocol, error.text);
    if (!attr_check(parameters.lane_attr, &error))
        return refuse("lane_attr", parameters.lane_attr, error.text);
    if (parameters.verify)
        parameters.sums = SUMS_OF_ALL;
    else if (parameters.lane_attr && strstr(parameters.lane_attr, "verify="))
        parameters.sums = SUMS_OF_SOME;
    if (!kernels_choose(parameters.device_code, &error))
        return refuse("device_code", parameters.device_code, error.text);
    return OMPI_SUCCESS;
}
