/* Each file registers its functions in the driver's dispatch table. */
#ifndef VIRTUAL_CARD_ICD_H
#define VIRTUAL_CARD_ICD_H

#include "objects.h"

void vc_enter_devices(cl_icd_dispatch *table);
void vc_enter_contexts(cl_icd_dispatch *table);
void vc_enter_queues(cl_icd_dispatch *table);
void vc_enter_events(cl_icd_dispatch *table);
void vc_enter_memory(cl_icd_dispatch *table);
void vc_enter_transfers(cl_icd_dispatch *table);
void vc_enter_mappings(cl_icd_dispatch *table);
void vc_enter_programs(cl_icd_dispatch *table);
void vc_enter_kernels(cl_icd_dispatch *table);
void vc_enter_launches(cl_icd_dispatch *table);

#endif
