/* SPDX-License-Identifier: BSD-3-Clause */
/* multilane-plan --profile prints what a job does with that profile, byte for byte, for many kinds
 * of lanes: the rows of the explain report up to the columns of use. Run in the build folder, where
 * the program lies. */
#include "check.h"

#include <string.h>
#include <unistd.h>

#include "common/compat/version.h"
#include "lanes_standin.h"
#include "base/parameters.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"
#include "plan/costs.h"
#include "report/report.h"
#include "tools/lane/profile_write.h"

static struct mca_btl_base_registration_handle_t *
register_none(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *base,
              size_t size, uint32_t flags)
{
    (void) btl, (void) endpoint, (void) base, (void) size, (void) flags;
    return NULL;
}

static int move_none(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     void *local, uint64_t remote, mca_btl_base_registration_handle_t *here,
                     mca_btl_base_registration_handle_t *there, size_t size, int flags, int order,
                     mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    (void) btl, (void) endpoint, (void) local, (void) remote, (void) here, (void) there;
    (void) size, (void) flags, (void) order, (void) done, (void) context, (void) data;
    return OPAL_ERROR;
}

static int send_none(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     struct opal_convertor_t *convertor, void *header, size_t header_size,
                     size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                     mca_btl_base_descriptor_t **descriptor)
{
    (void) btl, (void) endpoint, (void) convertor, (void) header, (void) header_size;
    (void) payload_size, (void) order, (void) flags, (void) tag, (void) descriptor;
    return OPAL_ERROR;
}

#define GETS      1
#define PUTS      2
#define REGISTERS 4
#define AT_ONCE   8
#define ON_NODE   16

static const struct kind {
    const char *names[2];
    unsigned is;
    unsigned eager_limit;
} kinds[] = {
    {{"tcp"}, 0, 65536},
    {{"vader"}, GETS | PUTS | AT_ONCE | ON_NODE, 4096},
    {{"sm"}, AT_ONCE | ON_NODE, 32768},
    {{"smcuda"}, GETS | ON_NODE, 4096},
    {{"usnic"}, AT_ONCE, 150 << 10},
    {{"openib"}, GETS | PUTS | REGISTERS, 12288},
    {{"uct"}, GETS | PUTS | REGISTERS | AT_ONCE, 8192},
    {{"ugni"}, GETS | REGISTERS, 65536},
    {{"ofi"}, PUTS | REGISTERS | AT_ONCE, 4096},
    {{"portals4"}, GETS | PUTS, 32768},
    {{"vader", "tcp"}, GETS | AT_ONCE | ON_NODE, 4096},
    {{"tcp", "usnic"}, 0, 65536},
};

static mca_btl_base_module_t *btl_of(const struct kind *kind, int index)
{
    mca_btl_base_module_t *btl = standin_btl(kind->names[index], 10000);
    btl->btl_eager_limit = kind->eager_limit;
    btl->btl_flags |=
        (kind->is & GETS ? MCA_BTL_FLAGS_GET : 0) | (kind->is & PUTS ? MCA_BTL_FLAGS_PUT : 0);
    btl->btl_get = kind->is & GETS ? move_none : NULL;
    btl->btl_put = kind->is & PUTS ? move_none : NULL;
    btl->btl_register_mem = kind->is & REGISTERS ? register_none : NULL;
    btl->btl_sendi = kind->is & AT_ONCE ? send_none : NULL;
    return btl;
}

static struct peer_class *class_met(const struct kind *kind, mca_btl_base_module_t *btls[2])
{
    struct peer *peer = standin_peer();
    if (kind->is & ON_NODE)
        peer->proc->super.proc_flags = OPAL_PROC_ON_NODE;
    multilane.peer_classes = NULL;
    for (int i = 0; i < 2 && btls[i]; i++)
        standin_reach(peer, btls[i]);
    CHECK(peer_take_lanes(peer), "%s reaches nothing", kind->names[0]);
    return peer_class_now(peer);
}

/* As multilane-calibrate writes it: other numbers than the lanes declare. */
static bool profile_make(const char *path, const struct peer_class *class)
{
    static struct lane_file file;
    struct error_text error;
    lane_file_init(&file);
    class_surroundings(&file.around);
    for (int i = 0; i < class->lane_count; i++) {
        struct model_lane *lane = &file.lanes[file.lane_count++];
        *lane = class->lanes[i];
        lane->group = 0;
        snprintf(lane->name, sizeof(lane->name), "%.30s@%s", class->lanes[i].name,
                 profile_placement_name(class->placement));
        for (int way = 0; way < MODEL_WAYS; way++)
            for (uint32_t r = 0; r < lane->cost[way].range_count; r++) {
                struct model_lane_range *range = &lane->cost[way].ranges[r];
                range->latency_s *= 1.37 + 0.1 * i;
                range->bandwidth_bytes_s *= 0.71;
                range->overhead_send_s *= 1.113;
            }
    }
    file.has_profile = true;
    file.profile.schema = LANE_FILE_SCHEMA;
    snprintf(file.profile.made, sizeof(file.profile.made), "by a test");
    fingerprint_take(version_built, &file.profile.machine);
    return profile_write(path, &file, &error);
}

/* Lines behind that indent, without the spaces at their ends, up to the column where `until` stands
 * in the first. */
static void rows_take(FILE *from, size_t indent, const char *until, char *rows, size_t size)
{
    char line[1000];
    size_t column = SIZE_MAX, length = 0;
    rows[0] = '\0';
    while (fgets(line, sizeof(line), from) && strncmp(line, "    ", indent) == 0) {
        const char *at = until ? strstr(line, until) : NULL;
        if (at && column == SIZE_MAX)
            column = (size_t) (at - line);
        if (strlen(line) > column)
            line[column] = '\0';
        size_t end = strlen(line);
        while (end && (line[end - 1] == ' ' || line[end - 1] == '\n'))
            end--;
        length += (size_t) snprintf(rows + length, size - length, "%.*s\n", (int) (end - indent),
                                    line + indent);
    }
}

static void job_rows(char *rows, size_t size)
{
    char path[] = "/tmp/multilane-explain.XXXXXX", line[1000];
    close(mkstemp(path));
    parameters.explain = 1;
    parameters.explain_file = path;
    explain_write();
    parameters.explain = 0;
    FILE *report = fopen(path, "r");
    while (report && fgets(line, sizeof(line), report) &&
           strcmp(line, "  contiguous memory:\n") != 0)
        ;
    if (report) {
        rows_take(report, 4, "measured", rows, size);
        fclose(report);
    }
    unlink(path);
}

static void tool_rows(const char *profile, char *rows, size_t size)
{
    char command[200], line[1000] = "";
    snprintf(command, sizeof(command), "./multilane-plan --profile %s", profile);
    FILE *tool = popen(command, "r");
    CHECK(tool && fgets(line, sizeof(line), tool) && strncmp(line, "peers at ", 9) == 0, "%s",
          line);
    if (tool) {
        rows_take(tool, 0, NULL, rows, size);
        CHECK(pclose(tool) == 0, "%s", command);
    }
}

static void the_tool_prints_what_the_job_uses(const struct kind *kind)
{
    static char of_job[16384], of_tool[16384];
    char path[] = "/tmp/multilane-profile.XXXXXX";
    mca_btl_base_module_t *btls[2] = {btl_of(kind, 0), kind->names[1] ? btl_of(kind, 1) : NULL};
    struct peer_class *declared = class_met(kind, btls);
    close(mkstemp(path));
    CHECK(profile_make(path, declared), "%s: no profile", kind->names[0]);
    used_profile_fini();
    parameters.profile = path;
    used_profile_load();
    CHECK(used_profile(), "%s: %s", kind->names[0], used_profile_story());
    struct peer_class *measured = class_met(kind, btls);
    CHECK(measured->lanes[0].source[MODEL_BY_SEND][0][MODEL_LATENCY] == MODEL_SOURCE_PROFILE,
          "%s: the profile is not used", kind->names[0]);
    job_rows(of_job, sizeof(of_job));
    tool_rows(path, of_tool, sizeof(of_tool));
    CHECK(strlen(of_job) > 100 && strcmp(of_job, of_tool) == 0, "%s: the job\n%sthe tool\n%s",
          kind->names[0], of_job, of_tool);
    unlink(path);
    used_profile_fini();
    parameters.profile = "none";
    used_profile_load();
}

/* As one below a folder that only another user may enter. */
static void a_folder_out_of_reach_is_no_profile(void)
{
    static char folder[400] = "/tmp/";
    memset(folder + strlen(folder), 'x', sizeof(folder) - strlen(folder) - 1);
    setenv("XDG_CACHE_HOME", folder, 1);
    used_profile_fini();
    parameters.profile = "auto";
    used_profile_load();
    CHECK(!used_profile_complaint(), "%s", used_profile_complaint());
    used_profile_fini();
}

/* In the user's folder, where another one has put it. */
static void a_profile_of_another_user_is_not_believed(void)
{
    char folder[] = "/tmp/multilane-cache.XXXXXX", path[PROFILE_PATH_CHARS];
    mca_btl_base_module_t *btls[2] = {btl_of(&kinds[0], 0), NULL};
    struct fingerprint here;
    if (geteuid() != 0) /* else it cannot be given away */
        return;
    fingerprint_take(version_built, &here);
    CHECK(mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0, "%s", folder);
    profile_path(PROFILE_OF_USER, NULL, &here, path);
    CHECK(profile_make(path, class_met(&kinds[0], btls)), "%s", path);
    used_profile_load();
    CHECK(used_profile(), "an own one: %s", used_profile_story());
    used_profile_fini();
    CHECK(chown(path, 12345, 12345) == 0, "it stays ours");
    used_profile_load();
    CHECK(!used_profile() && used_profile_complaint() &&
              strstr(used_profile_complaint(), "another user"),
          "%s", used_profile_story());
    used_profile_fini();
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(folder);
}

int main(void)
{
    standin_begin();
    used_profile_load();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        the_tool_prints_what_the_job_uses(&kinds[i]);
    a_folder_out_of_reach_is_no_profile();
    a_profile_of_another_user_is_not_believed();
    return check_end();
}
