/* Copies required work-group sizes from LLVM IR to PTX. */
#ifndef VIRTUAL_CARD_REQNTID_H
#define VIRTUAL_CARD_REQNTID_H

/* A copy of the PTX with .reqntid in each kernel that has reqd_work_group_size in the IR; the caller frees
 * it. NULL: no memory. */
char *vc_write_reqntid(const char *ptx, const char *ir);

#endif
