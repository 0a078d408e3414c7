/*
 * Who may do what in a real etcd: roles, and TLS with certificates that the test makes. Without
 * etcd, etcdctl or openssl it is skipped.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "base/time.h"
#include "cluster/state/etcd/etcd.h"
#include "cluster/state/kind.h"
#include "etcd_process.h"
#include "test.h"

static struct etcd_process etcd;
static char ca[96], certificate[96], key[96];

static struct td_state *open_with(const struct td_etcd_options *options)
{
	struct td_state *state = NULL;
	struct td_err err;

	if (td_etcd_open(options, &state, &err))
		test_fail(__FILE__, __LINE__, "%s", err.msg);
	return state;
}

static int put(struct td_state *state, const char *name)
{
	return td_state_put(
		state, &(struct td_state_write){.key = name, .value = "x", .length = 1}, NULL);
}

/* The result of the watch, once there is one; it waits for a minute. */
static int await(struct td_state_watch *watch)
{
	uint64_t now_ns = td_time_now_ns(), end_ns = now_ns + 60 * TD_NS_PER_S, next_ns;
	struct pollfd fd = {.fd = td_state_fd(watch->state), .events = POLLIN};
	struct td_state_event event;
	int r;

	while ((r = td_state_next(watch, &event)) == TD_STATE_NOTHING && now_ns < end_ns) {
		next_ns = td_state_turn(watch->state, now_ns);
		/* The turn may have read it, so that nothing more will come. */
		r = td_state_next(watch, &event);
		if (r != TD_STATE_NOTHING)
			break;
		next_ns = next_ns < end_ns ? next_ns : end_ns;
		if (next_ns > now_ns)
			(void)poll(&fd, 1, (int)((next_ns - now_ns) / TD_NS_PER_MS) + 1);
		now_ns = td_time_now_ns();
	}
	return r;
}

static bool shell(const char *command)
{
	return !system(command);
}

/* etcd's own tool, with its answer thrown away. */
static bool etcdctl(const char *arguments)
{
	char command[768], tls[320] = "";

	if (*ca)
		snprintf(tls, sizeof(tls), "--cacert %s --cert %s --key %s", ca, certificate, key);
	snprintf(command, sizeof(command),
		"ETCDCTL_API=3 \"$(dirname %s)/etcdctl\" --endpoints %s %s %s >/dev/null 2>&1",
		etcd.program, etcd.url, tls, arguments);
	return shell(command);
}

/* The users and roles of tandem-agent(8), for the node "node1". */
static bool enable_roles(void)
{
	return etcdctl("user add root:r") && etcdctl("user grant-role root root") &&
	       etcdctl("role add node1") && etcdctl("user add node1:n") &&
	       etcdctl("role grant-permission node1 readwrite /tandem/v1/node/node1") &&
	       etcdctl("role grant-permission --prefix node1 read /tandem/v1/assign/") &&
	       etcdctl("user grant-role node1 node1") && etcdctl("auth enable");
}

static void begin(void)
{
	ca[0] = 0;
	if (!etcd_make(&etcd))
		SKIP("etcd is not here: scripts/test fetches Debian's");
}

TEST(a_user_reads_and_writes_what_its_role_allows)
{
	struct td_state *nobody, *node, *wrong;
	struct td_etcd_options options = {.user = "node1", .password = "n"};
	struct td_state_watch *watch;
	struct td_state_item item;

	begin();
	etcd_start(&etcd, NULL);
	options.endpoints = etcd.url;
	nobody = open_with(&(struct td_etcd_options){.endpoints = etcd.url});
	CHECK_EQ(put(nobody, "/tandem/v1/assign/17"), 0);
	if (!enable_roles())
		SKIP("etcdctl is not here");
	CHECK_EQ(td_state_get(nobody, "/tandem/v1/assign/17", &item), TD_STATE_DENIED);
	CHECK_EQ(put(nobody, "/tandem/v1/assign/17"), TD_STATE_DENIED);
	CHECK_EQ(td_state_watch(nobody, "/tandem/v1/", 1, &watch), 0);
	CHECK_EQ(await(watch), TD_STATE_DENIED);
	node = open_with(&options);
	CHECK_EQ(put(node, "/tandem/v1/node/node1"), 0);
	CHECK_EQ(put(node, "/tandem/v1/node/node2"), TD_STATE_DENIED);
	CHECK_EQ(put(node, "/tandem/v1/node/node11"), TD_STATE_DENIED);
	CHECK_EQ(put(node, "/tandem/v1/assign/17"), TD_STATE_DENIED);
	CHECK_EQ(put(node, "/tandem/v1/leader"), TD_STATE_DENIED);
	CHECK_EQ(td_state_get(node, "/tandem/v1/job/17", &item), TD_STATE_DENIED);
	CHECK(strstr(td_state_why(node), "permission denied"));
	CHECK_EQ(td_state_get(node, "/tandem/v1/assign/17", &item), 0);
	td_state_item_deinit(&item);
	CHECK_EQ(td_state_watch(node, "/tandem/v1/assign/", 1, &watch), 0);
	CHECK_EQ(await(watch), 0);
	CHECK_EQ(td_state_watch(node, "/tandem/v1/job/", 1, &watch), 0);
	CHECK_EQ(await(watch), TD_STATE_DENIED);
	/* A restart makes etcd forget the tokens. */
	etcd_signal(&etcd, SIGKILL);
	etcd_start(&etcd, NULL);
	CHECK_EQ(put(node, "/tandem/v1/node/node1"), 0);
	options.password = "wrong";
	wrong = open_with(&options);
	CHECK_EQ(put(wrong, "/tandem/v1/node/node1"), TD_STATE_DENIED);
	td_state_free(nobody);
	td_state_free(node);
	td_state_free(wrong);
	etcd_remove(&etcd);
}

/* Makes an authority, and a certificate for etcd and another one for clients. */
static void make_certificates(void)
{
	char command[2048];

	snprintf(ca, sizeof(ca), "%s/tls/ca.pem", etcd.folder);
	snprintf(certificate, sizeof(certificate), "%s/tls/node1.pem", etcd.folder);
	snprintf(key, sizeof(key), "%s/tls/node1.key", etcd.folder);
	snprintf(command, sizeof(command),
		"exec >/dev/null 2>&1; mkdir %s/tls && cd %s/tls || exit 1\n"
		"new='openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
		"$new -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.pem || exit 1\n"
		"printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' "
		">use\n"
		"for name in O=node1 CN=etcd CN=named; do\n"
		"  subject=/$name name=${name#*=}\n"
		"  $new -subj $subject -keyout $name.key -out $name.csr || exit 1\n"
		"  openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
		"-days 2 -extfile use -out $name.pem || exit 1\n"
		"done\n",
		etcd.folder, etcd.folder);
	if (!shell(command))
		SKIP("openssl is not here");
}

/* etcd with TLS that asks each client for a certificate. */
static void start_with_tls(void)
{
	char server[96], server_key[96];
	const char *const arguments[] = {"--cert-file", server, "--key-file", server_key,
		"--client-cert-auth", "--trusted-ca-file", ca, NULL};

	make_certificates();
	snprintf(server, sizeof(server), "%s/tls/etcd.pem", etcd.folder);
	snprintf(server_key, sizeof(server_key), "%s/tls/etcd.key", etcd.folder);
	snprintf(etcd.url, sizeof(etcd.url), "https://127.0.0.1:%d", etcd.port);
	etcd_start(&etcd, arguments);
}

static int put_once(const struct td_etcd_options *options)
{
	struct td_state *state = open_with(options);
	int r = put(state, "/tandem/v1/node/node1");

	if (r)
		printf("# %s\n", td_state_why(state));
	td_state_free(state);
	return r;
}

TEST(with_tls_a_certificate_opens_the_connection_and_a_password_gives_the_role)
{
	struct td_etcd_options options = {0};
	struct td_state *state;
	struct td_state_watch *watch;
	char named[96], named_key[96];

	begin();
	start_with_tls();
	snprintf(named, sizeof(named), "%s/tls/named.pem", etcd.folder);
	snprintf(named_key, sizeof(named_key), "%s/tls/named.key", etcd.folder);
	options = (struct td_etcd_options){
		.endpoints = etcd.url, .ca = ca, .certificate = certificate, .key = key};
	CHECK_EQ(put_once(&options), 0);
	state = open_with(&options);
	CHECK_EQ(td_state_watch(state, "/tandem/", 1, &watch), 0);
	CHECK_EQ(await(watch), 0);
	td_state_free(state);
	options.ca = NULL; /* the authorities of the system do not know this one */
	CHECK_EQ(put_once(&options), TD_STATE_AWAY);
	options.ca = ca;
	options.certificate = options.key = NULL;
	CHECK(put_once(&options)); /* TLS 1.3 tells the client so when it has sent its request */
	options.certificate = certificate;
	options.key = key;
	if (!enable_roles())
		SKIP("etcdctl is not here");
	CHECK_EQ(put_once(&options), TD_STATE_DENIED);
	options.user = "node1";
	options.password = "n";
	CHECK_EQ(put_once(&options), 0);
	/* etcd's gateway refuses whoever might expect that the common name is a login. */
	options.certificate = named;
	options.key = named_key;
	CHECK_EQ(put_once(&options), TD_STATE_DENIED);
	etcd_remove(&etcd);
}
