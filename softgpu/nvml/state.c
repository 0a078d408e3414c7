/*
 * The server's figures of a device. The lock guards only what was heard last, and is not held while
 * the server is asked.
 */
#include <string.h>

#include "base/time.h"
#include "softgpu/nvml/nvml_local.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t heard_ns; /* 0: nothing was heard */
	struct sg_gpu_state state;
} recent[SG_GPU_MAX];

void sg_nvml_forget(void)
{
	pthread_mutex_lock(&lock);
	memset(recent, 0, sizeof(recent));
	pthread_mutex_unlock(&lock);
}

int sg_nvml_state(nvmlDevice_t device, const void *out, struct sg_gpu_state *ret)
{
	struct sg_msg msg;
	int r = sg_nvml_check(device, out);

	return r ? r : sg_nvml_ask(device, SG_GPU_STATE, &msg, ret, sizeof(*ret));
}

int sg_nvml_window(nvmlDevice_t device, const void *out, struct sg_gpu_state *ret)
{
	uint64_t now_ns = td_time_now_ns();
	int r = sg_nvml_check(device, out);
	bool is_recent;

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	is_recent = now_ns < recent[device->index].heard_ns + TD_NS_PER_MS;
	if (is_recent)
		*ret = recent[device->index].state;
	pthread_mutex_unlock(&lock);
	if (is_recent)
		return NVML_SUCCESS;
	r = sg_nvml_state(device, out, ret);
	pthread_mutex_lock(&lock);
	recent[device->index].heard_ns = r ? 0 : now_ns;
	if (!r)
		recent[device->index].state = *ret;
	pthread_mutex_unlock(&lock);
	return r;
}
