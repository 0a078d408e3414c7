/* See overhead.h. */
#include "daemon/overhead.h"

#include <string.h>

#include "base/time.h"
#include "daemon/job.h"
#include "daemon/node.h"

/* A newcomer is looked at this often, and for so long: where NVML does not tell, it will not. */
#define SOON_NS     (50 * TD_NS_PER_MS)
#define PATIENCE_NS (2 * TD_NS_PER_S)

static const struct td_nvml_use *find(const struct td_node *node, const struct td_client *client,
	const struct td_nvml_gpu *gpus, const struct td_nvml_use *uses, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (uses[i].pid == (uint32_t)client->process->pid &&
			!memcmp(gpus[uses[i].gpu].uuid, node->gpus[client->gpu].uuid, 16))
			return &uses[i];
	return NULL;
}

static void observe(struct td_client *client, uint64_t used_bytes)
{
	uint64_t resident = client->resident_bytes,
		 bytes = used_bytes > resident ? used_bytes - resident : 0;

	if (client->seen.valid && client->seen.resident_bytes == resident) {
		client->overhead_bytes =
			bytes < client->seen.overhead_bytes ? bytes : client->seen.overhead_bytes;
		client->overhead_known = true;
	}
	client->seen.valid = true;
	client->seen.resident_bytes = resident;
	client->seen.overhead_bytes = bytes;
}

void td_overhead_seen(struct td_node *node, const struct td_nvml_gpu *gpus,
	const struct td_nvml_use *uses, uint32_t count)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_node);
		const struct td_nvml_use *use = find(node, client, gpus, uses, count);

		if (use)
			observe(client, use->bytes);
		else
			client->seen.valid = false;
	}
}

uint64_t td_overhead_wants_ns(const struct td_node *node, uint64_t sampled_ns, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);
		const struct td_job_settings *settings = &client->process->job->settings;

		if (!client->overhead_known && (*settings->mem || *settings->mem_soft) &&
			now_ns < client->attached_ns + PATIENCE_NS)
			return sampled_ns + SOON_NS;
	}
	return TD_NEVER;
}
