/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-plan prints: for people and for programs. */
#ifndef TOOLS_PLAN_REPORT_H
#define TOOLS_PLAN_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/lane/lane_file.h"
#include "common/model/plan.h"
#include "tools/model/cluster.h"
#include "tools/model/equation.h"

/* The equation within one range of sizes in which no lane's attributes change. */
struct equation_range {
    uint64_t first_bytes, last_bytes;
    struct equation_result result[EQUATION_VARIANTS];
};

#define EQUATION_RANGES_MAX (MODEL_LANES_MAX * MODEL_WAYS * MODEL_LANE_RANGES_MAX)

/* What was asked for and what came out of it. */
struct plan_report {
    const struct lane_file *file;
    const struct cluster_model *cluster; /* where file->has_cluster */
    const struct plan_input *input;
    const struct plan *plan; /* null: only the equation was asked for */
    bool verbose;
    const uint64_t *sizes; /* to predict */
    uint32_t size_count;
    struct equation_range *ranges; /* room for EQUATION_RANGES_MAX */
    uint32_t range_count;          /* 0: the equation was not asked for */
};

/* What a protocol takes at a size, over the plan's lanes or the best ones for it. */
struct plan_prediction {
    bool is_chosen; /* by the plan */
    struct plan_entry entry;
    struct cost cost;
};

/* Solves for every range; false with a sentence where one kind of lane is missing. */
bool plan_report_equations(struct plan_report *report, struct error_text *error);

void plan_text_equations(FILE *out, const struct plan_report *report);
void plan_text_plan(FILE *out, const struct plan_report *report);

void plan_text_predictions(FILE *out, const struct plan_report *report);

/* One JSON object; what was not asked for is left out. */
void plan_json(FILE *out, const struct plan_report *report);

#endif
