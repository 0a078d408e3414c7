/* Question 15: memory of one process in another. */
#include "probe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char probe_name[] = "ipc";
const char probe_question[] = "Does legacy IPC work for plain memory and for VMM memory, and can "
			      "an exported VMM descriptor be imported by another process?";

enum { POSIX_DESCRIPTOR = 1, BYTES = 2 << 20, INHERITED = 30 };

static const CUmemAccessDesc access_rights = {
	{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void check(CUdeviceptr at)
{
	unsigned word = 0;
	CUresult r = cu.cuMemcpyDtoH_v2(&word, at, 4);

	probe_say("%s", r ? probe_error(r) : word == 0x5eed ? "works" : "wrong content");
}

/* role: "handle" with the 64 bytes in hex in its environment, or "descriptor". */
int probe_role(const char *role)
{
	const char *hex = getenv("PROBE_HANDLE");
	CUmemGenericAllocationHandle imported;
	CUipcMemHandle handle;
	CUdeviceptr at = 0;
	CUresult r;

	probe_begin();
	if (!strcmp(role, "handle") && hex) {
		for (size_t i = 0; i < sizeof(handle); i++) {
			char two[3] = {hex[2 * i], hex[2 * i + 1], 0};

			((unsigned char *)&handle)[i] = (unsigned char)strtoul(two, NULL, 16);
		}
		r = cu.cuIpcOpenMemHandle_v2(&at, handle, 1);
	} else {
		r = cu.cuMemImportFromShareableHandle(
			&imported, (void *)(uintptr_t)INHERITED, POSIX_DESCRIPTOR);
		if (!r)
			r = cu.cuMemAddressReserve(&at, BYTES, 0, 0, 0);
		if (!r)
			r = cu.cuMemMap(at, BYTES, 0, imported, 0);
		if (!r)
			r = cu.cuMemSetAccess(at, BYTES, &access_rights, 1);
	}
	if (r)
		probe_say("%s", probe_error(r));
	else
		check(at);
	return 0;
}

static void legacy(CUdeviceptr at, char *ret, size_t len)
{
	char extra[32 + 2 * sizeof(CUipcMemHandle)];
	struct probe_child child;
	CUipcMemHandle handle;
	CUresult r = cu.cuIpcGetMemHandle((void *)&handle, at);
	int n;

	if (r) {
		snprintf(ret, len, "%s", probe_error(r));
		return;
	}
	n = snprintf(extra, sizeof(extra), "PROBE_HANDLE=");
	for (size_t i = 0; i < sizeof(handle); i++)
		n += snprintf(extra + n, sizeof(extra) - (size_t)n, "%02x",
			((unsigned char *)&handle)[i]);
	child = probe_start("handle", extra);
	snprintf(ret, len, "%s", probe_line(&child));
	(void)probe_end(&child, 5000);
}

static void exported(CUmemGenericAllocationHandle handle, char *ret, size_t len)
{
	struct probe_child child;
	int fd = -1;
	CUresult r = cu.cuMemExportToShareableHandle(&fd, handle, POSIX_DESCRIPTOR, 0);

	if (r) {
		snprintf(ret, len, "%s", probe_error(r));
		return;
	}
	dup2(fd, INHERITED);
	child = probe_start("descriptor", NULL);
	snprintf(ret, len, "%s", probe_line(&child));
	(void)probe_end(&child, 5000);
}

void probe_run(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = POSIX_DESCRIPTOR,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	char plain[100], vmm[100] = "not asked", descriptor[100] = "not asked";
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at, mapped;
	CUresult r;

	probe_begin();
	MUST(cuMemAlloc_v2, &at, BYTES);
	MUST(cuMemsetD32_v2, at, 0x5eed, BYTES / 4);
	MUST(cuCtxSynchronize);
	legacy(at, plain, sizeof(plain));
	r = cu.cuMemCreate(&handle, BYTES, &prop, 0);
	if (r)
		probe_answer("legacy IPC of plain memory: %s; exportable VMM memory: %s", plain,
			probe_error(r));
	MUST(cuMemAddressReserve, &mapped, BYTES, 0, 0, 0);
	MUST(cuMemMap, mapped, BYTES, 0, handle, 0);
	MUST(cuMemSetAccess, mapped, BYTES, &access_rights, 1);
	MUST(cuMemsetD32_v2, mapped, 0x5eed, BYTES / 4);
	MUST(cuCtxSynchronize);
	legacy(mapped, vmm, sizeof(vmm));
	exported(handle, descriptor, sizeof(descriptor));
	probe_answer("legacy IPC of plain memory: %s; of VMM memory: %s; exported descriptor of "
		     "VMM memory: %s",
		plain, vmm, descriptor);
}
