/* The job's own view of NVML; see nvml.c. */
#pragma once

/* Returns our function for NVML's function of that name, or NULL if that one is not replaced. */
void *td_nvml_wrapper(const char *name);
