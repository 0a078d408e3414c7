/*
 * Drives the node with arbitrary messages of six clients of two users. Five obey, stall, are
 * stopped and die. The sixth lies, and passes descriptors that nobody has asked for.
 *
 * The node never breaks its own structures. The device is never overcommitted as long as those who
 * obey are asked. No job has more than its limit but for what it had before that was lowered. No
 * user has more protected jobs than his quota but for those of before. Nobody who obeys is cut off,
 * and nobody waits for ever. Input: three bytes per event.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parse.h"
#include "daemon/model/job.h"
#include "daemon/model/tenants.h"
#include "proto/proto.h"
#include "proto/socket.h"
#include "unit/daemon/fake_node.h"

#define USERS 2
/* More in one packet the kernel refuses. */
#define PASSED_MAX 253
#define LIAR       5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uid_t user_of(const struct world *w, const struct fake *f)
{
	return 1000 + (uid_t)((f - w->fakes) % USERS);
}

/* The lowest descriptor that is free: a higher one than before means that some were left open. */
static int lowest_free(void)
{
	int fd = dup(0);

	if (fd < 0)
		abort();
	close(fd);
	return fd;
}

/*
 * The message goes through a socket, with so many descriptors beside it. The sender has closed them
 * when they arrive. Returns what the daemon's receiver does, with what it has read.
 */
static int pass(const struct td_msg *msg, unsigned count, struct td_msg *ret)
{
	char packet[TD_PROTO_MAX], control[CMSG_SPACE(PASSED_MAX * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = packet};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	int ends[2], before = lowest_free(), fds[PASSED_MAX], n, r;

	n = td_proto_encode(msg, packet, sizeof(packet));
	if (n < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
		abort();
	iov.iov_len = (size_t)n;
	fds[0] = dup(ends[0]);
	for (unsigned i = 1; i < PASSED_MAX; i++)
		fds[i] = fds[0];
	if (count)
		td_socket_put_fds(&header, control, fds, count);
	if (sendmsg(ends[0], &header, MSG_NOSIGNAL) != n)
		abort();
	close(fds[0]);
	r = td_socket_recv_bare(ends[1], ret);
	close(ends[0]);
	close(ends[1]);
	if (lowest_free() != before || (r == -EPERM) != (count != 0))
		abort();
	return r;
}

static void lie(struct world *w, struct fake *f, uint8_t kind, uint8_t arg)
{
	static const uint32_t types[] = {TD_MSG_TYPE_used, TD_MSG_TYPE_ready, TD_MSG_TYPE_drained,
		TD_MSG_TYPE_stuck, TD_MSG_TYPE_idle, TD_MSG_TYPE_ask, TD_MSG_TYPE_want,
		TD_MSG_TYPE_detach, TD_MSG_TYPE_attach, TD_MSG_TYPE_shortage, TD_MSG_TYPE_step,
		TD_MSG_TYPE_backend, TD_MSG_TYPE_ask, TD_MSG_TYPE_used};
	struct td_msg msg = {.type = types[kind % (sizeof(types) / sizeof(types[0]))]};

	/* slot, seq and bytes are the first fields of every one of them */
	msg.used.slot = arg & 1;
	msg.used.acked_seq = f->seq;
	msg.used.total_bytes = (uint64_t)arg << 56;
	if (msg.type == TD_MSG_TYPE_step) {
		msg.step.steps = arg;
		msg.step.step_ns = msg.step.median_ns = (uint64_t)arg << (arg & 63);
		msg.step.began_ns = arg & 64 ? w->now : (uint64_t)arg << (arg & 63);
		msg.step.unit = arg & 3;
		msg.step.sure_ppm = (uint32_t)arg << 24;
	}
	if (arg & 64 && msg.type == TD_MSG_TYPE_ask) {
		msg.ask.slot = TD_SLOT_HOST;
		msg.ask.bytes = (uint64_t)arg << (arg & 63);
		msg.ask.ticket = arg & 2 ? f->host.ticket + 1 : arg;
	}
	if (arg & 64 && msg.type == TD_MSG_TYPE_used) {
		msg.used.slot = TD_SLOT_HOST;
		msg.used.acked_seq = arg & 1 ? f->host.seq : arg;
		msg.used.host_bytes = (uint64_t)arg << 56;
	}
	if (say(w, f, &msg) < 0)
		fake_dies(w, f);
}

/* Whoever passes descriptors loses his connection, and nobody else does. */
static void pass_descriptors(struct world *w, struct fake *f, uint8_t arg)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_want}, heard;

	if (pass(&msg, arg == 255 ? PASSED_MAX : arg / 8, &heard) || say(w, f, &heard) < 0)
		fake_dies(w, f);
}

/* One of up to four candidates, in order or not. */
static void ask_for_a_place(struct world *w, struct fake *f, uint8_t arg)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_place};

	msg.place.index = arg & 3;
	msg.place.candidates = arg >> 2 & 7;
	msg.place.count = arg >> 5;
	memset(msg.place.gpu, 1 + (arg & 3), 16);
	f->placed_count = 0;
	if (say(w, f, &msg) < 0)
		fake_dies(w, f);
	else if (f->placed_count != 0 && f->placed_count != f->process->job->placed_count)
		abort();
}

/* By hand, by its user's quota, or when there is room. */
static void change_class(struct world *w, const struct fake *f, uint8_t kind, uint8_t arg)
{
	static const char *const classes[] = {"besteffort", "guaranteed", "online", "guaranteed"},
				 *const quotas[] = {"none", "0", "1", "2"};
	const char *name = f->process->job->name;

	switch (kind % 4) {
	case 0: (void)td_options_set(&w->node.options, "quota.jobs", quotas[arg % 4], NULL); break;
	case 1: (void)td_options_set(&w->node.options, "quota.gpus", quotas[arg % 4], NULL); break;
	case 2:
		(void)td_node_set_job(&w->node, td_identity_local(user_of(w, f)), name, "class",
			classes[arg % 4], w->now, NULL);
		break;
	default:
		if (td_node_set_job(&w->node, td_identity_local(user_of(w, f)), name, "upgrade",
			    arg & 1 ? "guaranteed" : "none", w->now, NULL))
			abort();
	}
}

/* Who is protected is charged, and nobody else. */
static bool are_classes_charged(const struct world *w)
{
	struct td_list *it;

	td_list_for_each (it, &w->node.jobs) {
		const struct td_job *job = td_container_of(it, struct td_job, of_node);

		if ((job->settings.class != TD_CLASS_BESTEFFORT) != (job->charged_ppm != 0))
			return false;
	}
	return true;
}

/* The holdings of each user's protected jobs after the previous event. */
static struct td_usage used[USERS];

/* Checks that they sum up to the user's charge, and that no event raises that beyond the quota. */
static bool within_quotas(const struct world *w)
{
	for (unsigned user = 0; user < USERS; user++) {
		const struct td_tenant *tenant =
			td_tenants_find(&w->node, td_identity_local(1000 + user));
		struct td_usage now = {0}, before = used[user];
		struct td_list *it;

		td_list_for_each (it, &w->node.jobs) {
			const struct td_job *job = td_container_of(it, struct td_job, of_node);

			if (job->who.uid != 1000 + user)
				continue;
			now.gpus_ppm += job->charged_ppm;
			now.jobs += job->charged_ppm != 0;
		}
		if (tenant &&
			(tenant->used.jobs != now.jobs || tenant->used.gpus_ppm != now.gpus_ppm))
			return false;
		used[user] = now;
		if (now.jobs > w->node.options.quota_jobs && now.jobs > before.jobs)
			return false;
		if (w->node.options.quota_gpus_ppm != TD_QUOTA_AUTO &&
			now.gpus_ppm > w->node.options.quota_gpus_ppm &&
			now.gpus_ppm > before.gpus_ppm)
			return false;
	}
	return true;
}

/* The charges of each job of each user on each GPU, after the previous event. */
static uint64_t charged[4 * USERS][2];

static bool obeys(const struct td_client *client)
{
	return *client->process->job->name == 'j';
}

static uint64_t limit_of(const struct td_client *client)
{
	const char *mem = client->process->job->settings.mem;
	uint64_t bytes = UINT64_MAX;

	if (*mem && td_parse_size(mem, 0, &bytes, NULL))
		abort();
	return bytes;
}

/*
 * Checks that no process has more than it is charged, and that no job's charges rise beyond its
 * limit. `allowed`: a newcomer brings what it had under another daemon, and a limit that is lowered
 * takes nothing away.
 */
static bool within_limits(const struct world *w, bool allowed)
{
	uint64_t now[4 * USERS][2] = {0}, limits[4 * USERS] = {0};
	struct td_list *it;

	td_list_for_each (it, &w->node.clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);
		const struct fake *f = client->process->peer;
		unsigned job = (unsigned)(client->process->job->name[1] - '0') * USERS +
			       (client->process->who.uid - 1000);

		if (!obeys(client))
			continue;
		if (f->slot[0].demanded + f->slot[0].paged > td_holding_charge(&client->total))
			return false;
		now[job][w->node.gpus[client->gpu].uuid[0] - 1] +=
			td_holding_charge(&client->total);
		limits[job] = limit_of(client);
	}
	for (unsigned job = 0; job < 4 * USERS; job++)
		for (unsigned gpu = 0; gpu < 2; gpu++)
			if (!allowed && now[job][gpu] > limits[job] &&
				now[job][gpu] > charged[job][gpu])
				return false;
	memcpy(charged, now, sizeof(charged));
	return true;
}

static void allocate(struct world *w, struct fake *f, uint64_t bytes)
{
	struct td_msg need = {.type = TD_MSG_TYPE_ask};
	uint64_t has, all;

	if (f->slot[0].asked)
		return;
	has = f->slot[0].resident;
	all = f->slot[0].demanded + f->slot[0].paged + bytes;
	if (has + bytes <= f->slot[0].limit && all <= f->slot[0].total &&
		fake_may_use(f, 0, has + bytes, all)) {
		f->slot[0].demanded += bytes;
		if (f->spills && !(f->word & TD_WORD_CLOSED))
			f->slot[0].resident += bytes;
		return;
	}
	fake_memory(w, f, 0);
	f->slot[0].asked = need.ask.bytes = bytes;
	f->slot[0].asks_paged = bytes == 5 * MIB;
	need.ask.kind = bytes == 5 * MIB   ? TD_ASKED_UNIFIED
			: bytes == 7 * MIB ? TD_ASKED_STAYS
					   : TD_ASKED_MOVES;
	if (need.ask.kind == TD_ASKED_STAYS)
		f->slot[0].fixed += bytes;
	if (say(w, f, &need))
		abort();
}

static void release(struct fake *f, uint64_t bytes)
{
	f->slot[0].demanded -= bytes < f->slot[0].demanded ? bytes : f->slot[0].demanded;
	f->slot[0].paged -= bytes < f->slot[0].paged ? bytes : f->slot[0].paged;
	if (f->slot[0].resident > f->slot[0].demanded)
		f->slot[0].resident = f->slot[0].demanded;
}

/* Lets it go on just now: its first action is by what it had read before it was stopped. */
static void continues(struct world *w, struct fake *f, uint8_t arg)
{
	unsigned unread = f->unread_count;

	if (arg & 8) {
		f->stopped = TD_STOP_NONE;
		f->unread_count = 0;
		if (arg & 16 && !f->slot[0].asked)
			allocate(w, f, (1 + arg % 8) * MIB);
		else
			fake_act(w, f);
		f->unread_count = unread;
	}
	fake_continues(f);
}

static void event(struct world *w, uint8_t who, uint8_t kind, uint8_t arg)
{
	struct fake *f = &w->fakes[who % 6];
	bool liar = who % 6 == LIAR;
	char job[8] = {'j', (char)('0' + arg % 4), 0};

	if (!f->process) {
		fake_hello_of(w, f, user_of(w, f), liar ? "liar" : job,
			liar ? TD_BACKEND_SWAP : (enum td_backend_kind)(1 + arg % 2), false);
		f->spills = arg & 4 && (liar || arg % 2 == 0);
		fake_attach(w, f, 0, arg & 1, liar ? 0 : (uint64_t)(arg % 60) * MIB);
		return;
	}
	if (f->stopped) {
		if (kind % 12 == 1)
			fake_dies(w, f);
		else if (kind % 12 == 3)
			w->now += (uint64_t)arg * 5000000u;
		else if (kind & 1)
			continues(w, f, arg);
		return;
	}
	if (kind >= 216 && kind < 224 && !liar) {
		f->stopped = (enum td_stop)(1 + arg % 3);
		return;
	}
	if (kind >= 232 && kind < 240) {
		change_class(w, f, kind, arg);
		return;
	}
	if (kind >= 224 && kind < 232) {
		static const char *const limits[] = {"none", "20m", "0", "1Gi"};

		(void)td_options_set(&w->node.options, "host.limit", limits[arg % 4], NULL);
		return;
	}
	if (kind >= 240) {
		ask_for_a_place(w, f, arg);
		return;
	}
	if (liar && kind >= 216 && kind < 224) {
		pass_descriptors(w, f, arg);
		return;
	}
	if (liar) {
		lie(w, f, kind, arg);
		return;
	}
	switch (kind % 12) {
	case 0: fake_want(w, f); break;
	case 1: fake_dies(w, f); break;
	case 2: f->slow = arg & 1; break;
	case 3: w->now += (uint64_t)arg * 5000000u; break;
	case 4: {
		struct td_msg idle = {.type = TD_MSG_TYPE_idle};

		idle.idle.since_ns = w->now;
		(void)say(w, f, &idle);
		break;
	}
	case 5:
		(void)td_node_set_job(&w->node, td_identity_local(user_of(w, f)),
			f->process->job->name, "paused", arg & 1 ? "on" : "off", w->now, NULL);
		break;
	case 6:
		(void)td_options_set(
			&w->node.options, "policy", arg & 1 ? "nvshare" : "tandem", NULL);
		td_node_options_changed(&w->node, w->now, "policy");
		break;
	case 7: {
		static const char *const limits[] = {"none", "8m", "20m", "40m"};

		/* Who is protected may have no more than his quota. */
		if (td_node_set_job(&w->node, td_identity_local(user_of(w, f)),
			    f->process->job->name, "mem", limits[arg % 4], w->now, NULL) &&
			f->process->job->settings.class == TD_CLASS_BESTEFFORT)
			abort();
		break;
	}
	case 10: {
		static const char *const limits[] = {"none", "4m", "30m", "60%"};

		(void)td_node_set_job(&w->node, td_identity_local(user_of(w, f)),
			f->process->job->name, "mem-soft", limits[arg % 4], w->now, NULL);
		break;
	}
	case 8: allocate(w, f, (1 + arg % 16) * MIB); break;
	case 9: release(f, arg % 16 * MIB); break;
	default: settle(w); break;
	}
}

/* Whoever was stopped or slow goes on, nobody lies any more, and nothing is bounded by hand. */
static void calm_down(struct world *w)
{
	if (w->fakes[LIAR].process)
		fake_dies(w, &w->fakes[LIAR]);
	(void)td_options_set(&w->node.options, "host.limit", "none", NULL);
	(void)td_options_set(&w->node.options, "policy", "tandem", NULL);
	td_node_options_changed(&w->node, w->now, "policy");
	for (unsigned k = 0; k < LIAR; k++) {
		struct fake *f = &w->fakes[k];

		if (!f->process)
			continue;
		f->slow = false;
		fake_continues(f);
		(void)td_node_set_job(&w->node, td_identity_local(user_of(w, f)),
			f->process->job->name, "paused", "off", w->now, NULL);
	}
}

/* Small enough for all of them to be on a GPU at once. */
static void shrink(struct fake *f)
{
	uint64_t most = 4 * MIB;

	f->slot[0].paged = 0;
	if (f->slot[0].demanded > most)
		f->slot[0].demanded = most;
	if (f->slot[0].resident > f->slot[0].demanded)
		f->slot[0].resident = f->slot[0].demanded;
	if (f->slot[0].fixed > f->slot[0].demanded)
		f->slot[0].fixed = f->slot[0].demanded;
}

/*
 * Within so many seconds of the node's clock each allocation that waits is answered, and everybody
 * has a turn.
 */
static bool nobody_waits(struct world *w, unsigned seconds)
{
	bool was_open[LIAR] = {false};
	unsigned waiting = 1;

	for (unsigned i = 0; waiting && i < 10 * seconds; i++) {
		waiting = 0;
		for (unsigned k = 0; k < LIAR; k++) {
			struct fake *f = &w->fakes[k];

			if (!f->process)
				continue;
			if (!f->slot[0].asked)
				shrink(f);
			fake_want(w, f);
		}
		w->now += 100000000;
		settle(w);
		for (unsigned k = 0; k < LIAR; k++) {
			struct fake *f = &w->fakes[k];

			if (!f->process)
				continue;
			was_open[k] |= f->process->phase == TD_PHASE_OPEN;
			waiting += f->slot[0].asked || !was_open[k];
		}
	}
	return !waiting;
}

static bool is_anybody_refused(const struct world *w)
{
	for (unsigned k = 0; k < LIAR; k++)
		if (w->fakes[k].process && w->fakes[k].refused)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;

	world_init(&w);
	w.node.io.stop = fake_stop;
	memset(charged, 0, sizeof(charged));
	memset(used, 0, sizeof(used));
	for (size_t i = 0; i + 2 < size && i < 1500; i += 3) {
		const struct fake *f = &w.fakes[data[i] % 6];
		bool allowed = !f->process || (f != &w.fakes[LIAR] && data[i + 1] % 12 == 7);

		event(&w, data[i], data[i + 1], data[i + 2]);
		(void)td_node_step(&w.node, w.now);
		for (int k = 0; k < 5; k++)
			if (w.fakes[k].process && !w.fakes[k].slow && !w.fakes[k].stopped)
				fake_act(&w, &w.fakes[k]);
		if (!within_limits(&w, allowed) || !within_capacity(&w) ||
			!are_classes_charged(&w) || !within_quotas(&w) || is_anybody_refused(&w))
			abort();
		for (int k = 0; k < 6; k++)
			if (w.fakes[k].process)
				explained(&w, &w.fakes[k]);
	}
	calm_down(&w);
	if (!nobody_waits(&w, 120) || is_anybody_refused(&w))
		abort();
	td_node_deinit(&w.node);
	return 0;
}
