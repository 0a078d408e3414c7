/*
 * Translates packets to calls of the model, and its results to packets; see server.h. Status text
 * is in status.c.
 */
#include "softgpu/server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/kernel.h"
#include "softgpu/server/internal.h"

#define PPM 1000000u

void sg_server_init(struct sg_server *server, const struct td_gpu_spec *spec, uint32_t gpu_count,
	uint64_t now_ns)
{
	memset(server, 0, sizeof(*server));
	td_list_init(&server->clients);
	td_list_init(&server->mps);
	for (uint32_t i = 0; i < SG_SHARED_BUCKETS; i++)
		td_list_init(&server->shared[i]);
	server->gpu_count = gpu_count;
	for (uint32_t i = 0; i < gpu_count; i++) {
		struct sg_gpu *gpu = &server->gpus[i];

		gpu->index = i;
		gpu->spec = *spec;
		gpu->since_ns = now_ns;
		td_timeline_init(&gpu->timeline, &gpu->spec, now_ns);
		td_memory_init(&gpu->memory, &gpu->spec);
		td_load_init(&gpu->load, &gpu->spec, SG_LOAD_WINDOW_NS, 0, now_ns);
		td_load_init(&gpu->link_load, &gpu->spec, SG_LOAD_WINDOW_NS, 0, now_ns);
	}
	sg_server_identify(server, 0);
	sg_server_set_features(server, SG_FEATURE_HOST_VMM | SG_FEATURE_IPC_KEEPS);
}

void sg_server_set_features(struct sg_server *server, uint32_t features)
{
	for (uint32_t i = 0; i < server->gpu_count; i++)
		server->gpus[i].features = features;
}

void sg_server_identify(struct sg_server *server, uint64_t instance)
{
	for (uint32_t i = 0; i < server->gpu_count; i++) {
		uint8_t *uuid = server->gpus[i].uuid;

		memcpy(uuid, "softgpu", 7);
		memcpy(uuid + 7, &instance, sizeof(instance));
		uuid[15] = (uint8_t)i;
	}
}

static void free_op(struct sg_server_op *op)
{
	td_list_remove(&op->link);
	op->client->op_count--;
	free(op->touches);
	free(op);
}

/* Tells the owner of each operation that is done by now. */
static void advance_timeline(struct sg_server *server, struct sg_gpu *gpu, uint64_t now_ns)
{
	struct td_done done;

	while (td_timeline_advance(&gpu->timeline, now_ns, &done)) {
		struct sg_server_op *op = td_container_of(done.op, struct sg_server_op, op);

		gpu->sm_busy_ns += (uint64_t)((double)op->length_ns * op->sm_ppm / 1e6);
		struct sg_msg msg = {.type = SG_DONE,
			.op = op->id,
			.value = done.start_ns,
			.value2 = done.end_ns};

		gpu->lag_ns += done.lag_ns;
		server->send(op->client->peer, &msg, NULL, 0);
		free_op(op);
	}
}

/* The load is taken window by window while there is work; without work one step tells as much. */
static void advance_gpu(struct sg_server *server, struct sg_gpu *gpu, uint64_t now_ns)
{
	while (td_timeline_next_event(&gpu->timeline) != TD_NEVER_NS) {
		uint64_t end_ns = gpu->load.window_start_ns + gpu->load.window_ns;

		if (end_ns >= now_ns)
			break;
		advance_timeline(server, gpu, end_ns);
		sg_gpu_load_update(gpu, end_ns);
	}
	advance_timeline(server, gpu, now_ns);
	sg_gpu_load_update(gpu, now_ns);
}

uint64_t sg_server_advance(struct sg_server *server, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < server->gpu_count; i++) {
		uint64_t at;

		if (server->gpus[i].hung)
			continue;
		advance_gpu(server, &server->gpus[i], now_ns);
		at = td_timeline_next_event(&server->gpus[i].timeline);
		next = at < next ? at : next;
	}
	return next;
}

void sg_server_fail_operations(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_gpu *gpu)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &client->ops) {
		struct sg_server_op *op = td_container_of(it, struct sg_server_op, link);
		struct sg_msg msg = {.type = SG_DONE, .error = SG_ERR_HANDLE, .op = op->id};

		if (gpu && op->context->gpu != gpu)
			continue;
		client->failed = true;
		td_timeline_cancel(&op->context->gpu->timeline, &op->op);
		server->send(client->peer, &msg, NULL, 0);
		free_op(op);
	}
}

struct sg_peer_state *sg_server_connect(struct sg_server *server, void *peer, pid_t pid)
{
	struct sg_peer_state *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->peer = peer;
	client->pid = pid;
	td_list_init(&client->contexts);
	td_list_init(&client->ranges);
	td_list_init(&client->ops);
	td_list_init(&client->holds);
	td_list_append(&server->clients, &client->link);
	server->client_count++;
	return client;
}

/* Operations are freed first: they must not serve the pages and contexts any more. */
static void free_context(struct sg_peer_state *client, struct sg_server_context *context)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &client->ops) {
		struct sg_server_op *op = td_container_of(it, struct sg_server_op, link);

		if (op->context == context) {
			td_timeline_cancel(&context->gpu->timeline, &op->op);
			free_op(op);
		}
	}
	td_timeline_context_remove(&context->gpu->timeline, &context->timeline);
	td_list_for_each_safe (it, tmp, &client->ranges) {
		struct sg_server_range *range = td_container_of(it, struct sg_server_range, link);

		if (range->context != context)
			continue;
		td_memory_range_remove(&context->gpu->memory, &range->range);
		td_list_remove(&range->link);
		free(range->pages);
		free(range);
	}
	td_memory_context_remove(&context->gpu->memory, &context->memory);
	td_list_remove(&context->link);
	free(context);
}

void sg_server_disconnect(struct sg_server *server, struct sg_peer_state *client, uint64_t now_ns)
{
	struct td_list *it, *tmp;

	(void)sg_server_advance(server, now_ns);
	sg_mps_client_leaves(server, client);
	td_list_for_each_safe (it, tmp, &client->contexts)
		free_context(client, td_container_of(it, struct sg_server_context, link));
	sg_shared_gone(client);
	td_list_remove(&client->link);
	sg_mps_gone(server, client);
	server->client_count--;
	free(client);
}

static struct sg_server_context *find_context(
	struct sg_peer_state *client, uint32_t gpu, uint32_t id)
{
	struct td_list *it;

	td_list_for_each (it, &client->contexts) {
		struct sg_server_context *context =
			td_container_of(it, struct sg_server_context, link);

		if (context->id == id && context->gpu->index == gpu)
			return context;
	}
	return NULL;
}

/*
 * id 0 is for memory that the process owns without a context (cuMemCreate). Such a context costs no
 * memory of its own.
 */
static int new_context(struct sg_server *server, struct sg_peer_state *client, uint32_t gpu_index,
	uint32_t id, struct sg_server_context **ret)
{
	struct sg_gpu *gpu = &server->gpus[gpu_index];
	struct sg_server_context *context;
	struct td_moves moves = {0};

	if (client->context_count == SG_CONTEXTS_MAX)
		return SG_ERR_MEMORY;
	if (gpu->lost)
		return SG_ERR_LOST;
	context = calloc(1, sizeof(*context));
	if (!context)
		return SG_ERR_MEMORY;
	if (td_memory_context_add(&gpu->memory, &context->memory, id ? gpu->spec.context_bytes : 0,
		    &moves) == TD_MEMORY_FULL) {
		free(context);
		return SG_ERR_MEMORY;
	}
	context->gpu = gpu;
	context->id = id;
	td_timeline_context_add(&gpu->timeline, &context->timeline);
	td_list_append(&client->contexts, &context->link);
	client->context_count++;
	*ret = context;
	return SG_OK;
}

/* The context that a memory call means; the process's own is made on first use. */
static struct sg_server_context *memory_context(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_context *context = find_context(client, msg->gpu, msg->context);

	if (!context && !msg->context)
		(void)new_context(server, client, msg->gpu, 0, &context);
	return context;
}

static int context_new(struct sg_server *server, struct sg_peer_state *client,
	const struct sg_msg *msg, struct sg_msg *reply)
{
	struct sg_server_context *context;
	int error = sg_mps_admit(server, client, &server->gpus[msg->gpu]);

	if (!error)
		error = new_context(server, client, msg->gpu, server->next_context + 1, &context);
	if (error)
		return error;
	sg_mps_context_new(client, context, msg->value);
	reply->value = ++server->next_context;
	return SG_OK;
}

static int context_free(struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_context *context =
		msg->context ? find_context(client, msg->gpu, msg->context) : NULL;

	if (!context)
		return SG_ERR_HANDLE;
	free_context(client, context);
	client->context_count--;
	return SG_OK;
}

static int memory_reserve(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_context *context = memory_context(server, client, msg);
	struct td_moves moves = {0};

	if (!context)
		return SG_ERR_HANDLE;
	if (msg->bytes > context->gpu->spec.memory_bytes ||
		!sg_mps_has_room(client, context->gpu, msg->bytes))
		return SG_ERR_MEMORY;
	return td_memory_reserve(&context->gpu->memory, &context->memory, msg->bytes, &moves) ==
			       TD_MEMORY_FULL
		       ? SG_ERR_MEMORY
		       : SG_OK;
}

static int memory_release(struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_context *context = find_context(client, msg->gpu, msg->context);
	uint64_t own;

	if (!context)
		return SG_ERR_HANDLE;
	own = context->id ? context->gpu->spec.context_bytes : 0;
	/* A checkpointed process has nothing here, not even its own memory. */
	if (context->memory.plain_bytes < own || msg->bytes > context->memory.plain_bytes - own)
		return SG_ERR_VALUE;
	td_memory_release(&context->gpu->memory, &context->memory, msg->bytes);
	return SG_OK;
}

/*
 * Shares the memory as a whole or not at all. Memory that is given back for a moment cannot go to
 * others meanwhile.
 */
static int memory_share(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_context *context = find_context(client, msg->gpu, msg->context);
	struct td_moves moves = {0};
	int error = memory_release(client, msg);

	if (error)
		return error;
	error = sg_shared_hold(server, client, msg);
	if (error)
		(void)td_memory_reserve(
			&context->gpu->memory, &context->memory, msg->bytes, &moves);
	return error;
}

static int managed_new(struct sg_server *server, struct sg_peer_state *client,
	const struct sg_msg *msg, struct sg_msg *reply)
{
	struct sg_server_context *context = memory_context(server, client, msg);
	struct sg_server_range *range;
	uint64_t pages;

	if (!context)
		return SG_ERR_HANDLE;
	/* Records are ours to pay: managed memory may exceed the GPU, but not without bound. */
	if (!msg->bytes || msg->bytes > SG_MANAGED_MAX)
		return SG_ERR_VALUE;
	pages = td_memory_page_count(&context->gpu->memory, msg->bytes);
	range = calloc(1, sizeof(*range));
	if (!range)
		return SG_ERR_MEMORY;
	range->pages = calloc(pages, sizeof(*range->pages));
	if (!range->pages) {
		free(range);
		return SG_ERR_MEMORY;
	}
	range->id = ++server->next_range;
	context->gpu->managed_allocations++;
	range->context = context;
	td_memory_range_add(
		&context->gpu->memory, &context->memory, &range->range, range->pages, pages);
	td_list_append(&client->ranges, &range->link);
	reply->value = range->id;
	return SG_OK;
}

static struct sg_server_range *find_range(struct sg_peer_state *client, uint32_t id)
{
	struct td_list *it;

	td_list_for_each (it, &client->ranges) {
		struct sg_server_range *range = td_container_of(it, struct sg_server_range, link);

		if (range->id == id)
			return range;
	}
	return NULL;
}

static int managed_free(struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_range *range = find_range(client, msg->range);
	struct td_list *it;

	if (!range)
		return SG_ERR_HANDLE;
	/*
	 * Kernels that will access the memory must be over: the driver synchronises before it
	 * frees.
	 */
	td_list_for_each (it, &client->ops) {
		const struct sg_server_op *op = td_container_of(it, struct sg_server_op, link);

		for (size_t i = 0; i < op->touch_count; i++)
			if (op->touches[i].range == &range->range)
				return SG_ERR_VALUE;
	}
	td_memory_range_remove(&range->context->gpu->memory, &range->range);
	td_list_remove(&range->link);
	free(range->pages);
	free(range);
	return SG_OK;
}

static struct sg_server_op *find_op(struct sg_peer_state *client, uint64_t id)
{
	struct td_list *it;

	td_list_for_each (it, &client->ops) {
		struct sg_server_op *op = td_container_of(it, struct sg_server_op, link);

		if (op->id == id)
			return op;
	}
	return NULL;
}

static struct sg_server_op *new_op(struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_context *context =
		msg->context ? find_context(client, msg->gpu, msg->context) : NULL;
	struct sg_server_op *op;

	if (!context || client->op_count >= SG_OPS_MAX || find_op(client, msg->op))
		return NULL;
	op = calloc(1, sizeof(*op));
	if (!op)
		return NULL;
	op->id = msg->op;
	op->client = client;
	op->context = context;
	td_list_append(&client->ops, &op->link);
	client->op_count++;
	return op;
}

static double of_ppm(uint64_t ppm)
{
	return ppm < PPM ? (double)ppm / PPM : 1;
}

static int fail_at_once(struct sg_server *server, struct sg_server_op *op)
{
	struct sg_msg msg = {.type = SG_DONE, .error = SG_ERR_HANDLE, .op = op->id};

	op->client->failed = true;
	server->send(op->client->peer, &msg, NULL, 0);
	free_op(op);
	return 0;
}

static int op_begin(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	static const enum td_engine engines[SG_ENGINE_N] = {
		TD_ENGINE_COMPUTE, TD_ENGINE_HTOD, TD_ENGINE_DTOH, TD_ENGINE_COMPUTE};
	static const enum td_copy copies[SG_ENGINE_N] = {
		0, TD_COPY_HTOD, TD_COPY_DTOH, TD_COPY_DTOD};
	struct sg_server_op *op = msg->engine < SG_ENGINE_N ? new_op(client, msg) : NULL;
	struct sg_gpu *gpu;

	if (!op)
		return -EPROTO;
	gpu = op->context->gpu;
	if (gpu->lost || client->mps_error)
		return fail_at_once(server, op);
	op->stuck = sg_mps_hangs(client);
	if (op->stuck)
		return 0;
	/*
	 * A real GPU has its own queue. Here the next kernel is reported only after its program has
	 * heard of the last one's end, so that delay is corrected.
	 */
	if (msg->engine == SG_ENGINE_COMPUTE && msg->value2)
		td_timeline_begin_queued(&gpu->timeline, &op->context->timeline, &op->op,
			TD_ENGINE_COMPUTE, msg->value2, SG_LATE_MAX_NS);
	else
		td_timeline_begin(
			&gpu->timeline, &op->context->timeline, &op->op, engines[msg->engine]);
	switch ((enum sg_engine)msg->engine) {
	case SG_ENGINE_COMPUTE:
		gpu->kernels++;
		if (msg->range)
			td_timeline_set_load(&gpu->timeline, &op->op, of_ppm(msg->range), 0);
		return 0;
	case SG_ENGINE_H2D:
		gpu->copy_in_bytes += msg->value;
		gpu->in_bytes += msg->value;
		break;
	case SG_ENGINE_D2H:
		gpu->copy_out_bytes += msg->value;
		gpu->out_bytes += msg->value;
		break;
	case SG_ENGINE_D2D:
		gpu->copy_device_bytes += msg->value;
		td_timeline_set_load(&gpu->timeline, &op->op, 0, 1);
		break;
	case SG_ENGINE_N: return -EPROTO;
	}
	td_timeline_set_length(&gpu->timeline, &op->op,
		td_model_copy_ns(&gpu->spec, copies[msg->engine], msg->value,
			!(msg->flags & SG_FLAG_PAGEABLE)));
	op->has_length = true;
	return 0;
}

static int op_prefetch(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_range *range = find_range(client, msg->range);
	struct sg_server_op *op = range ? new_op(client, msg) : NULL;
	struct td_moves moves = {0};
	struct sg_gpu *gpu;
	uint64_t first, last, page;

	if (!op)
		return -EPROTO;
	gpu = range->context->gpu;
	if (gpu->lost || client->mps_error)
		return fail_at_once(server, op);
	op->stuck = sg_mps_hangs(client);
	if (op->stuck)
		return 0;
	page = gpu->spec.page_bytes;
	first = msg->value / page;
	last = msg->value2 ? (msg->value + msg->value2 - 1) / page : first;
	if (gpu != op->context->gpu || msg->value + msg->value2 < msg->value ||
		last >= range->range.page_count)
		return -EPROTO;
	if (msg->engine == SG_ENGINE_H2D)
		td_memory_prefetch_device(
			&gpu->memory, &range->range, first, last - first + 1, &moves);
	else
		td_memory_prefetch_host(
			&gpu->memory, &range->range, first, last - first + 1, &moves);
	td_timeline_begin(&gpu->timeline, &op->context->timeline, &op->op,
		msg->engine == SG_ENGINE_H2D ? TD_ENGINE_HTOD : TD_ENGINE_DTOH);
	td_timeline_set_length(&gpu->timeline, &op->op, td_model_moves_ns(&gpu->spec, &moves));
	op->has_length = true;
	return 0;
}

static int op_touch(
	struct sg_peer_state *client, const struct sg_msg *msg, const void *extra, size_t len)
{
	struct sg_server_op *op = find_op(client, msg->op);
	struct sg_touch run;
	struct td_touch *touches;
	size_t count = msg->value;

	if (!op)
		return client->failed ? 0 : -EPROTO; /* its context may have failed meanwhile */
	if (op->has_length || count > SG_TOUCH_MAX || len != count * sizeof(run) ||
		op->touch_count + count > SG_TOUCHES_MAX)
		return -EPROTO;
	touches = realloc(op->touches, (op->touch_count + count) * sizeof(*touches));
	if (!touches)
		return -EPROTO;
	op->touches = touches;
	for (size_t i = 0; i < count; i++) {
		struct sg_server_range *range;

		memcpy(&run, (const char *)extra + i * sizeof(run), sizeof(run));
		range = find_range(client, run.range);
		if (!range || range->context->gpu != op->context->gpu || !run.count ||
			run.first >= range->range.page_count ||
			run.count > range->range.page_count - run.first)
			return -EPROTO;
		op->touches[op->touch_count++] =
			(struct td_touch){&range->range, run.first, run.count, run.write != 0};
	}
	return 0;
}

static int op_length(struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_server_op *op = find_op(client, msg->op);
	struct sg_gpu *gpu;

	if (!op)
		return client->failed ? 0 : -EPROTO;
	if (op->has_length || msg->value >= TD_NEVER_NS / 2 || msg->value2 > PPM)
		return -EPROTO;
	gpu = op->context->gpu;
	op->has_length = true;
	if (op->stuck)
		return 0;
	if (msg->range || msg->bytes)
		td_timeline_set_load(
			&gpu->timeline, &op->op, of_ppm(msg->range), of_ppm(msg->bytes));
	op->length_ns = msg->value;
	op->sm_ppm = (uint32_t)msg->value2;
	if (!op->touch_count) {
		td_timeline_set_length(&gpu->timeline, &op->op, msg->value);
		return 0;
	}
	td_kernel_paging_init(&op->paging, &gpu->spec, &gpu->memory, op->touches, op->touch_count);
	td_kernel_paging_start(&op->paging, &gpu->timeline, &op->op, msg->value);
	return 0;
}

static void reset_counters(struct sg_server *server, uint64_t now_ns)
{
	for (uint32_t i = 0; i < server->gpu_count; i++) {
		struct sg_gpu *gpu = &server->gpus[i];

		gpu->since_ns = now_ns;
		gpu->busy_base_ns = gpu->timeline.engines[TD_ENGINE_COMPUTE].busy_ns;
		gpu->switches_base = gpu->timeline.engines[TD_ENGINE_COMPUTE].switches;
		gpu->lag_ns = gpu->kernels = 0;
		gpu->copy_in_bytes = gpu->copy_out_bytes = gpu->copy_device_bytes = 0;
		gpu->managed_allocations = 0;
		gpu->moves_base = gpu->memory.total;
	}
}

/* The requests that are answered. Returns the reply's error, or -EPROTO. */
static int request(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg,
	struct sg_msg *reply, uint64_t now_ns)
{
	switch (msg->type) {
	case SG_HELLO:
		reply->value = server->gpu_count;
		return msg->value == SG_WIRE_VERSION ? SG_OK : SG_ERR_VERSION;
	case SG_CONTEXT_NEW: return context_new(server, client, msg, reply);
	case SG_CONTEXT_FREE: return context_free(client, msg);
	case SG_MEMORY_RESERVE: return memory_reserve(server, client, msg);
	case SG_MEMORY_RELEASE: return memory_release(client, msg);
	case SG_MEMORY_HOLD: return sg_shared_hold(server, client, msg);
	case SG_MEMORY_DROP: return sg_shared_drop(server, client, msg);
	case SG_MEMORY_SHARE: return memory_share(server, client, msg);
	case SG_MEMORY_INFO:
		reply->value = td_memory_available_bytes(&server->gpus[msg->gpu].memory);
		reply->value2 = server->gpus[msg->gpu].spec.memory_bytes;
		return SG_OK;
	case SG_MANAGED_NEW: return managed_new(server, client, msg, reply);
	case SG_MANAGED_FREE: return managed_free(client, msg);
	case SG_RESET_COUNTERS: reset_counters(server, now_ns); return SG_OK;
	case SG_FAULT: return sg_fault_inject(server, msg);
	case SG_CHECKPOINT: return sg_checkpoint(server, msg, reply);
	case SG_MPS_SERVE:
	case SG_MPS_JOIN:
	case SG_MPS_SET:
	case SG_MPS_LIMIT:
	case SG_MPS_TERMINATE: return sg_mps_request(server, client, msg, reply);
	case SG_STOP: server->stop = true; return SG_OK;
	default: return -EPROTO;
	}
}

static int answer(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg,
	uint64_t now_ns)
{
	struct sg_msg reply = {.type = SG_REPLY, .ticket = msg->ticket, .gpu = msg->gpu};
	int error;

	if (sg_server_report(server, client, msg, now_ns))
		return 0;
	error = request(server, client, msg, &reply, now_ns);
	if (error < 0)
		return error;
	reply.error = (uint32_t)error;
	server->send(client->peer, &reply, NULL, 0);
	if (msg->type == SG_HELLO)
		sg_fault_tell(server, client);
	return 0;
}

int sg_server_packet(struct sg_server *server, struct sg_peer_state *client, const void *packet,
	size_t len, uint64_t now_ns)
{
	struct sg_msg msg;

	if (len < sizeof(msg))
		return -EPROTO;
	memcpy(&msg, packet, sizeof(msg));
	if (msg.gpu >= server->gpu_count)
		return -EPROTO;
	(void)sg_server_advance(server, now_ns);
	switch (msg.type) {
	case SG_OP_BEGIN: return op_begin(server, client, &msg);
	case SG_OP_PREFETCH: return op_prefetch(server, client, &msg);
	case SG_OP_TOUCH:
		return op_touch(
			client, &msg, (const char *)packet + sizeof(msg), len - sizeof(msg));
	case SG_OP_LENGTH: return op_length(client, &msg);
	case SG_LOCKED: sg_checkpoint_locked(client, msg.value); return 0;
	case SG_XID: sg_fault_xid(server, msg.gpu, msg.value); return 0;
	case SG_MPS_FAULT: sg_mps_fault(server, client, msg.gpu, msg.value); return 0;
	case SG_MPS_LEAVE: client->mps_left = true; return 0;
	default: return answer(server, client, &msg, now_ns);
	}
}
