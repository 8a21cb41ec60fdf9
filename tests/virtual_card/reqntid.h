/* The work-group size that a kernel requires, from LLVM IR into PTX. */
#ifndef VIRTUAL_CARD_REQNTID_H
#define VIRTUAL_CARD_REQNTID_H

/* A copy of the PTX with .reqntid at each kernel that has reqd_work_group_size in the IR. NULL: no memory.
 * The caller frees it. */
char *vc_write_reqntid(const char *ptx, const char *ir);

#endif
