/*
 * Load, fork and end of the library. exec needs no handling: the kernel closes the descriptors, and
 * the new program loads the library again. A forked child has one thread, no agent and no
 * connection, and none of its parent's CUDA state. So everything starts as if just loaded. No lock
 * is held around the fork: the child resets state without reading it.
 */
#include <stdbool.h>
#include <stddef.h>

#include "preload/agent/agent.h"
#include "preload/agent/clean_exit.h"
#include "preload/agent/moves.h"
#include "preload/agent/place.h"
#include "preload/base/backend.h"
#include "preload/base/settings.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/context/drain.h"
#include "preload/context/marker.h"
#include "preload/driver/choose.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/gate/pace.h"
#include "preload/measure/service.h"
#include "preload/measure/steps.h"
#include "preload/ipc/ipc.h"
#include "preload/link/client_internal.h"
#include "preload/link/host.h"
#include "preload/memory/late.h"
#include "preload/move/move.h"
#include "preload/outside/graphs.h"
#include "preload/outside/libraries.h"
#include "preload/outside/outside.h"
#include "preload/rehome/rehome.h"
#include "preload/swap/peers.h"
#include "preload/swap/swap.h"

static void in_child(void)
{
	td_exit_forked();
	td_agent_forked();
	td_client_forked();
	td_host_forked();
	td_context_forked();
	td_drain_forked();
	td_late_forked();
	td_pace_forked();
	td_marker_forked();
	td_steps_forked();
	td_service_forked();
	td_gate_forked();
	td_graphs_forked();
	td_libraries_forked();
	td_ipc_forked();
	td_peers_forked();
	td_init_forked();
	td_rehome_forked();
	td_agent_backend()->forked();
	td_choose_forked();
}

static void use_backend(enum td_backend_kind kind)
{
	static const struct td_backend *const backends[TD_BACKEND_N] = {
		[TD_BACKEND_PLAIN] = &td_backend_plain,
		[TD_BACKEND_SWAP] = &td_backend_swap,
		[TD_BACKEND_MANAGED] = &td_backend_managed,
	};

	td_agent_set_backend(td_outside_over(backends[kind]));
}

/*
 * glibc's pthread_atfork is linked in statically and refers to a symbol that musl lacks, which
 * would keep every program on musl from starting. So that symbol is weak here, and musl's own
 * pthread_atfork is looked up.
 */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
	void *library) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void at_fork(void (*before)(void), void (*after)(void), void (*child)(void))
{
	int (*musls)(void (*)(void), void (*)(void), void (*)(void));

	if (__register_atfork) {
		(void)__register_atfork(before, after, child, __dso_handle);
		return;
	}
	*(void **)&musls = td_libc_symbol("pthread_atfork");
	if (musls)
		(void)musls(before, after, child);
}

void td_begin(void)
{
	static bool begun;

	if (begun)
		return;
	begun = true;
	td_libc_find();
	td_signal_hooks_find();
	td_settings_read();
	td_place_read();
	td_choose_init(td_settings.backend,
		&(struct td_chooser){.use = use_backend, .stay = td_swap_pin_all});
	if (td_settings.disabled)
		return;
	td_moves_set_mover(&td_mover);
	(void)td_marker_init();
	td_gate_init();
	td_thread_init();
	at_fork(td_choose_before_fork, td_choose_after_fork, in_child);
}

__attribute__((constructor)) static void begin(void)
{
	td_begin();
}

/*
 * Threads and destructors may still launch after this, so the agent goes on serving the gate. It
 * only stops its periodic checks.
 */
__attribute__((destructor)) static void end(void)
{
	td_exit_begins();
	td_ipc_exiting();
	td_late_exiting();
	td_agent_exiting();
}
