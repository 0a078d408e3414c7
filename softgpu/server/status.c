/* The server's state as JSON. The keys are documented in docs/softgpu.md. */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/server/internal.h"

/*
 * A run in which interpretation took longer than the model by more than this share of the busy time
 * is void.
 */
#define LAG_SHARE 100

#define U(x) ((unsigned long long)(x))

static void gpu_status(
	FILE *out, const struct sg_server *server, struct sg_gpu *gpu, uint64_t now_ns)
{
	const struct td_timeline_engine *compute = &gpu->timeline.engines[TD_ENGINE_COMPUTE];
	const struct td_moves *total = &gpu->memory.total, *base = &gpu->moves_base;
	uint64_t busy = compute->busy_ns - gpu->busy_base_ns, elapsed = now_ns - gpu->since_ns;
	struct td_list *it, *c;
	unsigned contexts = 0, processes = 0;

	td_list_for_each (it, &server->clients) {
		unsigned mine = 0;

		td_list_for_each (c, &td_container_of(it, struct sg_peer_state, link)->contexts) {
			const struct sg_server_context *context =
				td_container_of(c, struct sg_server_context, link);

			mine += context->gpu == gpu && context->id;
		}
		contexts += mine;
		processes += mine > 0;
	}
	fprintf(out,
		"{\"index\": %u, \"model\": \"%s\", \"memory_bytes\": %llu, \"plain_bytes\": %llu, "
		"\"managed_resident_bytes\": %llu, \"managed_allocations\": %llu, ",
		gpu->index, gpu->spec.name, U(gpu->spec.memory_bytes), U(gpu->memory.plain_bytes),
		U(gpu->memory.resident_bytes), U(gpu->managed_allocations));
	fprintf(out,
		"\"contexts\": %u, \"processes\": %u, \"elapsed_ns\": %llu, \"busy_ns\": %llu, "
		"\"busy_share\": %.4f, \"kernels\": %llu, ",
		contexts, processes, U(elapsed), U(busy),
		elapsed ? (double)busy / (double)elapsed : 0.0, U(gpu->kernels));
	fprintf(out,
		"\"copy_in_bytes\": %llu, \"copy_out_bytes\": %llu, \"copy_device_bytes\": %llu, ",
		U(gpu->copy_in_bytes), U(gpu->copy_out_bytes), U(gpu->copy_device_bytes));
	fprintf(out,
		"\"fault_in_bytes\": %llu, \"prefetch_in_bytes\": %llu, \"paged_out_bytes\": %llu, "
		"\"faults\": %llu, \"fault_groups\": %llu, "
		"\"evictions\": %llu, \"fault_latency_ns\": %llu, \"fault_bytes_per_us\": %llu, "
		"\"prefetch_bytes_per_us\": %llu, ",
		U(total->fault_in_bytes - base->fault_in_bytes),
		U(total->prefetch_in_bytes - base->prefetch_in_bytes),
		U(total->out_bytes - base->out_bytes), U(total->faults - base->faults),
		U(total->groups - base->groups), U(total->evictions - base->evictions),
		U(gpu->spec.fault_latency_ns), U(gpu->spec.fault_bytes_per_us),
		U(gpu->spec.prefetch_bytes_per_us));
	fprintf(out, "\"context_switches\": %llu, \"lag_ns\": %llu, \"lagged\": %s}",
		U(compute->switches - gpu->switches_base), U(gpu->lag_ns),
		gpu->lag_ns * LAG_SHARE > busy ? "true" : "false");
}

char *sg_server_status(struct sg_server *server, uint64_t now_ns)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fprintf(out, "{\"clients\": %u, \"gpus\": [", server->client_count);
	for (uint32_t i = 0; i < server->gpu_count; i++) {
		fputs(i ? ",\n " : "\n ", out);
		gpu_status(out, server, &server->gpus[i], now_ns);
	}
	fputs("\n]}\n", out);
	fclose(out);
	return text;
}
