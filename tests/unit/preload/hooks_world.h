/*
 * libtandem's hooks over a driver of the test's own, without a daemon: the common beginning and
 * checks of such tests.
 */
#pragma once

#include "unit/preload/fake_vmm.h"
#include "preload/agent/agent.h"
#include "preload/base/backend.h"
#include "preload/base/settings.h"
#include "preload/context/context.h"
#include "preload/context/marker.h"
#include "preload/driver/driver.h"
#include "preload/gate/gate.h"
#include "preload/outside/outside.h"
#include "unit/preload/stub_driver.h"
#include "test.h"

#define BYTES   (4ull << 20)
#define ADDRESS 0x10000u

/* Behind vmm_begin() and what else the test puts into td_real. */
static void hooks_begin(const struct td_backend *backend)
{
	static bool once;

	td_real.cuDeviceGetUuid = stub_uuid;
	td_real.cuDeviceTotalMem_v2 = stub_total;
	td_real.cuMemGetInfo_v2 = stub_info;
	if (!once) {
		td_marker_init();
		td_gate_init();
		td_driver_publish_real();
	}
	once = true;
	td_settings.socket[0] = 0; /* no daemon, and no agent */
	td_context_forked();
	td_agent_set_backend(td_outside_over(backend));
	td_agent_backend()->forked();
}

__attribute__((unused)) static uint64_t demanded(void)
{
	struct td_memory_stats stats;

	td_agent_stats(0, &stats);
	return stats.demanded_bytes;
}

__attribute__((unused)) static CUdeviceptr allocate(void)
{
	CUdeviceptr address = 0;

	CHECK_EQ(td_hook_cuMemAlloc_v2(&address, BYTES), CUDA_SUCCESS);
	return address;
}
