/* NVML as a job sees it; see nvml.c. */
#pragma once

/* Our function in place of NVML's of that name, or NULL: that one is not touched. */
void *td_nvml_wrapper(const char *name);
