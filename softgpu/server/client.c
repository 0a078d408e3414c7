/*
 * The client side of the wire; see client.h. One mutex guards the lists of waiters; the receiver
 * wakes them by one condition.
 */
#include "softgpu/server/client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/stack.h"
#define IN_FLIGHT_MAX  2048u
#define RECEIVER_STACK (128 * 1024)

struct request {
	struct sg_msg *msg;
	void *extra;
	size_t extra_len, got;
	bool done;
	struct request *next;
};

struct sg_client {
	int fd;
	pid_t pid;
	pthread_t receiver;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool lost;    /* lock */
	bool greeted; /* guarded by lock: the server has answered HELLO */
	bool leaving; /* guarded by lock: this side is ending the connection */
	uint32_t next_ticket;
	uint64_t next_op;
	struct request *requests; /* lock */
	struct sg_op *ops;        /* lock */
	uint32_t op_count;        /* the number of operations */
	void (*notice)(const struct sg_msg *msg);
	uint8_t map[SG_GPU_MAX]; /* maps the process's GPU numbers to the server's */
};

char *sg_dir(char *buf, size_t len)
{
	const char *dir = getenv("SOFTGPU_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (dir && *dir)
		n = snprintf(buf, len, "%s", dir);
	else if (runtime && *runtime)
		n = snprintf(buf, len, "%s/softgpu", runtime);
	else
		n = snprintf(buf, len, "/tmp/softgpu-%u", (unsigned)getuid());
	return n > 0 && (size_t)n < len ? buf : NULL;
}

static int connect_to(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir) >=
		(int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static void finish_request(
	struct sg_client *client, const struct sg_msg *msg, const void *extra, size_t len)
{
	for (struct request **r = &client->requests; *r; r = &(*r)->next) {
		struct request *request = *r;

		if (request->msg->ticket != msg->ticket)
			continue;
		*request->msg = *msg;
		request->got = len < request->extra_len ? len : request->extra_len;
		if (request->got)
			memcpy(request->extra, extra, request->got);
		request->done = true;
		*r = request->next;
		return;
	}
}

static void finish_op(struct sg_client *client, const struct sg_msg *msg)
{
	for (struct sg_op **o = &client->ops; *o; o = &(*o)->next) {
		struct sg_op *op = *o;

		if (op->id != msg->op)
			continue;
		op->start_ns = msg->value;
		op->end_ns = msg->value2;
		op->error = msg->error ? -EINVAL : 0;
		op->done = true;
		*o = op->next;
		client->op_count--;
		return;
	}
}

static void lose(struct sg_client *client)
{
	client->lost = true;
	for (struct sg_op *op = client->ops; op; op = op->next) {
		op->error = -EIO;
		op->done = true;
	}
	client->ops = NULL;
	client->op_count = 0;
}

/* Tells the driver that all GPUs are lost, since the server has ended. */
static void tell_of_loss(struct sg_client *client)
{
	struct sg_msg msg = {.type = SG_NOTICE, .engine = SG_FAULT_LOST};

	for (msg.gpu = 0; client->notice && msg.gpu < SG_GPU_MAX; msg.gpu++)
		client->notice(&msg);
}

/* Returns the server's number of this process's GPU. */
static uint32_t server_gpu(const struct sg_client *client, uint32_t gpu)
{
	return __atomic_load_n(&client->map[gpu % SG_GPU_MAX], __ATOMIC_RELAXED);
}

/* Returns this process's number of the server's GPU. */
static uint32_t ours(const struct sg_client *client, uint32_t gpu)
{
	for (uint32_t i = 0; i < SG_GPU_MAX; i++)
		if (server_gpu(client, i) == gpu)
			return i;
	return gpu;
}

static void *receive(void *arg)
{
	struct sg_client *client = arg;
	static const size_t room = sizeof(struct sg_msg) + SG_STATUS_MAX;
	char *packet = malloc(room);

	for (;;) {
		ssize_t n = packet ? recv(client->fd, packet, room, 0) : -1;
		struct sg_msg msg;

		if (n < 0 && errno == EINTR)
			continue;
		pthread_mutex_lock(&client->lock);
		if (n < (ssize_t)sizeof(msg)) {
			bool unexpected = client->greeted && !client->leaving;

			lose(client);
			pthread_cond_broadcast(&client->changed);
			pthread_mutex_unlock(&client->lock);
			free(packet);
			if (unexpected)
				tell_of_loss(client);
			return NULL;
		}
		memcpy(&msg, packet, sizeof(msg));
		if (msg.type == SG_NOTICE) {
			pthread_mutex_unlock(&client->lock);
			msg.gpu = ours(client, msg.gpu);
			if (client->notice)
				client->notice(&msg);
			continue;
		}
		if (msg.type == SG_REPLY)
			finish_request(client, &msg, packet + sizeof(msg), (size_t)n - sizeof(msg));
		else if (msg.type == SG_DONE)
			finish_op(client, &msg);
		pthread_cond_broadcast(&client->changed);
		pthread_mutex_unlock(&client->lock);
	}
}

static int start_receiver(struct sg_client *client)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, td_stack_bytes(RECEIVER_STACK));
	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&client->receiver, &attributes, receive, client);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}

int sg_client_new(const char *dir, struct sg_client **ret, uint32_t *ret_gpu_count)
{
	return sg_client_new_with_notices(dir, NULL, ret, ret_gpu_count);
}

int sg_client_new_with_notices(const char *dir, void (*notice)(const struct sg_msg *msg),
	struct sg_client **ret, uint32_t *ret_gpu_count)
{
	struct sg_client *client = calloc(1, sizeof(*client));
	struct sg_msg hello = {.type = SG_HELLO, .value = SG_WIRE_VERSION};
	int r;

	if (!client)
		return -ENOMEM;
	client->pid = getpid();
	client->notice = notice;
	for (uint32_t i = 0; i < SG_GPU_MAX; i++)
		client->map[i] = (uint8_t)i;
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->changed, NULL);
	client->fd = connect_to(dir);
	r = client->fd < 0 ? client->fd : start_receiver(client);
	if (r < 0) {
		if (client->fd >= 0)
			close(client->fd);
		free(client);
		return r;
	}
	r = sg_client_request(client, &hello, NULL, 0, NULL);
	if (r < 0 || hello.error) {
		sg_client_free(client);
		return r < 0 ? r : -EPROTO;
	}
	pthread_mutex_lock(&client->lock);
	client->greeted = true;
	pthread_mutex_unlock(&client->lock);
	*ret_gpu_count = (uint32_t)hello.value;
	*ret = client;
	return 0;
}

void sg_client_free(struct sg_client *client)
{
	if (!client)
		return;
	if (sg_client_is_ours(client)) {
		pthread_mutex_lock(&client->lock);
		client->leaving = true;
		pthread_mutex_unlock(&client->lock);
		shutdown(client->fd, SHUT_RDWR);
		pthread_join(client->receiver, NULL);
	}
	close(client->fd);
	free(client);
}

void sg_client_await_end(struct sg_client *client)
{
	pthread_mutex_lock(&client->lock);
	while (!client->lost)
		pthread_cond_wait(&client->changed, &client->lock);
	pthread_mutex_unlock(&client->lock);
}

bool sg_client_is_ours(const struct sg_client *client)
{
	return client->pid == getpid();
}

static int post(struct sg_client *client, const struct sg_msg *msg, const void *extra, size_t len)
{
	struct sg_msg mapped = *msg;
	struct iovec parts[2] = {{&mapped, sizeof(mapped)}, {(void *)extra, len}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = len ? 2 : 1};
	ssize_t n;

	mapped.gpu = server_gpu(client, msg->gpu);
	do
		n = sendmsg(client->fd, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -EIO : 0;
}

int sg_client_request(struct sg_client *client, struct sg_msg *msg, void *extra, size_t extra_len,
	size_t *ret_len)
{
	struct request request = {.msg = msg, .extra = extra, .extra_len = extra_len};
	int r;

	pthread_mutex_lock(&client->lock);
	msg->ticket = ++client->next_ticket;
	request.next = client->requests;
	client->requests = &request;
	r = client->lost ? -EIO : post(client, msg, NULL, 0);
	while (!r && !request.done && !client->lost)
		pthread_cond_wait(&client->changed, &client->lock);
	for (struct request **p = &client->requests; *p; p = &(*p)->next) {
		if (*p == &request) {
			*p = request.next;
			break;
		}
	}
	pthread_mutex_unlock(&client->lock);
	if (ret_len)
		*ret_len = request.got;
	return r ? r : request.done ? 0 : -EIO;
}

/* Links the operation before its message leaves, so that the end cannot come first. */
static int begin_operation(struct sg_client *client, struct sg_op *op, struct sg_msg *msg)
{
	int r;

	pthread_mutex_lock(&client->lock);
	/* The server takes no more (SG_OPS_MAX): the rest comes when some have ended. */
	while (client->op_count >= IN_FLIGHT_MAX && !client->lost)
		pthread_cond_wait(&client->changed, &client->lock);
	msg->op = op->id = ++client->next_op;
	op->gpu = msg->gpu;
	op->context = msg->context;
	op->done = false;
	op->error = 0;
	r = client->lost ? -EIO : 0;
	if (!r) {
		op->next = client->ops;
		client->ops = op;
		client->op_count++;
		r = post(client, msg, NULL, 0);
		if (r) {
			client->ops = op->next;
			client->op_count--;
		}
	}
	if (r) {
		op->done = true;
		op->error = r;
	}
	pthread_mutex_unlock(&client->lock);
	return r;
}

int sg_client_op_begin(struct sg_client *client, struct sg_op *op, uint32_t gpu, uint32_t context,
	enum sg_engine engine, uint64_t bytes, uint32_t flags)
{
	struct sg_msg msg = {.type = SG_OP_BEGIN,
		.gpu = gpu,
		.context = context,
		.engine = engine,
		.value = bytes,
		.flags = flags};

	return begin_operation(client, op, &msg);
}

int sg_client_op_begin_kernel(struct sg_client *client, struct sg_op *op, uint32_t gpu,
	uint32_t context, uint64_t since_ns, uint32_t need_ppm)
{
	struct sg_msg msg = {.type = SG_OP_BEGIN,
		.gpu = gpu,
		.context = context,
		.engine = SG_ENGINE_COMPUTE,
		.range = need_ppm,
		.value2 = since_ns};

	return begin_operation(client, op, &msg);
}

int sg_client_op_prefetch(struct sg_client *client, struct sg_op *op, uint32_t gpu,
	uint32_t context, uint32_t range, uint64_t first_byte, uint64_t bytes, bool to_device)
{
	struct sg_msg msg = {.type = SG_OP_PREFETCH,
		.gpu = gpu,
		.context = context,
		.range = range,
		.engine = to_device ? SG_ENGINE_H2D : SG_ENGINE_D2H,
		.value = first_byte,
		.value2 = bytes};

	return begin_operation(client, op, &msg);
}

int sg_client_op_touch(struct sg_client *client, const struct sg_op *op,
	const struct sg_touch *runs, uint32_t count)
{
	struct sg_msg msg = {.type = SG_OP_TOUCH,
		.gpu = op->gpu,
		.context = op->context,
		.op = op->id,
		.value = count};

	return post(client, &msg, runs, count * sizeof(*runs));
}

int sg_client_op_length(struct sg_client *client, const struct sg_op *op, uint64_t ns,
	uint32_t sm_ppm, const struct sg_load *load)
{
	struct sg_msg msg = {.type = SG_OP_LENGTH,
		.gpu = op->gpu,
		.context = op->context,
		.op = op->id,
		.range = load->need_ppm,
		.bytes = load->bandwidth_ppm,
		.value = ns,
		.value2 = sm_ppm};

	return post(client, &msg, NULL, 0);
}

int sg_client_op_wait(struct sg_client *client, struct sg_op *op)
{
	pthread_mutex_lock(&client->lock);
	while (!op->done)
		pthread_cond_wait(&client->changed, &client->lock);
	pthread_mutex_unlock(&client->lock);
	return op->error;
}

void sg_client_xid(struct sg_client *client, uint32_t gpu, uint32_t number)
{
	const struct sg_msg msg = {.type = SG_XID, .gpu = gpu, .value = number};

	(void)post(client, &msg, NULL, 0);
}

int sg_client_tell(struct sg_client *client, const struct sg_msg *msg)
{
	return post(client, msg, NULL, 0);
}

void sg_client_choose(struct sg_client *client, const uint32_t *gpus)
{
	for (uint32_t i = 0; i < SG_GPU_MAX; i++)
		__atomic_store_n(&client->map[i], (uint8_t)gpus[i], __ATOMIC_RELAXED);
}

void sg_client_moved(struct sg_client *client, uint64_t map)
{
	for (uint32_t i = 0; i < SG_GPU_MAX; i++) {
		uint32_t from = server_gpu(client, i);

		if (from < SG_REMAP_MAX)
			__atomic_store_n(&client->map[i], (uint8_t)(map >> (4 * from) & 15),
				__ATOMIC_RELAXED);
	}
}
