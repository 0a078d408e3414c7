/* Handles connections; see peer.h. */
#include "daemon/server/peers/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/time.h"
#include "daemon/execute/actions.h"
#include "daemon/memory/overhead.h"
#include "daemon/model/job.h"
#include "daemon/model/machine/procfs.h"
#include "daemon/node/gpus.h"
#include "daemon/server/peers/peer_internal.h"
#include "proto/socket.h"

/* The figures of NVML that policies use, and how often NVML is read for them. */
#define BY_FIGURES (TD_HAS(UTILISATION) | TD_HAS(SM_ACTIVITY) | TD_HAS(CLOCK) | TD_HAS(HEALTH))
#define GLANCE_NS  (100 * TD_NS_PER_MS)

/* A peer that connects and sends nothing is disconnected after this time. */
#define SILENCE_NS (5 * TD_NS_PER_S)
/*
 * Packets are handled for this long before the node steps and new connections are accepted. One
 * packet may take longer.
 */
#define SERVE_NS (2 * TD_NS_PER_MS)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static void wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void node_send(void *arg, const struct td_msg *msg)
{
	td_peer_send(arg, msg);
}

static void node_gate(void *arg, uint32_t word, const struct td_pacing *pacing)
{
	struct td_peer *peer = arg;

	atomic_store(&peer->gate->window_ns, pacing->window_ns);
	atomic_store(&peer->gate->duty_ppm, pacing->duty_ppm);
	atomic_store(&peer->gate->rivals, pacing->rivals);
	atomic_store(&peer->gate->steps, pacing->steps);
	atomic_store(&peer->gate->hold, pacing->hold);
	atomic_store(&peer->gate->alone, pacing->alone);
	atomic_store(&peer->gate->pause_until_ns, pacing->pause_until_ns);
	atomic_store(&peer->gate->long_ns, pacing->long_ns);
	atomic_store(&peer->gate->long_every_ns, pacing->long_every_ns);
	atomic_store(&peer->gate->batch, (uint32_t)pacing->batch);
	atomic_store(&peer->gate->sharers, (uint32_t)pacing->sharers);
	atomic_store(&peer->gate->hold_new, (uint32_t)pacing->hold_new);
	atomic_store(&peer->gate->word, word);
	wake(&peer->gate->word);
}

static void node_others(void *arg, uint32_t slot, uint64_t bytes)
{
	struct td_peer *peer = arg;

	atomic_store(&peer->gate->others_bytes[slot], bytes);
}

/*
 * Returns whether the peer's process is stopped. Nothing is known if its pid belongs to another
 * process by now.
 */
static enum td_stop node_stop(void *arg, uint64_t *ret_cpu_ticks)
{
	const struct td_peer *peer = arg;
	struct td_procfs_stat stat;

	*ret_cpu_ticks = 0;
	if (!peer->start_ticks || td_procfs_stat(peer->pid, &stat) ||
		stat.start_ticks != peer->start_ticks)
		return TD_STOP_NONE;
	*ret_cpu_ticks = stat.cpu_ticks;
	return td_procfs_stop(peer->pid, &stat);
}

static int node_signal(void *arg, int signal)
{
	const struct td_peer *peer = arg;

	return td_procfs_signal(peer->source.fd, peer->pid, peer->start_ticks, signal);
}

/* Tells the tools that wait for the act. */
static void node_acted(void *arg, const struct td_act *act)
{
	struct td_server *server = arg;
	struct td_list *it;

	td_list_for_each (it, &server->peers)
		td_tool_acted(td_container_of(it, struct td_peer, of_server), act);
}

/* Writes the ceilings and reads the claims of a slot, in the order that gate_page.h requires. */
static struct td_ceiling node_ceiling(void *arg, uint32_t slot, const struct td_ceiling *ceiling)
{
	struct td_peer *peer = arg;

	if (ceiling) {
		/* The page has the bytes + 1, so that UINT64_MAX (no ceiling) becomes 0. */
		atomic_store(&peer->gate->ceiling_device_bytes[slot], ceiling->device_bytes + 1);
		atomic_store(&peer->gate->ceiling_all_bytes[slot], ceiling->all_bytes + 1);
		atomic_thread_fence(memory_order_seq_cst);
	}
	return (struct td_ceiling){atomic_load(&peer->meter->claimed_device_bytes[slot]),
		atomic_load(&peer->meter->claimed_all_bytes[slot])};
}

static void node_event(void *arg, const struct td_event *event)
{
	struct td_server *server = arg;
	struct td_list *it;

	td_list_for_each (it, &server->peers) {
		struct td_peer *peer = td_container_of(it, struct td_peer, of_server);

		if (peer->follows)
			td_peer_send_event(peer, event);
	}
}

static int node_claim(void *arg, const uint8_t *uuid, struct td_err *err)
{
	struct td_server *server = arg;

	return td_gpu_locks_take(&server->gpu_locks, server->node.options.locks, uuid, err);
}

static bool node_mps(void *arg, const uint8_t *uuid, struct td_mps_seen *ret)
{
	const struct td_server *server = arg;

	return td_mps_table_seen(&server->mps, uuid, ret);
}

static void node_mps_terminate(void *arg, const uint8_t *uuid, pid_t pid)
{
	td_mps_table_terminate(&((struct td_server *)arg)->mps, uuid, pid);
}

static int node_checkpoint(void *arg, const struct td_checkpoint_order *order)
{
	return td_helpers_start(&((struct td_server *)arg)->helpers, order);
}

static void node_release(void *arg, const uint8_t *uuid)
{
	td_gpu_locks_release(&((struct td_server *)arg)->gpu_locks, uuid);
}

/*
 * Makes the page with the gate word, which only the daemon can write. It is sealed after the daemon
 * has mapped it, so that the client cannot map its descriptor writable.
 */
static int make_gate_page(struct td_peer *peer)
{
	int fd = memfd_create("tandem-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, TD_PAGE_BYTES) < 0)
		goto err_close;
	page = mmap(NULL, TD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto err_close;
	if (fcntl(fd, F_ADD_SEALS,
		    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0) {
		munmap(page, TD_PAGE_BYTES);
		goto err_close;
	}
	peer->gate = page;
	return fd;

err_close:
	close(fd);
	return -errno;
}

/*
 * Makes the page with the meter, which the client writes. It is sealed, so that the client cannot
 * truncate it while the daemon reads. Returns the descriptor, or -errno.
 */
static int make_meter_page(struct td_peer *peer)
{
	int fd = memfd_create("tandem-meter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, TD_METER_FILE_BYTES) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto err_close;
	page = mmap(NULL, TD_METER_FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto err_close;
	peer->meter = page;
	return fd;

err_close:
	close(fd);
	return -errno;
}

/*
 * Ends the connection when the process ends. Another process may have the connection too, such as
 * the child of an `_Fork`.
 */
static void process_ended(struct td_source *source, uint32_t events)
{
	(void)events;
	td_container_of(source, struct td_peer, end)->broken = true;
}

static void watch_process(struct td_peer *peer)
{
	if (!td_accept_can_watch())
		return;
	peer->end = (struct td_source){
		td_procfs_pidfd(peer->source.fd, peer->pid), process_ended, false};
	if (peer->end.fd >= 0 && td_loop_add(peer->server->loop, &peer->end) < 0) {
		close(peer->end.fd);
		peer->end.fd = -1;
	}
}

static void welcome(struct td_peer *peer, const struct td_msg_hello *hello, uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_welcome};
	td_auto_close int gate_fd = make_gate_page(peer), meter_fd = make_meter_page(peer);
	int fds[2];

	if (gate_fd < 0 || meter_fd < 0) {
		peer->broken = true;
		return;
	}
	peer->process =
		td_node_hello(&peer->server->node, peer, peer->pid, peer->who, hello, now_ns);
	if (!peer->process) {
		peer->broken = true;
		return;
	}
	peer->process->meter = peer->meter;
	peer->process->service_page = td_service_page_of(peer->meter);
	watch_process(peer);
	msg.welcome.process = peer->process->id;
	strcpy(msg.welcome.version, TANDEM_VERSION);
	msg.welcome.arrived_ns = peer->process->job->arrived_ns;
	fds[0] = gate_fd;
	fds[1] = meter_fd;
	if (td_socket_send(peer->source.fd, &msg, fds, 2) < 0)
		peer->broken = true;
}

/*
 * Logs a complaint at a bounded rate. So a peer that sends invalid messages again and again cannot
 * fill the disk or hide what others do.
 */
static void complain(struct td_peer *peer, const char *what, int r, uint64_t now_ns)
{
	uint32_t suppressed;

	if (td_complaints_allow(&peer->user->complaints, now_ns, &suppressed))
		td_log(TD_LOG_WARN,
			"pid=%d uid=%u message=%s errno=%d connection dropped; %u more suppressed",
			(int)peer->pid, (unsigned)peer->who.uid, what, -r, suppressed);
}

static void handle_message(struct td_peer *peer, struct td_msg *msg, uint64_t now_ns)
{
	int r;

	peer->silent_since_ns = 0;
	/*
	 * Names in messages may appear on any user's terminal, so control characters are replaced.
	 */
	td_proto_each_str(msg, td_printable);
	if (msg->type == TD_MSG_TYPE_hello && !peer->process && !peer->follows &&
		!peer->supervisor) {
		welcome(peer, &msg->hello, now_ns);
		return;
	}
	if (msg->type == TD_MSG_TYPE_ping) {
		td_peer_send(peer, &(const struct td_msg){.type = TD_MSG_TYPE_pong});
		return;
	}
	if (peer->process)
		r = td_node_message(&peer->server->node, peer->process, msg, now_ns);
	else if (peer->supervisor || msg->type == TD_MSG_TYPE_supervise)
		r = td_supervise_message(peer, msg, now_ns);
	else
		r = td_peer_answer(peer, msg, now_ns);
	if (r < 0) {
		complain(peer, td_proto_name(msg->type), r, now_ns);
		peer->broken = true;
	}
	/* The shared directory was lost; the sweep makes it anew. */
	if (peer->process && msg->type == TD_MSG_TYPE_shares &&
		peer->process->shares.unreachable == TD_UNREACHABLE_NOWHERE)
		td_sweep_soon(&peer->server->sweep, now_ns);
}

void td_peer_ready(struct td_source *source, uint32_t events)
{
	struct td_peer *peer = (struct td_peer *)source;

	/* A connection that can only be read may have no more than a PING. */
	peer->server->heard |= (events & ~(uint32_t)EPOLLIN) != 0;
	if (events & EPOLLOUT)
		td_peer_flush(peer);
	/* The peer is gone, so its unsent packets will never be read. */
	if (peer->waits && events & (EPOLLHUP | EPOLLERR))
		peer->broken = true;
	if (events & ~(uint32_t)EPOLLOUT)
		td_fair_add(&peer->server->fair, peer->who, &peer->waiting);
}

/*
 * Serves one packet, a part of an answer, or a round of WATCH. Returns false if there was nothing
 * to do.
 */
static bool serve_one(struct td_peer *peer, uint64_t now_ns)
{
	struct td_server *server = peer->server;
	struct td_msg msg;
	int r;

	if (peer->broken)
		return false;
	if (td_answer_is_due(peer)) {
		td_answer_send_part(peer, now_ns);
		return true;
	}
	if (td_tool_is_round_due(peer, now_ns)) {
		td_tool_send_round(peer, now_ns);
		return true;
	}
	if (!td_peer_may_be_read(peer))
		return false;
	r = td_socket_recv_bare(peer->source.fd, &msg);
	if (r == -EAGAIN)
		return false;
	server->heard |= r < 0 || msg.type != TD_MSG_TYPE_ping;
	if (r < 0 && r != -ECONNRESET)
		complain(peer, "malformed", r, now_ns);
	if (r < 0)
		peer->broken = true;
	else if (r == 0)
		handle_message(peer, &msg, now_ns);
	/*
	 * TD_PROTO_UNKNOWN: a newer peer sent a message that this daemon does not know, and it is
	 * ignored.
	 */
	return true;
}

/*
 * Serves peers within a bound on time; their users take turns. epoll reports peers that were not
 * served again. Returns the time.
 */
static uint64_t serve_peers(struct td_server *server, uint64_t started_ns)
{
	uint64_t now_ns = started_ns, before_ns;
	struct td_list *it;

	while (now_ns < started_ns + SERVE_NS && (it = td_fair_next(&server->fair))) {
		struct td_peer *peer = td_container_of(it, struct td_peer, waiting);

		if (serve_one(peer, now_ns))
			td_fair_add(&server->fair, peer->who, &peer->waiting);
		before_ns = now_ns;
		now_ns = td_time_now_ns();
		td_fair_charge(&server->fair, now_ns - before_ns);
	}
	return now_ns;
}

/* Releases everything of the peer but its connection. */
static void forget_peer(struct td_peer *peer, uint64_t now_ns)
{
	struct td_server *server = peer->server;

	if (peer->process && peer->process->shares.was_told)
		td_sweep_soon(&server->sweep, now_ns);
	if (peer->process)
		td_node_gone(&server->node, peer->process, now_ns);
	td_actions_supervisor_gone(&server->node, peer->supervisor, now_ns);
	td_supervisors_gone(&server->node, peer->supervisor);
	if (peer->gate)
		munmap(peer->gate, TD_PAGE_BYTES);
	if (peer->meter)
		munmap((void *)peer->meter, TD_METER_FILE_BYTES);
	td_loop_remove(server->loop, &peer->source);
	if (peer->end.fd >= 0) {
		td_loop_remove(server->loop, &peer->end);
		close(peer->end.fd);
	}
	td_list_remove(&peer->of_server);
	td_list_remove(&peer->waiting);
	td_list_remove(&peer->held);
	server->peer_count--;
	peer->user->peers--;
	td_peer_forget_unread(peer);
	td_spaces_leave(&server->spaces, peer->who);
	free(peer);
}

static void disconnect(struct td_peer *peer, uint64_t now_ns)
{
	struct td_closer *closer = peer->server->closer;
	struct td_identity who = peer->who;
	int fd = peer->source.fd;

	td_peer_hear_last_words(peer, now_ns);
	forget_peer(peer, now_ns);
	td_closer_close(closer, who, fd);
}

/*
 * Drops broken peers. Dropping one can break another (a follower that does not read); the next turn
 * drops that one.
 */
static void drop_broken(struct td_server *server, uint64_t now_ns)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &server->peers) {
		struct td_peer *peer = td_container_of(it, struct td_peer, of_server);

		if (peer->broken)
			disconnect(peer, now_ns);
	}
}

/*
 * Accepts connections again when there may be free descriptors. Returns when to call it again, or
 * UINT64_MAX.
 */
static uint64_t hear(struct td_server *server, uint64_t now_ns)
{
	if (!server->deaf_until_ns || now_ns < server->deaf_until_ns)
		return server->deaf_until_ns ? server->deaf_until_ns : UINT64_MAX;
	server->deaf_until_ns = 0;
	td_loop_want(server->loop, &server->listener, EPOLLIN);
	return UINT64_MAX;
}

/*
 * Takes over a new sample, or figures that the sampler has read between two samples, because they
 * change quickly.
 */
static void take_sample(struct td_server *server, uint64_t now_ns)
{
	const struct td_sample *sample = &server->watch.sample;

	td_gpus_seen(&server->node, sample->gpus, sample->gpu_count, now_ns);
	if (sample->time_ns == server->seen_ns)
		return;
	server->asked = false;
	td_overhead_seen(&server->node, sample->gpus, sample->uses, sample->use_count);
}

/* Returns whether the sampler has read anything since the last turn. */
static bool has_sample(const struct td_server *server)
{
	return server->watch.sample.time_ns != server->seen_ns ||
	       server->watch.sample.glance_ns != server->glanced_ns;
}

/*
 * Lets the node step; if nothing has changed, only as far as is needed then. Returns whether more
 * than bounds may have changed. Messages are held until the step is over: a message wakes the
 * program's agent thread, which must not run before the thread whose gate opens.
 */
static bool step(struct td_server *server, bool changed, uint64_t now_ns, uint64_t *ret_wakeup)
{
	bool whole;

	server->holds = true;
	whole = changed || !td_node_step_on(&server->node, now_ns, ret_wakeup);
	if (whole)
		*ret_wakeup = td_node_step(&server->node, now_ns);
	td_peer_send_held(server);
	return whole || !server->node.rests_until_ns;
}

/* Runs the parts other than the node, in a turn of which they may need something. */
static uint64_t turn_others(struct td_server *server, uint64_t now_ns)
{
	uint64_t wakeup = UINT64_MAX, look_ns, sweep_ns, deaf_ns, mps_ns, pressure_ns, learn_ns;
	struct td_list *it;

	td_watch_set_glance(&server->watch,
		server->node.policy->needs & BY_FIGURES || server->mps.count ? GLANCE_NS : 0);
	td_watch_set_log(&server->watch, server->node.options.log);
	td_watch_set(&server->watch, server->node.client_count > 0, server->node.options.sample_ns);
	look_ns = td_overhead_wants_ns(&server->node, server->watch.sample.time_ns, now_ns);
	if (look_ns > now_ns)
		wakeup = look_ns < wakeup ? look_ns : wakeup;
	else if (!server->asked)
		td_watch_ask(&server->watch);
	server->asked = look_ns <= now_ns;
	deaf_ns = hear(server, now_ns);
	wakeup = deaf_ns < wakeup ? deaf_ns : wakeup;
	mps_ns = td_mps_table_turn(&server->mps, now_ns);
	wakeup = mps_ns < wakeup ? mps_ns : wakeup;
	pressure_ns = td_pressure_watch_turn(&server->pressure, &server->node, now_ns);
	wakeup = pressure_ns < wakeup ? pressure_ns : wakeup;
	td_cpus_turn(&server->cpus, &server->node, now_ns);
	learn_ns = td_learner_turn(&server->learner, &server->node, now_ns);
	wakeup = learn_ns < wakeup ? learn_ns : wakeup;
	sweep_ns = td_sweep_turn(&server->sweep, now_ns);
	wakeup = sweep_ns < wakeup ? sweep_ns : wakeup;
	td_list_for_each (it, &server->peers) {
		struct td_peer *peer = td_container_of(it, struct td_peer, of_server);
		uint64_t tool = td_peer_answer_later(peer, now_ns),
			 stuck = td_peer_look_at_outbox(peer, now_ns);

		wakeup = stuck < wakeup ? stuck : wakeup;
		if (peer->silent_since_ns && now_ns >= peer->silent_since_ns + SILENCE_NS)
			peer->broken = true;
		else if (peer->silent_since_ns && peer->silent_since_ns + SILENCE_NS < wakeup)
			wakeup = peer->silent_since_ns + SILENCE_NS;
		if (peer->broken)
			return now_ns; /* sending broke the peer, so another turn follows at once */
		wakeup = tool < wakeup ? tool : wakeup;
	}
	return wakeup;
}

uint64_t td_server_turn(void *arg, uint64_t now_ns)
{
	struct td_server *server = arg;
	bool news, changed, sampled = has_sample(server);

	server->stuck = false;
	now_ns = serve_peers(server, now_ns);
	news = server->heard || server->loop->stirred || now_ns >= server->due_ns;
	changed = news || sampled || server->again;
	server->heard = server->loop->stirred = false;
	/* The parts other than the node may then do something for which the node must step. */
	server->again = news;
	/* This follows a PING, of which programs that wait send one every few seconds. */
	if (!changed && !server->stuck && now_ns < server->step_ns)
		return td_min_u64(server->due_ns, server->step_ns);
	if (changed)
		drop_broken(server, now_ns);
	if (sampled)
		take_sample(server, now_ns);
	server->seen_ns = server->watch.sample.time_ns;
	server->glanced_ns = server->watch.sample.glance_ns;
	if (changed)
		td_helpers_turn(&server->helpers, now_ns);
	if (step(server, changed, now_ns, &server->step_ns) || server->stuck)
		server->due_ns = turn_others(server, now_ns);
	/* Sending may have broken a peer, which the next turn drops. */
	server->again |= server->stuck;
	return td_min_u64(server->due_ns, server->step_ns);
}

int td_server_init(
	struct td_server *server, struct td_loop *loop, int listen_fd, const char *socket)
{
	const struct td_node_io io = {.send = node_send,
		.gate = node_gate,
		.others = node_others,
		.event = node_event,
		.arg = server,
		.claim = node_claim,
		.release = node_release,
		.stop = node_stop,
		.signal = node_signal,
		.acted = node_acted,
		.ceiling = node_ceiling,
		.mps = node_mps,
		.mps_terminate = node_mps_terminate,
		.checkpoint = node_checkpoint};
	int r;

	memset(server, 0, sizeof(*server));
	server->loop = loop;
	server->started_ns = td_time_now_ns();
	server->listener = (struct td_source){listen_fd, td_accept_ready, false};
	server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	td_list_init(&server->peers);
	td_list_init(&server->held);
	td_fair_init(&server->fair);
	td_users_init(&server->users);
	if (td_spaces_init(&server->spaces))
		td_log(TD_LOG_WARN,
			"/proc does not show this PID namespace: nobody may change the daemon's "
			"options or any job");
	server->connections = td_accept_all();
	r = td_closer_new(&server->closer);
	if (r)
		return r;
	r = td_node_init(&server->node, &io);
	if (r)
		return r;
	server->node.owner = geteuid();
	td_gpu_locks_init(&server->gpu_locks, listen_fd);
	r = td_sweep_init(&server->sweep, socket);
	if (r)
		td_log(TD_LOG_WARN,
			"socket=%s.ipc %s: programs can share memory only within one network "
			"namespace",
			socket, strerror(-r));
	td_pressure_watch_init(&server->pressure);
	td_mps_table_init(&server->mps, loop, &server->node, socket);
	td_helpers_init(&server->helpers, loop, &server->node);
	td_learner_init(&server->learner, loop);
	td_watch_init(&server->watch, loop, server->node.options.sample_ns);
	return td_loop_add(loop, &server->listener);
}

void td_server_deinit(struct td_server *server)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &server->peers)
		forget_peer(td_container_of(it, struct td_peer, of_server), td_time_now_ns());
	td_watch_deinit(&server->watch);
	td_helpers_deinit(&server->helpers);
	td_learner_deinit(&server->learner);
	td_mps_table_deinit(&server->mps);
	td_sweep_deinit(&server->sweep);
	td_node_deinit(&server->node);
	td_gpu_locks_deinit(&server->gpu_locks);
	td_loop_remove(server->loop, &server->listener);
	td_closer_free(server->closer);
	td_users_deinit(&server->users);
	td_spaces_deinit(&server->spaces);
	if (server->spare_fd >= 0)
		close(server->spare_fd);
}
