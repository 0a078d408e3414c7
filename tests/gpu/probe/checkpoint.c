/* Question 14: the driver's own checkpoints of another process. */
#include "probe.h"

#include <string.h>

#define POSIX_FD 1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

const char probe_name[] = "checkpoint";
const char probe_question[] =
	"Can a process be locked, checkpointed, restored and unlocked, at how many seconds per GB, "
	"with plain, VMM, exportable VMM (what tandem makes) and managed memory and with work "
	"under way?";

static CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc access_rights = {
	{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

int probe_role(const char *role)
{
	CUmemGenericAllocationHandle handle;
	uint64_t bytes;
	CUdeviceptr at = 0;
	unsigned word = 0;

	probe_begin();
	bytes = probe_within(probe_quick ? 4u << 20 : 1u << 30);
	if (!strcmp(role, "exportable"))
		prop.requestedHandleTypes = POSIX_FD;
	if (!strcmp(role, "vmm") || !strcmp(role, "exportable")) {
		MUST(cuMemCreate, &handle, bytes, &prop, 0);
		MUST(cuMemAddressReserve, &at, bytes, 0, 0, 0);
		MUST(cuMemMap, at, bytes, 0, handle, 0);
		MUST(cuMemSetAccess, at, bytes, &access_rights, 1);
	} else if (!strcmp(role, "managed")) {
		MUST(cuMemAllocManaged, &at, bytes, CU_MEM_ATTACH_GLOBAL);
	} else {
		MUST(cuMemAlloc_v2, &at, bytes);
	}
	MUST(cuMemsetD32_v2, at, 0x5eed, bytes / 4);
	if (!strcmp(role, "busy"))
		probe_spin(NULL, 1, probe_quick ? 10000000 : 1000000000);
	else
		MUST(cuCtxSynchronize);
	probe_say("ready");
	probe_listen();
	probe_must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	MUST(cuMemcpyDtoH_v2, &word, at + bytes - 4, 4);
	probe_say("%s", word == 0x5eed ? "right" : "wrong");
	return 0;
}

static char text[2000];

static void attempt(const char *role, double gigabytes)
{
	struct probe_child child = probe_start(role, NULL);
	struct {
		unsigned timeout_ms, reserved;
		uint64_t more[7];
	} lock = {.timeout_ms = 10000};
	uint64_t zero[3][8] = {{0}}, t;
	const char *failed = NULL;
	CUresult r;

	if (strcmp(probe_line(&child), "ready")) {
		(void)probe_end(&child, 1000);
		return;
	}
	t = probe_now_ns();
	r = cu.cuCheckpointProcessLock(child.pid, (void *)&lock);
	failed = r ? "lock" : NULL;
	probe_value(probe_us_since(t) / 1e3, "ms", "lock, %s", role);
	if (!r) {
		t = probe_now_ns();
		r = cu.cuCheckpointProcessCheckpoint(child.pid, (void *)zero[0]);
		failed = r ? "checkpoint" : NULL;
		if (!r)
			probe_value(probe_us_since(t) / 1e6 / gigabytes, "s/GB", "checkpoint, %s",
				role);
		t = probe_now_ns();
		if (!r)
			r = cu.cuCheckpointProcessRestore(child.pid, (void *)zero[1]);
		if (r && !failed)
			failed = "restore";
		if (!r)
			probe_value(
				probe_us_since(t) / 1e6 / gigabytes, "s/GB", "restore, %s", role);
		(void)cu.cuCheckpointProcessUnlock(child.pid, (void *)zero[2]);
	}
	snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s: %s%s", role,
		failed ? failed : "done", failed ? " refused: " : ", content ");
	if (failed)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s;", probe_error(r));
	probe_tell(&child, "go");
	if (!failed)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s;",
			probe_line(&child));
	(void)probe_end(&child, 5000);
}

void probe_run(void)
{
	static const char *const roles[] = {"plain", "vmm", "exportable", "managed", "busy"};
	double gigabytes;

	probe_begin();
	gigabytes = (double)probe_within(probe_quick ? 4u << 20 : 1u << 30) / 1e9;
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		attempt(roles[i], gigabytes);
	probe_answer("%s", text);
}
