/*
 * Computes how much of a GPU there is to give: gpu.capacity, or less where others take more.
 *
 * Contexts, modules and foreign programs take memory that the daemon does not see directly. It is
 * called the reserve. The daemon learns of it in several ways:
 *   attach    A newcomer tells what is in use on the device before its first allocation. The part
 *             that no known client accounts for is the reserve. It may include memory of processes
 *             that are just dying, so it is not believed beyond what contexts usually take. A
 *             client that comes back after a restart tells the reserve as the lost daemon knew it.
 *   ask       The same figure comes with each ASK. A reserve that was too high falls, so that
 *             nobody is refused memory that is free by now.
 *   leave     When a client leaves, the reserve falls by its share.
 *   overhead  NVML tells how much each process has (overhead.h). The reserve is at least the sum.
 *             This figure comes late, and some systems do not have it.
 *   places    A program makes its context before it can ask for room. So while fewer programs than
 *             gpu.contexts have one, room for the missing ones stays free (docs/decisions/0007).
 *   shortage  A client finds the device full although its limit would do. While nobody else has
 *             memory to give back, the missing bytes do not exist, and the capacity falls by them.
 *             They may be the memory of a process that is just dying, so such a finding expires. It
 *             lasts twice as long each time that it is made again.
 */
#include "daemon/memory/capacity.h"

#include "base/bounds.h"
#include "base/time.h"
#include "daemon/memory/fixed.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/soft.h"
#include "daemon/model/node.h"

#define SHORTAGE_MIN_NS (1 * TD_NS_PER_S)
#define SHORTAGE_MAX_NS (64 * TD_NS_PER_S)
/* A shortage that lasts longer than this is not the memory of a dying process. */
#define DOUBT_NS (2 * SHORTAGE_MIN_NS)
/*
 * When the first client attaches, at most this fraction (1/16) of the device is believed to be in
 * use. A context takes 0.3 to 0.5 GB of 16 to 192.
 */
#define FIRST_SHARE 16
/* At most this fraction (1/32) of the device is kept free for a context that is yet to come. */
#define CONTEXT_PART 32

void td_capacity_tell(struct td_node *node, const struct td_client *client)
{
	const struct td_gpu *gpu = &node->gpus[client->gpu];
	struct td_msg msg = {.type = TD_MSG_TYPE_attached};

	msg.attached.slot = client->slot;
	msg.attached.capacity_bytes = gpu->capacity_bytes;
	msg.attached.reserve_bytes = gpu->reserve_bytes;
	msg.attached.quota_bytes = td_quota_bytes(node, client->process->job, gpu);
	msg.attached.soft_bytes = td_soft_bytes(node, client->process->job, gpu);
	node->io.send(client->process->peer, &msg);
}

static void tell_all(struct td_node *node, uint32_t index)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (td_client_at(it)->gpu == index)
			td_capacity_tell(node, td_client_at(it));
}

/*
 * Returns the bytes of one context: the smallest that NVML reports, or the average of the reserve
 * if NVML reports none.
 */
static uint64_t context_bytes(const struct td_gpu *gpu, uint32_t clients, uint64_t least_overhead)
{
	uint64_t bytes = least_overhead ? least_overhead : gpu->reserve_bytes / clients;

	return bytes < gpu->total_bytes / CONTEXT_PART ? bytes : gpu->total_bytes / CONTEXT_PART;
}

/*
 * Returns the reserve: at least the sum of the clients' known overheads, with room for contexts yet
 * to come.
 */
static uint64_t reserved_bytes(const struct td_node *node, uint32_t index)
{
	const struct td_gpu *gpu = &node->gpus[index];
	uint32_t clients = 0, places = node->options.contexts;
	uint64_t bytes = 0, least = 0;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		uint64_t overhead = td_client_at(it)->overhead_bytes;

		if (td_client_at(it)->gpu != index)
			continue;
		clients++;
		bytes += overhead;
		if (overhead && (!least || overhead < least))
			least = overhead;
	}
	bytes = bytes > gpu->reserve_bytes ? bytes : gpu->reserve_bytes;
	if (clients && clients < places)
		bytes += (places - clients) * context_bytes(gpu, clients, least);
	return bytes;
}

void td_capacity_update(struct td_node *node, uint32_t index)
{
	struct td_gpu *gpu = &node->gpus[index];
	uint64_t wanted = td_options_capacity(&node->options, gpu->total_bytes),
		 taken = reserved_bytes(node, index) + gpu->shortage_bytes,
		 there = gpu->total_bytes > taken ? gpu->total_bytes - taken : 0;
	uint64_t capacity = wanted < there ? wanted : there;

	if (capacity == gpu->capacity_bytes)
		return;
	gpu->capacity_bytes = capacity;
	tell_all(node, index);
}

/*
 * Returns the bytes in use that no client accounts for, and the number of the GPU's clients.
 * managed_is_there says whether to count unified memory as being on the device, which is not known.
 */
static uint64_t unknown_bytes(const struct td_node *node, uint32_t index, uint64_t used_bytes,
	bool managed_is_there, uint64_t *ret_clients)
{
	uint64_t resident = 0;
	struct td_list *it;

	*ret_clients = 0;
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu != index)
			continue;
		resident += client->device.used;
		resident -= managed_is_there ? 0 : client->managed_bytes;
		++*ret_clients;
	}
	return used_bytes > resident ? used_bytes - resident : 0;
}

/*
 * Returns how large the reserve is by the figures of a client that has just attached. Others may
 * have allocated since their last report, which makes it too high. So it is at most the average of
 * the clients so far.
 */
static uint64_t measure(const struct td_node *node, uint32_t index, uint64_t used_bytes)
{
	const struct td_gpu *gpu = &node->gpus[index];
	uint64_t others, measured = unknown_bytes(node, index, used_bytes, true, &others), expected;

	expected = others ? gpu->reserve_bytes / others * (others + 1)
			  : gpu->total_bytes / FIRST_SHARE;
	return measured < expected ? measured : expected;
}

void td_capacity_need(struct td_node *node, uint32_t index, uint64_t used_bytes)
{
	/*
	 * Unified memory is not counted as resident: if it were not, the reserve would come out too
	 * small.
	 */
	uint64_t clients, unknown = unknown_bytes(node, index, used_bytes, false, &clients);

	if (!used_bytes || unknown >= node->gpus[index].reserve_bytes)
		return;
	node->gpus[index].reserve_bytes = unknown;
	td_capacity_update(node, index);
}

void td_capacity_attach(
	struct td_node *node, uint32_t index, uint64_t used_bytes, uint64_t reserve_bytes)
{
	struct td_gpu *gpu = &node->gpus[index];

	if (!reserve_bytes)
		gpu->reserve_bytes = measure(node, index, used_bytes);
	else if (reserve_bytes > gpu->reserve_bytes)
		gpu->reserve_bytes = reserve_bytes;
	gpu->shortage_lasts_ns = 0;
}

void td_capacity_leave(struct td_node *node, uint32_t index)
{
	struct td_gpu *gpu = &node->gpus[index];
	uint64_t others = 0;
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		others += td_client_at(it)->gpu == index;
	gpu->reserve_bytes = gpu->reserve_bytes / (others + 1) * others;
	gpu->shortage_lasts_ns = 0;
	td_capacity_update(node, index);
}

/*
 * Returns the bytes that the client keeps whatever its limit is. If its gate is open, these are all
 * its bytes.
 */
static uint64_t kept_bytes(const struct td_client *client)
{
	return client->process->phase == TD_PHASE_OPEN && !td_soft_spills(client)
		       ? client->demanded_bytes
		       : td_fixed_bytes(client);
}

static bool gives_back(const struct td_client *client)
{
	uint64_t kept = kept_bytes(client), limit = td_max_u64(client->device.told, kept);

	if (client->process->stop.is)
		return false;
	return client->process->phase == TD_PHASE_DRAINING ||
	       td_max_u64(client->grant.limit_bytes, kept) < client->device.told ||
	       limit < client->device.believed || limit < client->device.used;
}

bool td_capacity_is_settled(const struct td_node *node, uint32_t index)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu == index && gives_back(client))
			return false;
	}
	return true;
}

/*
 * Sets how long a finding of a shortage lasts. A larger report during a finding extends it but does
 * not double its time.
 */
static void note_lasting(struct td_gpu *gpu, uint64_t now_ns)
{
	if (!gpu->shortage_lasts_ns)
		gpu->shortage_lasts_ns = SHORTAGE_MIN_NS;
	else if (!gpu->shortage_bytes && gpu->shortage_lasts_ns < SHORTAGE_MAX_NS)
		gpu->shortage_lasts_ns *= 2;
	gpu->shortage_until_ns = now_ns + gpu->shortage_lasts_ns;
}

void td_capacity_shortage(struct td_node *node, const struct td_client *client,
	const struct td_msg_shortage *msg, uint64_t now_ns)
{
	struct td_gpu *gpu = &node->gpus[client->gpu];
	uint64_t charged, missing, there, reserved = reserved_bytes(node, client->gpu);

	/*
	 * Only the first report between two steps counts. Another may tell of the same bytes, and
	 * the step asks for them back.
	 */
	if (gpu->shortage_heard || msg->seq != client->device.seq ||
		msg->missing_bytes <= msg->free_bytes || msg->missing_bytes > gpu->capacity_bytes ||
		msg->missing_bytes > client->device.told || /* more than it may have */
		!td_capacity_is_settled(node, client->gpu))
		return;
	/*
	 * Where limits cannot fall with the capacity, the same bytes are found missing again. They
	 * must count only once.
	 */
	td_quota_gather(node);
	charged = gpu->account.charged;
	missing = msg->missing_bytes - msg->free_bytes;
	there = charged > missing ? charged - missing : 0;
	if (there + reserved + gpu->shortage_bytes >= gpu->total_bytes)
		return;
	gpu->shortage_heard = true;
	note_lasting(gpu, now_ns);
	gpu->shortage_bytes = gpu->total_bytes - reserved - there;
	td_node_event(node, TD_EVENT_SHORT, client->process, client->gpu, now_ns, 0,
		gpu->shortage_bytes, "taken by what is not known here");
	td_capacity_update(node, client->gpu);
}

uint64_t td_capacity_doubt(const struct td_gpu *gpu)
{
	return gpu->shortage_lasts_ns <= DOUBT_NS ? gpu->shortage_bytes : 0;
}

uint64_t td_capacity_step(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		struct td_gpu *gpu = &node->gpus[i];

		gpu->shortage_heard = false;
		if (!gpu->shortage_bytes)
			continue;
		if (gpu->shortage_until_ns <= now_ns) {
			gpu->shortage_bytes = 0;
			td_capacity_update(node, i);
		} else if (gpu->shortage_until_ns < wakeup) {
			wakeup = gpu->shortage_until_ns;
		}
	}
	return wakeup;
}
