/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-top: what the ranks of a job do, which lane carries it, and why nothing goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/model/number.h"
#include "config.h"
#include "tools/options.h"
#include "tools/top/ask.h"
#include "tools/top/find.h"
#include "tools/top/left.h"
#include "tools/top/show.h"

struct options {
    struct choice choice;
    bool why, waited, whole_job;
    bool once, json, prometheus, calls; /* without them: live */
    double interval_s;
    uint64_t count; /* of tables; 0: no end */
    struct view view;
    const char *drain, *restore; /* names of lanes */
    char **files;                /* folders, to read instead of /proc */
    int file_count;
};

#define FIRST_PAUSE_S                                                                              \
    0.3 /* between the two looks of one report: three times what a page is old at most */
#define SECOND_PAUSE_S 0.5 /* before a hang is said to be one, it is looked at once more */

#define EXIT_HUNG    1
#define EXIT_TROUBLE 2

static const char *version = "multilane-top " PACKAGE_VERSION "\n";
static const char *usage =
    "usage: multilane-top [OPTION]... [JOB | PID | --all]\n"
    "What the ranks of an MPI job over Multilane do, on this node. JOB or PID may be the "
    "job's\n"
    "number, the process of a rank, or mpirun's; without one, the only job here.\n\n"
    "  --why            what each rank waits for, and the cause if nothing goes on\n"
    "  --waited         for how long each has waited, for what, and the others for it\n"
    "  --job            of all nodes: asked over the lanes of the job; one table, or with --why\n"
    "  --once           one table, then end\n"
    "  --json           all that is known, for programs; with --why the causes too\n"
    "  --prometheus     metrics in the text format of Prometheus\n"
    "  --interval S     seconds between two tables that follow each other (1)\n"
    "  --count N        so many tables, then end\n"
    "  --sort KEY       rank, since, bytes, queued or unexpected\n"
    "  --waiting        only ranks that wait\n"
    "  --drain LANE     empty the lane in all ranks here: no later message goes over it\n"
    "  --restore LANE   use it again\n"
    "  --read FOLDER... instead of this node's ranks those that died, and left their files there\n"
    "                   (pml_multilane_blackbox)\n"
    "  --calls          the last calls of those, --count N of each rank (10)\n"
    "  --help, --version\n\n"
    "The exit status is 1 where --why found a hang, or where a lane is not empty everywhere, and 2 "
    "where there\nis nothing to see.\n";

static int fail(const char *sentence)
{
    bool asks = *sentence && sentence[strlen(sentence) - 1] == '?';
    fprintf(stderr, "multilane-top: %s%s\n", sentence, asks ? "" : ".");
    return EXIT_TROUBLE;
}

static void pause_s(double seconds)
{
    struct timespec left = {.tv_sec = (time_t) seconds};
    left.tv_nsec = (long) ((seconds - (double) left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* It is not looked at again and again: ranks that have ended, or are asked over their lanes. */
static bool is_still(const struct options *options)
{
    return options->file_count || options->whole_job;
}

/* --- one report ------------------------------------------------------------------------------- */

/* The pages of the whole job once more, beside those before. False: not as many came, as where the
 * job ends. A job that lives and does not answer again is what the first look has shown. */
static bool job_look_again(struct ranks *ranks, const struct options *options)
{
    char job[16];
    const char *number = options->choice.number ? options->choice.number : job;
    const struct choice same = {.number = number};
    struct error_text error;
    struct ranks later = {.list = NULL};
    struct left left = {.list = NULL};
    snprintf(job, sizeof(job), "%u", ranks->list[0].second.page.me.job);
    bool lives = ranks_find_all(&same, &later, &error);
    bool is_good = lives && whole_job_load(number, &later, &left, &error);
    if (lives && !is_good)
        fprintf(stderr, "multilane-top: no second look: %s.\n", error.text);
    for (size_t i = 0; is_good && i < later.count; i++) {
        int before = ranks_find(ranks, &later.list[i].second.page.me);
        if (before >= 0)
            later.list[i].first = ranks->list[before].second;
    }
    bool is_whole = is_good ? later.count >= ranks->count : lives;
    left_free(&left);
    ranks_free(is_good ? ranks : &later);
    if (is_good)
        *ranks = later;
    return is_whole;
}

/* The same hang again? A rank may have been between two waits. */
static bool hang_confirm(struct ranks *ranks, struct why *why, const struct options *options)
{
    if (!why->is_hang || options->file_count)
        return true;
    bool is_sure = true;
    why_free(why);
    pause_s(SECOND_PAUSE_S);
    if (options->whole_job)
        is_sure = job_look_again(ranks, options);
    else
        ranks_look(ranks, false);
    bool is_good = why_find(ranks, why);
    why->is_hang = why->is_hang && is_sure;
    return is_good;
}

static void table(const struct ranks *ranks, const struct why *why, const struct options *options)
{
    if (options->waited)
        show_waited(stdout, ranks, &options->view);
    else
        show_table(stdout, ranks, why, &options->view);
}

static int report(struct ranks *ranks, const struct options *options)
{
    struct why why;
    if (!is_still(options)) {
        pause_s(FIRST_PAUSE_S);
        ranks_look(ranks, false);
    }
    if (!why_find(ranks, &why) || !hang_confirm(ranks, &why, options))
        return fail("no memory");
    if (options->prometheus)
        export_prometheus(stdout, ranks, &why);
    else if (options->json)
        export_json(stdout, ranks, &why, options->why);
    else if (options->why)
        show_why(stdout, ranks, &why);
    else
        table(ranks, &why, options);
    int status = options->why && why.is_hang ? EXIT_HUNG : 0;
    why_free(&why);
    return fflush(stdout) == 0 ? status : fail("cannot write");
}

static int drain(struct ranks *ranks, const struct options *options)
{
    struct error_text error;
    bool is_drain = options->drain != NULL;
    int status = drain_ask(ranks, is_drain ? options->drain : options->restore, is_drain, &error);
    return status < 0 ? fail(error.text) : status;
}

/* --- like top --------------------------------------------------------------------------------- */

static void size_look(struct view *view)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
        return;
    view->columns = size.ws_col;
    view->lines = size.ws_row > 10 ? size.ws_row - 8u : 2;
}

static bool all_gone(const struct ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (ranks->list[i].second.state)
            return false;
    return true;
}

static int live(struct ranks *ranks, struct options *options)
{
    bool is_terminal = isatty(STDOUT_FILENO);
    for (uint64_t shown = 0; !(options->count && shown == options->count); shown++) {
        struct why why;
        pause_s(options->interval_s);
        ranks_look(ranks, true);
        if (!why_find(ranks, &why))
            return fail("no memory");
        if (is_terminal) {
            size_look(&options->view);
            fputs("\033[H\033[J", stdout);
        }
        table(ranks, &why, options);
        if (!is_terminal)
            putchar('\n');
        why_free(&why);
        if (fflush(stdout) != 0)
            return fail("cannot write");
        if (all_gone(ranks)) {
            fprintf(stderr, "multilane-top: all ranks have ended.\n");
            break;
        }
    }
    return 0;
}

/* --- options ---------------------------------------------------------------------------------- */

static bool read_sort(const char *value, void *key, struct error_text *why)
{
    static const char *const names[SORT_KEYS] = {"rank", "since", "bytes", "queued", "unexpected"};
    for (int i = 0; i < SORT_KEYS; i++)
        if (strcmp(value, names[i]) == 0) {
            *(enum sort_key *) key = (enum sort_key) i;
            return true;
        }
    return fail_with(why, "it is rank, since, bytes, queued or unexpected, not %.60s", value);
}

static bool read_interval(const char *value, void *seconds, struct error_text *why)
{
    if (!number_parse_real(value, seconds, why))
        return false;
    return (*(double *) seconds >= 0.1 && *(double *) seconds <= 86400) ||
           fail_with(why, "%.60s is not from 0.1 to 86400 seconds", value);
}

static bool read_count(const char *value, void *count, struct error_text *why)
{
    return number_parse_count(value, 1, 1000000000, count, why);
}

/* Below 0: go on. Else the exit status. */
static int options_parse(int count, char **arguments, struct options *options)
{
    bool reads = false;
    struct error_text error;
    const struct option_row rows[] = {{"why", OPTION_FLAG, &options->why, NULL},
                                      {"waited", OPTION_FLAG, &options->waited, NULL},
                                      {"job", OPTION_FLAG, &options->whole_job, NULL},
                                      {"once", OPTION_FLAG, &options->once, NULL},
                                      {"json", OPTION_FLAG, &options->json, NULL},
                                      {"prometheus", OPTION_FLAG, &options->prometheus, NULL},
                                      {"interval", OPTION_OWN, &options->interval_s, read_interval},
                                      {"count", OPTION_OWN, &options->count, read_count},
                                      {"sort", OPTION_OWN, &options->view.sort, read_sort},
                                      {"waiting", OPTION_FLAG, &options->view.waiting_only, NULL},
                                      {"drain", OPTION_TEXT, &options->drain, NULL},
                                      {"restore", OPTION_TEXT, &options->restore, NULL},
                                      {"calls", OPTION_FLAG, &options->calls, NULL},
                                      {"read", OPTION_FLAG, &reads, NULL},
                                      {"all", OPTION_FLAG, &options->choice.all, NULL},
                                      {"help", OPTION_PRINT, &usage, NULL},
                                      {"version", OPTION_PRINT, &version, NULL},
                                      {.name = NULL}};
    int first = options_read(count, arguments, rows, &error);
    if (first < 0)
        return fail(error.text);
    bool drains = options->drain || options->restore;
    if (options->whole_job && (drains || reads || options->choice.all))
        return fail("--job is for one job that runs, and goes with no --drain, --restore, --read "
                    "and --all");
    if (drains && (reads || (options->drain && options->restore)))
        return fail("--drain and --restore each go alone, and are for ranks that run");
    if (reads) {
        options->files = arguments + first;
        options->file_count = count - first;
        return options->file_count ? -1
                                   : fail("--read needs a folder where ranks left their files");
    }
    if (first < count)
        options->choice.number = arguments[first++];
    return first < count ? fail("it takes one job or process; --all takes all of them") : -1;
}

static bool files_load(struct ranks *ranks, struct left *left, const struct options *options,
                       struct error_text *error)
{
    for (int i = 0; i < options->file_count; i++)
        if (!left_load(options->files[i], ranks, left, error))
            return false;
    return ranks->count > 0 || fail_with(error, "there is no rank in these folders");
}

int main(int count, char **arguments)
{
    struct options options = {.interval_s = 1, .view = {.columns = 80}, .choice = {.number = NULL}};
    struct ranks ranks = {.list = NULL};
    struct left left = {.list = NULL};
    struct error_text error;
    int status = options_parse(count, arguments, &options);
    if (status >= 0)
        return status;
    bool drains = options.drain || options.restore;
    bool exports = options.json || options.prometheus;
    if (options.calls && !drains && !options.file_count)
        return fail("--calls needs --read, and a folder where ranks left their files");
    bool is_found = options.file_count ? files_load(&ranks, &left, &options, &error)
                                       : ranks_find_all(&options.choice, &ranks, &error);
    if (is_found && options.whole_job)
        is_found = whole_job_load(options.choice.number, &ranks, &left, &error);
    if (!is_found)
        status = fail(error.text);
    else if (drains)
        status = drain(&ranks, &options);
    else if (options.calls)
        status =
            left_show(stdout, &left, options.count ? options.count : 10) ? 0 : fail("no memory");
    else if (!options.once && !exports && !options.why && !is_still(&options))
        status = live(&ranks, &options);
    else if (options.why && !exports && !left_differ_show(stdout, &left))
        status = fail("no memory");
    else
        status = report(&ranks, &options);
    ranks_free(&ranks);
    left_free(&left);
    return status;
}
