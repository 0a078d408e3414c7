/*
 * The spaces that peers come from, with real namespaces where this user may make them. A peer is a
 * process that connects to a socket of this test.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/server/peers/spaces.h"
#include "test.h"

static struct td_spaces spaces;

static uint32_t use(uint64_t inode)
{
	const struct td_space_file file = {1, inode};

	return td_spaces_use(&spaces, &file, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static void leave(uint32_t number)
{
	td_spaces_leave(&spaces, (struct td_identity){0, number});
}

TEST(a_process_in_one_namespace_has_one_number)
{
	CHECK(td_spaces_parse_status("Name:\tx\nNSpid:\t4711\nNSpgid:\t1\n"));
	CHECK(!td_spaces_parse_status("Name:\tx\nNSpid:\t4711\t1\nNSpgid:\t1\n"));
	CHECK(!td_spaces_parse_status("Name:\tx\nNSpid:\t\nNSpgid:\t1\n"));
	CHECK(!td_spaces_parse_status("Name:\tx\nNSpid:\t4711"));
	CHECK(!td_spaces_parse_status("Name:\tNSpid:\t4711\n"));
	CHECK(!td_spaces_parse_status(""));
}

TEST(every_user_has_a_uid_in_the_first_user_namespace)
{
	CHECK(td_spaces_parse_uid_map("         0          0 4294967295\n"));
	CHECK(!td_spaces_parse_uid_map("         0       1000          1\n"));
	CHECK(!td_spaces_parse_uid_map("         0          0      65536\n"));
	CHECK(!td_spaces_parse_uid_map(""));
}

TEST(a_number_is_never_given_again)
{
	CHECK_EQ(td_spaces_init(&spaces), 0);
	CHECK_EQ(use(10), 1);
	CHECK_EQ(use(11), 2);
	CHECK_EQ(use(10), 1);
	leave(1);
	leave(1);
	CHECK_EQ(use(10), 1); /* it is kept after its last connection */
	leave(1);
	leave(2);
	for (unsigned i = 0; i < TD_SPACES_UNUSED_MAX; i++)
		leave(use(100 + i));
	CHECK_EQ(spaces.unused, TD_SPACES_UNUSED_MAX);
	CHECK_EQ(use(10), 3 + TD_SPACES_UNUSED_MAX);
	td_spaces_deinit(&spaces);
}

TEST(what_has_connections_is_never_forgotten)
{
	CHECK_EQ(td_spaces_init(&spaces), 0);
	CHECK_EQ(use(10), 1);
	for (unsigned i = 0; i < 3 * TD_SPACES_UNUSED_MAX; i++)
		leave(use(100 + i));
	CHECK_EQ(use(10), 1);
	CHECK_EQ(spaces.unused, TD_SPACES_UNUSED_MAX);
	td_spaces_deinit(&spaces);
}

/* -- real peers -- */

static int listener;
static struct sockaddr_un address;
static socklen_t address_len;

static void begin(void)
{
	int n;

	CHECK_EQ(td_spaces_init(&spaces), 0);
	address = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "tandem-spaces-%d",
		(int)getpid());
	address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, address_len), 0);
	CHECK_EQ(listen(listener, 8), 0);
}

static void end(void)
{
	close(listener);
	td_spaces_deinit(&spaces);
}

/* Enters a namespace of its own for each of the flags, one below the other. */
static void unshare_all(const int *flags)
{
	for (; *flags; flags++) {
		pid_t child;
		int status;

		if (unshare(*flags))
			_exit(77);
		child = fork();
		if (child < 0)
			_exit(77);
		if (!child)
			continue;
		_exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
									       : 78);
	}
}

/*
 * Starts a process that connects as that user, and stays until the connection ends unless it is
 * `brief`.
 */
static pid_t start_peer(const int *flags, uid_t uid, bool brief)
{
	pid_t child = fork();
	char byte;
	int fd;

	CHECK(child >= 0);
	if (child)
		return child;
	/* The connections of the peers before, which would not end. */
	for (fd = STDERR_FILENO + 1; fd < 256; fd++)
		close(fd);
	if (uid && !getuid() && setresuid(uid, uid, uid))
		_exit(77);
	unshare_all(flags);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&address, address_len))
		_exit(78);
	if (!brief)
		(void)!read(fd, &byte, 1);
	_exit(0);
}

struct peer {
	pid_t child;
	int fd;
	struct td_identity who;
};

static struct peer accept_peer(pid_t child)
{
	struct peer peer = {.child = child, .fd = accept(listener, NULL, NULL)};
	struct ucred credentials;
	socklen_t len = sizeof(credentials);

	CHECK(peer.fd >= 0);
	CHECK_EQ(getsockopt(peer.fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len), 0);
	peer.who = td_spaces_enter(&spaces, peer.fd, &credentials);
	return peer;
}

static struct peer comes(const int *flags, uid_t uid)
{
	return accept_peer(start_peer(flags, uid, false));
}

static void goes(const struct peer *peer)
{
	int status;

	close(peer->fd);
	CHECK_EQ(waitpid(peer->child, &status, 0), peer->child);
	td_spaces_leave(&spaces, peer->who);
}

/* Skips the case where this user may not make such namespaces. */
static void require(const int *flags, uid_t uid)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		if (uid && !getuid() && setresuid(uid, uid, uid))
			_exit(77);
		unshare_all(flags);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		SKIP("this user may not make such a namespace here");
}

static const int here[] = {0}, in_container[] = {CLONE_NEWPID, 0},
		 nested[] = {CLONE_NEWPID, CLONE_NEWPID, 0},
		 in_sandbox[] = {CLONE_NEWUSER | CLONE_NEWPID, 0},
		 sandbox_in_container[] = {CLONE_NEWPID, CLONE_NEWUSER | CLONE_NEWPID, 0};

TEST(a_process_of_this_namespace_is_in_the_own_space)
{
	struct peer peer;

	begin();
	peer = comes(here, 0);
	CHECK_EQ(peer.who.space, TD_SPACE_OWN);
	CHECK_EQ(peer.who.uid, geteuid());
	goes(&peer);
	end();
}

TEST(each_container_is_a_space_of_its_own)
{
	struct peer a, b;

	require(in_container, 0);
	begin();
	a = comes(in_container, 0);
	b = comes(in_container, 0);
	CHECK_EQ(a.who.uid, geteuid());
	CHECK_EQ(a.who.space, 1);
	CHECK_EQ(b.who.space, 2);
	goes(&a);
	goes(&b);
	end();
}

TEST(a_namespace_that_has_ended_does_not_give_its_space_to_the_next)
{
	require(in_container, 0);
	begin();
	for (uint32_t i = 1; i <= 5; i++) {
		struct peer peer = comes(in_container, 0);

		CHECK_EQ(peer.who.space, i);
		goes(&peer);
	}
	end();
}

TEST(namespaces_inside_of_a_container_are_the_container)
{
	struct peer peer;

	require(nested, 0);
	require(sandbox_in_container, 0);
	begin();
	peer = comes(nested, 0);
	CHECK_EQ(peer.who.space, 1);
	goes(&peer);
	/* The next container has the next number, and none went to the namespaces inside. */
	peer = comes(sandbox_in_container, 0);
	CHECK_EQ(peer.who.space, 2);
	goes(&peer);
	end();
}

TEST(a_namespace_that_a_user_has_made_is_no_container)
{
	struct peer peer;

	require(in_sandbox, 1000);
	begin();
	peer = comes(in_sandbox, 1000);
	CHECK_EQ(peer.who.space, TD_SPACE_OWN);
	CHECK_EQ(peer.who.uid, getuid() ? getuid() : 1000);
	goes(&peer);
	end();
}

TEST(root_is_in_the_own_space_only_if_it_is_in_the_own_namespace)
{
	struct peer peer;

	if (geteuid())
		SKIP("needs root");
	require(in_sandbox, 0);
	begin();
	peer = comes(in_sandbox, 0);
	CHECK_EQ(peer.who.space, 1);
	goes(&peer);
	end();
}

TEST(a_process_that_has_ended_is_nobody)
{
	struct peer peer;
	pid_t child;
	int status;

	begin();
	child = start_peer(here, 0, true);
	CHECK_EQ(waitpid(child, &status, 0), child);
	peer = accept_peer(child);
	CHECK_EQ(peer.who.space, TD_SPACE_UNKNOWN);
	CHECK_EQ(peer.who.uid, geteuid());
	close(peer.fd);
	end();
}

TEST(a_process_outside_of_this_namespace_is_nobody)
{
	struct ucred credentials = {.uid = 0, .pid = 0};
	int fds[2];

	begin();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	CHECK_EQ(td_spaces_enter(&spaces, fds[0], &credentials).space, TD_SPACE_UNKNOWN);
	credentials.pid = getpid();
	spaces.is_readable = false; /* /proc is another namespace's */
	CHECK_EQ(td_spaces_enter(&spaces, fds[0], &credentials).space, TD_SPACE_UNKNOWN);
	spaces.is_readable = true;
	spaces.nobody = 0; /* many users have this uid here */
	CHECK_EQ(td_spaces_enter(&spaces, fds[0], &credentials).space, TD_SPACE_UNKNOWN);
	close(fds[0]);
	close(fds[1]);
	end();
}
