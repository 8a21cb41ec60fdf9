/* How the parameters of a model are trained: learning rates by depth, weight decay, frozen parameters. */
#ifndef CLEAT_SRC_PARAM_RULES_H
#define CLEAT_SRC_PARAM_RULES_H

#include "graph/graph.h"
#include "models/model.h"
#include "nn/lora.h"

/* Number of depths, from 0 on, that cleat_param_options.freeze names; INT64_MAX: the backbone; -1: invalid
 * text. */
int64_t cleat_frozen_depths(const char *freeze);

/* False: not a text of cleat_param_options.frozen_weights. */
bool cleat_frozen_forms_valid(const char *text);

/* Whether any option distinguishes parameters. */
bool cleat_model_has_rules(const cleat_model *model);

/* CLEAT_ERR_PROFILE: an option needs depths and the family has none, or the network has fewer blocks than it
 * should freeze. */
cleat_status cleat_model_check_rules(const cleat_model *model, cleat_error *error);

/* For cleat_store_set_rules; `model` is a const cleat_model *. */
void cleat_model_choose_rule(void *model, const char *param, int rank, cleat_param_rule *rule);

/* The same for generation, where all parameters are frozen, and matrices of the blocks are stored as
 * options.params.frozen_weights says. */
void cleat_model_generation_rule(void *model, const char *param, int rank, cleat_param_rule *rule);

/* The adapters of a graph of this mode; rank 0: none. It borrows from the model. */
cleat_lora cleat_model_lora(const cleat_model *model, cleat_mode mode);

/* CLEAT_ERR_PROFILE: adapters are requested, but the store, with which a graph was built, has none:
 * train.lora_layers names no layer of the network. */
cleat_status cleat_model_check_adapters(const cleat_model *model, const cleat_store *store, cleat_error *error);

#endif
