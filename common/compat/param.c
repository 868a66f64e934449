/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering a component's parameters, and reading those of others before they exist. */
#include "common/compat/param.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/lane/attr.h"
#include "opal/constants.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

/* Texts that were given for integers and are none, until they are checked: the variable has the
 * number of its text, from INT_MIN on. By the thread that loads components. */
#define REFUSED_MOST 16
static char refused[REFUSED_MOST][64];
static int refused_count;

/* The text that a variable's value stands for, or null. */
static const char *refused_text(int value)
{
    return value < INT_MIN + REFUSED_MOST ? refused[value - INT_MIN] : NULL;
}

/* Open MPI's own conversion takes "yes" for 0 and "64x" for 64. As there a number may be octal or
 * hexadecimal, and end in k, m or g. Always a success: what is refused is said where the component
 * is used. */
static int int_read(mca_base_var_enum_t *self, const char *text, int *value)
{
    static const char suffixes[] = "kKmMgG";
    char *end;
    long long number = strtoll(text, &end, 0);
    const char *suffix = end > text && *end ? strchr(suffixes, *end) : NULL;

    (void) self;
    if (suffix && number >= INT_MIN && number <= INT_MAX) {
        number *= 1LL << (10 * ((suffix - suffixes) / 2 + 1));
        end++;
    }
    if (end > text && *end == '\0' && number >= INT_MIN + REFUSED_MOST && number <= INT_MAX) {
        *value = (int) number;
        return OPAL_SUCCESS;
    }
    snprintf(refused[refused_count], sizeof(refused[0]), "%s", text);
    *value = INT_MIN + refused_count;
    if (refused_count < REFUSED_MOST - 1)
        ++refused_count;
    return OPAL_SUCCESS;
}

/* An integer that is 0 or 1, by a word too. */
static int switch_read(mca_base_var_enum_t *self, const char *text, int *value)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
        if (strcasecmp(text, words[i]) == 0) {
            *value = (int) i % 2;
            return OPAL_SUCCESS;
        }
    return int_read(self, text, value);
}

static mca_base_var_enum_t ints = {.enum_is_static = true, .value_from_string = int_read};
static mca_base_var_enum_t switches = {.enum_is_static = true, .value_from_string = switch_read};

/* The variable was read: to others it is an integer of which no value has a name. */
static void reader_remove(int index)
{
    const mca_base_var_t *variable;

    if (mca_base_var_get(index, &variable) == OPAL_SUCCESS)
        ((mca_base_var_t *) variable)->mbv_enumerator = NULL;
}

static int row_register(const mca_base_component_t *component, const struct param *row)
{
    bool is_switch = row->may_be && strcmp(row->may_be, "0 to 1") == 0;
    bool is_text = row->type == PARAM_STRING || row->type == PARAM_WORD;
    char **text = is_text ? row->storage : NULL; /* the first member of a word */
    const char *by_default = text == NULL ? NULL : *text;
    int index = mca_base_component_var_register(
        component, row->name, row->help,
        row->type == PARAM_INT ? MCA_BASE_VAR_TYPE_INT : MCA_BASE_VAR_TYPE_STRING,
        row->type != PARAM_INT ? NULL
        : is_switch            ? &switches
                               : &ints,
        0, row->type == PARAM_SHOWN ? MCA_BASE_VAR_FLAG_DEFAULT_ONLY : 0, OPAL_INFO_LVL_4,
        MCA_BASE_VAR_SCOPE_READONLY, row->storage);
    if (index >= 0 && row->type == PARAM_INT)
        reader_remove(index);
    /* Given as nothing at all it is NULL now. Open MPI frees it. */
    if (index >= 0 && text != NULL && *text == NULL && by_default != NULL)
        *text = strdup(by_default);
    return index;
}

static int lane_register(const mca_base_component_t *component, const struct param *row)
{
    struct attr_parameters *lane = row->storage;
    int index = 0;

    for (int i = 0; i < MODEL_ATTRIBUTES && index >= 0; ++i) {
        char name[64], help[160];
        const struct param key = {name, PARAM_STRING, &lane->texts[i], NULL, help};

        if (model_attribute_shares_key(i))
            continue;
        snprintf(name, sizeof(name), "%s_%s", row->name, model_attributes[i].user_key);
        snprintf(help, sizeof(help), "%s, or auto", model_attributes[i].meaning);
        lane->texts[i] = "auto";
        index = row_register(component, &key);
    }
    return index;
}

int param_register(const mca_base_component_t *component, const struct param *rows)
{
    for (; rows->name; ++rows) {
        int index = rows->type == PARAM_LANE ? lane_register(component, rows)
                                             : row_register(component, rows);

        if (index < 0)
            return index;
    }
    return OPAL_SUCCESS;
}

/* The number of a word of "auto, yes or no"; below 0: it is none of them. */
static int word_find(const char *words, const char *text)
{
    size_t length = strlen(text);

    for (int number = 0; *words; number++) {
        size_t end = strcspn(words, ", ");

        if (end == length && strncmp(words, text, length) == 0)
            return number;
        words += end;
        words += strspn(words, ", ");
        if (strncmp(words, "or ", 3) == 0)
            words += 3;
    }
    return -1;
}

static bool int_is_good(int value, const char *may_be)
{
    int least, most = INT_MAX;

    return sscanf(may_be, "%d to %d", &least, &most) < 1 || (value >= least && value <= most) ||
           (value == 0 && strstr(may_be, "or 0"));
}

static bool row_check(const mca_base_component_t *component, const struct param *row)
{
    const char *framework = component->mca_type_name, *name = component->mca_component_name;
    struct param_word *word = row->storage;
    const int *value = row->storage;
    struct error_text error;

    switch (row->type) {
    case PARAM_INT:
        if (refused_text(*value)) {
            opal_output(0, "%s_%s_%s is \"%s\"; it can be %s.", framework, name, row->name,
                        refused_text(*value), row->may_be ? row->may_be : "a whole number");
            return false;
        }
        if (!row->may_be || int_is_good(*value, row->may_be))
            return true;
        opal_output(0, "%s_%s_%s is %d; it can be %s.", framework, name, row->name, *value,
                    row->may_be);
        return false;
    case PARAM_WORD:
        word->number = word_find(row->may_be, word->text);
        if (word->number >= 0)
            return true;
        opal_output(0, "%s_%s_%s is \"%s\"; it can be %s.", framework, name, row->name, word->text,
                    row->may_be);
        return false;
    case PARAM_LANE:
        if (attr_parameters_check(row->storage, name, &error))
            return true;
        opal_output(0, "%s/%s: %s", framework, name, error.text);
        return false;
    default:
        return true;
    }
}

bool param_check(const mca_base_component_t *component, const struct param *rows)
{
    bool good = true;

    for (; rows->name; ++rows)
        good = row_check(component, rows) && good;
    return good;
}

/* Registers the variable for a moment, so that Open MPI itself looks through environment, files
 * and overrides, and reads the outcome into `storage`. False: it was registered already, and
 * *index is where. The owner may register it again afterwards: a deregistered variable keeps its
 * name, its type and its flags. So it has that of a component's, DWG: else a string of the owner's
 * would be freed when the owner is no longer loaded. */
static bool param_register_briefly(const char *framework, const char *component,
                                   const char *variable, mca_base_var_type_t type, void *storage,
                                   int *index)
{
    *index = mca_base_var_find("ompi", framework, component, variable);
    if (*index >= 0)
        return false;
    *index = mca_base_var_register("ompi", framework, component, variable, NULL, type,
                                   type == MCA_BASE_VAR_TYPE_INT ? &switches : NULL, 0,
                                   MCA_BASE_VAR_FLAG_SETTABLE | MCA_BASE_VAR_FLAG_DWG,
                                   OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ, storage);
    return true;
}

char *param_peek_string(const char *framework, const char *component, const char *variable)
{
    char *given = NULL, *copy = NULL;
    const char *const *registered = NULL;
    int index;

    if (param_register_briefly(framework, component, variable, MCA_BASE_VAR_TYPE_STRING, &given,
                               &index)) {
        copy = given == NULL ? NULL : strdup(given);
        if (index >= 0) {
            mca_base_var_deregister(index); /* frees `given` */
        }
    } else if (mca_base_var_get_value(index, &registered, NULL, NULL) == OPAL_SUCCESS &&
               registered != NULL && *registered != NULL) {
        copy = strdup(*registered);
    }
    return copy;
}

int param_peek_int(const char *framework, const char *component, const char *variable,
                   int default_value)
{
    int value = default_value;
    const int *registered = NULL;
    int index;

    if (param_register_briefly(framework, component, variable, MCA_BASE_VAR_TYPE_INT, &value,
                               &index)) {
        if (index >= 0)
            mca_base_var_deregister(index);
    } else if (mca_base_var_get_value(index, &registered, NULL, NULL) == OPAL_SUCCESS &&
               registered != NULL) {
        value = *registered;
    }
    return value;
}
