/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads lane files: sections in brackets, `key = value` lines, comments from # on. */
#include "common/lane/lane_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lane/lane_keys.h"
#include "common/model/number.h"

#define LINE_CHARS_MAX 400
#define KEYS_MAX       48

enum section {
    SECTION_TOP,
    SECTION_LANE,
    SECTION_RANGE,
    SECTION_GROUP,
    SECTION_COPY,
    SECTION_CLUSTER,
    SECTION_PROFILE,
    SECTION_END
};

/* What the last range of a lane holds is kept here until all its sections are read: keys that a
 * range does not give are the lane's. */
struct lane_draft {
    unsigned line;
    bool given[MODEL_WAYS][MODEL_ATTRIBUTES];
    bool way_given[MODEL_WAYS]; /* by a key for this way, in whatever section */
    bool all_given;             /* by a key for every way */
    bool overhead_whole;        /* `overhead` was given, not its parts */
    bool overhead_parts;
};

struct reader {
    const char *name; /* of the file */
    unsigned line;
    struct lane_file *file;
    lane_file_cluster_key cluster_key; /* null: passed over */
    void *cluster;
    struct error_text *error;
    enum section section;
    char title[LINE_CHARS_MAX]; /* of the section, as written */
    struct model_lane *lane;    /* SECTION_LANE, SECTION_RANGE */
    struct lane_draft *draft;
    uint32_t range; /* of the lane, whose values are read now */
    void *base;     /* of what the section's keys describe */
    struct lane_draft drafts[MODEL_LANES_MAX];
    const char *seen[KEYS_MAX]; /* keys of this section so far */
    uint32_t seen_count;
};

void lane_file_init(struct lane_file *file)
{
    struct plan_input defaults;
    memset(file, 0, sizeof *file);
    plan_input_init(&defaults);
    file->around = defaults.around;
}

const struct model_lane *lane_file_find(const struct lane_file *file, const char *name)
{
    for (uint32_t i = 0; i < file->lane_count; i++)
        if (!strcmp(file->lanes[i].name, name))
            return &file->lanes[i];
    return NULL;
}

struct model_group *lane_file_group(struct lane_file *file, uint32_t number, const char *name)
{
    if (number == file->group_count) {
        snprintf(file->group_names[number], sizeof file->group_names[0], "%s", name);
        file->groups[number].id = ++file->group_count;
    }
    return &file->groups[number];
}

/* --- complaints ------------------------------------------------------------------------------- */

/* "FILE:LINE: [lane fast] bandwidth = -1: " and what is wrong with it */
static bool refuse_value(const struct reader *reader, const char *key, const char *value,
                         const char *why)
{
    return fail_with(reader->error, "%.80s:%u: %s%.40s%s%s = %.40s: %s", reader->name, reader->line,
                     reader->title[0] ? "[" : "", reader->title, reader->title[0] ? "] " : "", key,
                     value, why);
}

static bool refuse_line(const struct reader *reader, const char *what, const char *shown)
{
    return fail_with(reader->error, "%.80s:%u: %s \"%.60s\"", reader->name, reader->line, what,
                     shown);
}

/* --- sections --------------------------------------------------------------------------------- */

/* A group, made on first mention. Null: there is no room. */
static struct model_group *find_group(struct reader *reader, const char *name)
{
    struct lane_file *file = reader->file;
    uint32_t i = 0;
    while (i < file->group_count && strcmp(file->group_names[i], name))
        i++;
    if (i == file->group_count && strlen(name) >= sizeof file->group_names[0])
        refuse_line(reader, "this name is too long:", name);
    else if (i == LANE_FILE_GROUPS_MAX)
        refuse_line(reader, "there are too many groups with", name);
    else
        return lane_file_group(file, i, name);
    return NULL;
}

static bool begin_lane(struct reader *reader, const char *name, const char *rest)
{
    struct lane_file *file = reader->file;
    struct model_lane *lane = &file->lanes[file->lane_count];
    struct model_lane_range range = {.largest_bytes = UINT64_MAX};
    if (rest)
        return refuse_line(reader, "a lane's section has one name:", reader->title);
    if (strlen(name) >= sizeof lane->name)
        return refuse_line(reader, "this name is too long:", name);
    const struct model_lane *other = lane_file_find(file, name);
    if (other)
        return fail_with(reader->error, "%.80s:%u: lane \"%s\" is there already, in line %u",
                         reader->name, reader->line, name,
                         reader->drafts[other - file->lanes].line);
    if (file->lane_count == MODEL_LANES_MAX)
        return refuse_line(reader, "a plan has 16 lanes at most, this is one more:", name);
    model_lane_init(lane, name);
    lane->can = MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET | MODEL_CAN_PUT;
    lane->zcopied_max_bytes = UINT64_MAX;
    model_lane_set_cost(lane, MODEL_WAYS, &range);
    model_lane_set_cost(lane, MODEL_BY_BOTH, &range);
    reader->lane = reader->base = lane;
    reader->draft = &reader->drafts[file->lane_count++];
    reader->draft->line = reader->line;
    reader->range = 0;
    return true;
}

/* A range takes over what the lane has so far and stands before it: the lane's own values hold
 * above all of its ranges. */
static bool begin_range(struct reader *reader, const char *name, const char *rest)
{
    struct error_text why;
    struct lane_file *file = reader->file;
    struct model_lane *lane = file->lane_count ? &file->lanes[file->lane_count - 1] : NULL;
    uint64_t bytes;
    if (!lane || strcmp(lane->name, name))
        return refuse_line(reader, "a range follows the section of its lane, which is not so for",
                           name);
    if (!rest || !number_parse_size(rest, &bytes, &why))
        return refuse_line(reader, "a range is [range LANE LARGEST-SIZE], which is not",
                           reader->title);
    uint32_t count = lane->cost[0].range_count;
    if (count == MODEL_LANE_RANGES_MAX)
        return refuse_line(reader,
                           "a lane has 40 ranges at most, this is one more:", reader->title);
    if (!bytes || bytes == UINT64_MAX ||
        (count > 1 && bytes <= lane->cost[0].ranges[count - 2].largest_bytes))
        return refuse_line(reader, "ranges grow from 1 on and end below inf, unlike",
                           reader->title);
    for (int way = 0; way < MODEL_WAYS; way++) {
        struct model_lane_range *ranges = lane->cost[way].ranges;
        ranges[count] = ranges[count - 1];
        ranges[count - 1].largest_bytes = bytes;
        lane->cost[way].range_count = count + 1;
    }
    reader->lane = lane;
    reader->range = count - 1;
    memset(reader->draft->given, 0, sizeof reader->draft->given);
    reader->draft->overhead_whole = reader->draft->overhead_parts = false;
    return true;
}

static bool begin_group(struct reader *reader, const char *name, const char *rest)
{
    if (rest)
        return refuse_line(reader, "a group's section has one name:", reader->title);
    struct model_group *group = find_group(reader, name);
    reader->base = group;
    return group && (!(group->bandwidth_bytes_s > 0) ||
                     refuse_line(reader, "this group is there already:", name));
}

static bool begin_copy(struct reader *reader, const char *name, const char *rest)
{
    int bit = model_memory_find(name);
    if (rest || bit == MODEL_MEMORIES)
        return refuse_line(reader, "copies are of host, cuda or managed memory, not of", name);
    struct cost_line *copy = &reader->file->around.copy[bit];
    if (copy->fixed_s < 0)
        *copy = (struct cost_line){0, 0};
    reader->base = copy;
    return true;
}

static bool begin_cluster(struct reader *reader, const char *name, const char *rest)
{
    if (reader->file->has_cluster)
        return refuse_line(reader, "a second section", "cluster");
    reader->file->has_cluster = true;
    return true;
}

/* First of all: whose figures they are, and in which schema, decides what the rest means. */
static bool begin_profile(struct reader *reader, const char *name, const char *rest)
{
    if (reader->file->has_profile)
        return refuse_line(reader, "a second section", "profile");
    if (reader->file->lane_count || reader->file->group_count || reader->file->has_cluster)
        return refuse_line(reader, "the first section of a profile is", "profile");
    reader->file->has_profile = true;
    return true;
}

static const struct key group_keys[] = {
    {"bandwidth", KEY_BANDWIDTH, offsetof(struct model_group, bandwidth_bytes_s)}, {.name = NULL}};

static const struct {
    const char *kind;
    bool is_named;
    bool (*begin)(struct reader *reader, const char *name, const char *rest); /* null: nothing */
    const struct key *keys; /* beside attributes and groups */
} sections[] = {[SECTION_TOP] = {NULL, false, NULL, top_keys},
                [SECTION_LANE] = {"lane", true, begin_lane, lane_keys},
                [SECTION_RANGE] = {"range", true, begin_range, NULL},
                [SECTION_GROUP] = {"group", true, begin_group, group_keys},
                [SECTION_COPY] = {"copy", true, begin_copy, copy_keys},
                [SECTION_CLUSTER] = {"cluster", false, begin_cluster, NULL},
                [SECTION_PROFILE] = {"profile", false, begin_profile, profile_keys},
                [SECTION_END] = {"end", false, NULL, NULL}};

/* "kind", "kind name" or "kind name rest" between the brackets */
static bool begin_section(struct reader *reader, const char *inside)
{
    char copy[LINE_CHARS_MAX];
    reader->section = SECTION_TOP;
    reader->base = reader->file;
    reader->seen_count = 0;
    snprintf(reader->title, sizeof reader->title, "%s", inside);
    snprintf(copy, sizeof copy, "%s", inside);
    char *words;
    const char *kind = strtok_r(copy, " \t", &words), *name = strtok_r(NULL, " \t", &words),
               *rest = strtok_r(NULL, " \t", &words);
    bool extra = strtok_r(NULL, " \t", &words);
    for (int i = SECTION_LANE; kind && !extra && i <= SECTION_END; i++) {
        if (strcmp(kind, sections[i].kind) || sections[i].is_named != (name != NULL))
            continue;
        if (sections[i].begin && !sections[i].begin(reader, name, rest))
            return false;
        reader->section = (enum section) i;
        return true;
    }
    return refuse_line(reader,
                       "sections are [lane NAME], [range LANE SIZE], [group NAME], [copy MEMORY], "
                       "[cluster], [profile] and [end], not",
                       inside);
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool check_overhead(struct lane_draft *draft, const struct attribute_values *values,
                           struct error_text *why)
{
    bool sends = values->is_given[MODEL_OVERHEAD_SEND];
    bool receives = values->is_given[MODEL_OVERHEAD_RECEIVE];
    draft->overhead_whole = draft->overhead_whole || (sends && receives);
    draft->overhead_parts = draft->overhead_parts || sends != receives;
    return !(sends || receives) || !draft->overhead_whole || !draft->overhead_parts ||
           fail_with(why, "overhead is the sum of overhead_send and overhead_receive; give either "
                          "it or them");
}

/* A key for one way wins over the same key for all of them, in whatever order they stand. */
static bool read_attribute(struct reader *reader, const char *name, const char *value,
                           struct error_text *why)
{
    struct lane_draft *draft = reader->draft;
    struct attribute_values read;
    if (!attribute_read(name, value, &read, why) || !check_overhead(draft, &read, why))
        return false;
    bool is_of_all = read.way == MODEL_WAYS;
    *(is_of_all ? &draft->all_given : &draft->way_given[read.way]) = true;
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        if (!read.is_given[i])
            continue;
        for (int way = 0; way < MODEL_WAYS; way++) {
            struct model_lane_range *range = &reader->lane->cost[way].ranges[reader->range];
            bool *given = &draft->given[way][i];
            if (is_of_all ? *given : read.way != (enum model_way) way)
                continue;
            *model_attribute_in(range, i) = read.values[i];
            *given = !is_of_all;
        }
        model_lane_set_source(reader->lane, read.way, (enum model_attribute) i,
                              reader->file->has_profile ? MODEL_SOURCE_PROFILE : MODEL_SOURCE_USER);
    }
    return true;
}

/* A lane belongs to a group by its name; other keys have a place of their own in the section. */
static bool read_group(struct reader *reader, const char *name)
{
    const struct model_group *group = find_group(reader, name);
    reader->lane->group = group ? group->id : 0;
    return group;
}

/* False: *why says what is wrong, or reader->error if that stays empty. */
static bool read_section_key(struct reader *reader, const char *name, const char *value,
                             struct error_text *why)
{
    enum section section = reader->section;
    if (section == SECTION_CLUSTER)
        return !reader->cluster_key || reader->cluster_key(reader->cluster, name, value, why);
    if ((section == SECTION_LANE || section == SECTION_RANGE) && attribute_is_key(name))
        return read_attribute(reader, name, value, why);
    if (section == SECTION_LANE && strcmp(name, "group") == 0)
        return read_group(reader, value);
    const struct key *key = sections[section].keys ? key_find(sections[section].keys, name) : NULL;
    if (!key)
        return fail_with(why, "there is no such key %s; man multilane-plan lists them",
                         section == SECTION_TOP ? "above the first section" : "in this section");
    return key_read(key, value, reader->base, why);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* `name` lives as long as the reader: it points into the copy of the text. */
static bool check_new(struct reader *reader, const char *name, const char *value)
{
    for (uint32_t i = 0; i < reader->seen_count; i++)
        if (!strcmp(reader->seen[i], name))
            return refuse_value(reader, name, value, "this key is there already");
    if (reader->seen_count == KEYS_MAX)
        return refuse_value(reader, name, value, "there are too many keys in this section");
    reader->seen[reader->seen_count++] = name;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without blanks at both ends. */
static char *trim(char *text)
{
    while (is_space(*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && is_space(end[-1]))
        end--;
    *end = 0;
    return text;
}

static bool read_key(struct reader *reader, char *line)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return refuse_line(reader, "this is neither [section] nor key = value:", line);
    *equals = 0;
    char *name = trim(line), *value = trim(equals + 1);
    struct error_text why = {""};
    if (!*value)
        return refuse_value(reader, name, value, "the value is missing");
    return check_new(reader, name, value) &&
           (read_section_key(reader, name, value, &why) ||
            (why.text[0] && refuse_value(reader, name, value, why.text)));
}

/* Text only: a byte that no editor would leave there means that this is another kind of file. */
static bool check_text(struct reader *reader, const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char) line[i];
        if ((c < 0x20 && !is_space((char) c)) || c == 0x7f)
            return fail_with(reader->error, "%.80s:%u: byte 0x%02x: this is not a text file",
                             reader->name, reader->line, c);
    }
    if (length >= LINE_CHARS_MAX)
        return fail_with(reader->error, "%.80s:%u: a line of %zu characters, more than %d",
                         reader->name, reader->line, length, LINE_CHARS_MAX - 1);
    return true;
}

/* One line, ending in 0, which may be changed. */
static bool parse_line(struct reader *reader, char *line)
{
    char *comment = strchr(line, '#');
    if (comment)
        *comment = 0;
    line = trim(line);
    if (!*line)
        return true;
    if (*line != '[')
        return read_key(reader, line);
    char *end = line + strlen(line) - 1;
    if (*end != ']' || end == line)
        return refuse_line(reader, "the ] is missing:", line);
    *end = 0;
    if (reader->section == SECTION_END)
        return refuse_line(reader, "nothing follows [end], unlike", line);
    return begin_section(reader, trim(line + 1));
}

static bool parse_lines(struct reader *reader, char *text, size_t length)
{
    for (char *line = text; line < text + length; reader->line++) {
        char *end = memchr(line, '\n', (size_t) (text + length - line));
        size_t line_length = (size_t) ((end ? end : text + length) - line);
        if (!check_text(reader, line, line_length))
            return false;
        line[line_length] = 0; /* where the line end was, or the 0 behind the text */
        if (!parse_line(reader, line))
            return false;
        line += line_length + 1;
    }
    if (reader->file->has_profile && reader->section != SECTION_END)
        return fail_with(reader->error, "%.80s: it is cut off: a profile ends with [end]",
                         reader->name);
    return true;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* A lane of which each way is described alone cannot go the others. What both ends do together is
 * known only where it was described. */
static void drop_ways(const struct lane_draft *draft, struct model_lane *lane)
{
    for (int way = 0; way < MODEL_WAYS; way++) {
        bool any = false;
        for (int i = 0; i < MODEL_WAYS; i++)
            any = any || draft->way_given[i];
        if (!draft->way_given[way] && (way == MODEL_BY_BOTH || (any && !draft->all_given)))
            lane->cost[way].range_count = 0;
    }
}

/* A range that is like the one after it tells nothing: the file divides every way where one of them
 * is divided. */
static void join_ranges(struct model_lane_cost *cost)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cost->range_count; i++) {
        struct model_lane_range before = kept ? cost->ranges[kept - 1] : cost->ranges[i];
        before.largest_bytes = cost->ranges[i].largest_bytes;
        kept -= kept && !memcmp(&before, &cost->ranges[i], sizeof before);
        cost->ranges[kept++] = cost->ranges[i];
    }
    cost->range_count = kept;
}

static bool check_lane(struct reader *reader, uint32_t i)
{
    struct error_text why;
    struct model_lane *lane = &reader->file->lanes[i];
    drop_ways(&reader->drafts[i], lane);
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t j = 0; j < lane->cost[way].range_count; j++)
            if (!(lane->cost[way].ranges[j].bandwidth_bytes_s > 0))
                return fail_with(reader->error,
                                 "%.80s:%u: lane \"%s\" has no bandwidth; add bandwidth = BYTES A "
                                 "SECOND",
                                 reader->name, reader->drafts[i].line, lane->name);
    for (int way = 0; way < MODEL_WAYS; way++)
        join_ranges(&lane->cost[way]);
    if (!model_lane_check(lane, &why))
        return fail_with(reader->error, "%.80s:%u: %.200s", reader->name, reader->drafts[i].line,
                         why.text);
    return true;
}

static bool check_file(struct reader *reader)
{
    struct lane_file *file = reader->file;
    if (file->has_profile && !file->profile.schema)
        return fail_with(reader->error, "%.80s: [profile]: the schema is missing", reader->name);
    if (!file->lane_count)
        return fail_with(reader->error,
                         "%.80s: there is no lane in it; a lane is a section [lane NAME] with at "
                         "least bandwidth = BYTES A SECOND",
                         reader->name);
    for (uint32_t i = 0; i < file->lane_count; i++)
        if (!check_lane(reader, i))
            return false;
    return true;
}

bool lane_file_parse(const char *name, const char *text, size_t length, struct lane_file *file,
                     lane_file_cluster_key cluster_key, void *cluster, struct error_text *error)
{
    struct reader reader = {.name = name,
                            .line = 1,
                            .file = file,
                            .base = file,
                            .cluster_key = cluster_key,
                            .cluster = cluster,
                            .error = error};
    lane_file_init(file);
    if (!length)
        return fail_with(error, "%.80s: it is empty; man multilane-plan shows an example", name);
    char *copy = malloc(length + 1);
    if (!copy)
        return fail_with(error, "%.80s: no memory for %zu bytes", name, length);
    memcpy(copy, text, length);
    copy[length] = 0;
    bool read = parse_lines(&reader, copy, length) && check_file(&reader);
    free(copy);
    return read;
}
