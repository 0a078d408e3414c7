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
	bool lost; /* it answers nothing but who it is */
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
		char name[64]; /* as it was asked for */
	} columns[COLUMNS_MAX];
	unsigned count;
	bool apps; /* a row for each process, else for each GPU */
	bool no_header, no_units;
};

/* 0, or the exit status; what was wrong has been said. */
int sg_smi_parse_columns(const char *list, bool apps, struct csv *csv);
int sg_smi_parse_format(const char *format, struct csv *csv);
void sg_smi_print_csv(const struct smi *smi, const struct csv *csv, const bool *wanted);
/* --help-query-gpu, --help-query-compute-apps: every field. */
void sg_smi_list_fields(bool apps);
