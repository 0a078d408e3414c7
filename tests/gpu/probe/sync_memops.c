/* Question 33: what registering memory with other hardware asks of it first. */
#include "probe.h"

const char probe_name[] = "sync_memops";
const char probe_question[] = "Which memory takes CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, and do network "
			      "cards reach memory by cuMemCreate?";

#define BYTES        (2u << 20)
#define SYNC_MEMOPS  6
#define RDMA         116
#define RDMA_AND_VMM 110

static CUresult set_on(CUdeviceptr at)
{
	unsigned on = 1;

	return cu.cuPointerSetAttribute(&on, SYNC_MEMOPS, at);
}

static CUdeviceptr mapped(int for_rdma)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.allocFlags.gpuDirectRDMACapable = (unsigned char)for_rdma};
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	MUST(cuMemAddressReserve, &at, BYTES, 0, 0, 0);
	MUST(cuMemCreate, &handle, BYTES, &prop, 0);
	MUST(cuMemMap, at, BYTES, 0, handle, 0);
	MUST(cuMemSetAccess, at, BYTES, &access, 1);
	return at;
}

void probe_run(void)
{
	CUdeviceptr plain;
	int with_vmm;

	probe_begin();
	with_vmm = probe_attribute(RDMA_AND_VMM) == 1;
	probe_value(probe_attribute(RDMA), "", "GPUDirect RDMA");
	probe_value(with_vmm, "", "GPUDirect RDMA with memory by cuMemCreate");
	MUST(cuMemAlloc_v2, &plain, BYTES);
	probe_answer("memory of cuMemAlloc: %s; by cuMemCreate: %s; made for RDMA: %s",
		probe_error(set_on(plain)), probe_error(set_on(mapped(0))),
		with_vmm ? probe_error(set_on(mapped(1))) : "not supported");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
