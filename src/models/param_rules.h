/* How the parameters of a model are trained: learning rates by depth, weight decay, frozen parameters. */
#ifndef CLEAT_SRC_PARAM_RULES_H
#define CLEAT_SRC_PARAM_RULES_H

#include "graph/graph.h"
#include "models/model.h"

/* Whether any option sets parameters apart. */
bool cleat_model_has_rules(const cleat_model *model);

/* CLEAT_ERR_PROFILE: an option needs depths and the family has none, or the network has fewer blocks than are to be
 * frozen. */
cleat_status cleat_model_check_rules(const cleat_model *model, cleat_error *error);

/* For cleat_store_set_rules; `model` is a const cleat_model *. */
void cleat_model_choose_rule(void *model, const char *param, int rank, cleat_param_rule *rule);

#endif
