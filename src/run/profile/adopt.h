/* Settings that the weights of model.init determine. */
#ifndef CLEAT_SRC_PROFILE_ADOPT_H
#define CLEAT_SRC_PROFILE_ADOPT_H

#include "core/files.h"
#include "profile/schema.h"

/* Adopts the settings of the weights' config.json or, for a checkpoint of cleat, of its profile. Settings
 * that the profile gives stay; if one shapes the network and differs, CLEAT_ERR_PROFILE names both places. */
cleat_status cleat_profile_adopt(cleat_profile *profile, const cleat_weights *weights, cleat_error *error);
/* Sets the family's settings that the profile does not give to those of `then`, a profile of the same
 * family from the file `source`. */
cleat_status cleat_profile_adopt_profile(cleat_profile *profile, const cleat_profile *then, const char *source,
                                         cleat_error *error);
/* Whether the weights are a checkpoint of cleat. */
bool cleat_weights_are_own(const cleat_weights *weights);
/* The architecture of the published weights, among those of the profile's family. CLEAT_ERR_NOT_SUPPORTED:
 * none. */
cleat_status cleat_profile_architecture(const cleat_profile *profile, const cleat_weights *weights,
                                        const cleat_architecture **architecture, cleat_error *error);
/* How the model's parameters are found in the weights: sets architecture, shared, model and prefix of
 * *target. Errors as cleat_profile_architecture. */
cleat_status cleat_profile_find_parameters(const cleat_profile *profile, const cleat_model *model,
                                           const cleat_weights *weights, cleat_weight_target *target,
                                           cleat_error *error);

#endif
