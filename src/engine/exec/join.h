/* Which parts become one program (join.c). A part is a kernel file with options. */
#ifndef CLEAT_SRC_JOIN_H
#define CLEAT_SRC_JOIN_H

#include "exec/exec.h"

/* Makes programs of several parts of exec->keys: fewer keys. The launches have new numbers and perhaps new names.
 *
 * Parts that an evaluation needs, perhaps a step as well, are apart from those that only steps need. So an
 * exec that only evaluates or predicts has the same programs as the one that trained, and finds its kernels
 * in the driver's cache. */
cleat_status cleat_exec_join_programs(cleat_exec *exec, cleat_error *error);
/* After a program failed to build: builds its parts one after the other, and returns the error of the first
 * that fails. If none does, `error` stays as it was. */
cleat_status cleat_exec_explain_build(cleat_exec *exec, size_t program, cleat_error *error);
bool cleat_exec_has_backward(const cleat_graph *graph);
/* A graph without backward part whose operations have gradients. */
bool cleat_exec_is_evaluation(const cleat_graph *graph);

#endif
