/* Shared by smi.c (reading, table, -q, options) and smi_fields.c (CSV). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/nvml_abi.h"

#define GPUS_MAX      64u
#define PROCESSES_MAX 512u
#define COLUMNS_MAX   32u

struct gpu {
	nvmlDevice_t device;
	unsigned index;
	bool lost; /* the driver has lost the GPU, so only its identity is known */
	char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE], uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlPciInfo_t pci;
	nvmlMemory_t memory;
	nvmlUtilization_t utilisation;
	unsigned celsius, power_mw, limit_mw, sm_mhz, max_sm_mhz;
	int pstate, major, minor;
	unsigned process_count;
	nvmlProcessInfo_v2_t processes[PROCESSES_MAX];
};

/* The figures as last read. */
struct smi {
	struct gpu gpus[GPUS_MAX];
	unsigned gpu_count;
	char driver_version[96];
	int cuda_version;
};

unsigned sg_smi_mib(unsigned long long bytes);
const char *sg_smi_process_name(unsigned pid);

/* -- smi_fields.c -- */
struct field;
struct csv {
	struct {
		const struct field *field;
		char name[64]; /* the name as the user typed it */
	} columns[COLUMNS_MAX];
	unsigned count;
	bool apps; /* one row for each process, instead of one for each GPU */
	bool no_header, no_units;
};

/* These return 0, or the exit status after printing an error. */
int sg_smi_parse_columns(const char *list, bool apps, struct csv *csv);
int sg_smi_parse_format(const char *format, struct csv *csv);
void sg_smi_print_csv(const struct smi *smi, const struct csv *csv, const bool *wanted);
/* Prints every field, for --help-query-gpu and --help-query-compute-apps. */
void sg_smi_list_fields(bool apps);
